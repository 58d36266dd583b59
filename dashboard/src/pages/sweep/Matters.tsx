/** How much of the spread of the scores goes along with each setting, beside what seeds and chance do. */

import type { Num, SweepAnswer, SweepSetting } from "../../api/names.ts";
import { amount } from "../../data/numbers.ts";

const share = (v: Num): number => (typeof v === "number" ? v : NaN);
const percent = (v: Num): string => `${Math.round(100 * share(v))}`;

export function Matters({
  found,
  called,
  chosen,
  onChoose,
}: {
  found: SweepAnswer;
  /** What a setting is called among the others. */
  called: (column: string) => string;
  chosen: number;
  onChoose: (column: string) => void;
}) {
  const chance = share(found.chance);
  return (
    <section class="card c4 matters">
      <header>
        <h2>What matters</h2>
        <span class="soft">share of the spread, 90 % over seeds</span>
      </header>
      <div class="in">
        {found.settings.map((one, i) => (
          <button
            key={one.column}
            type="button"
            class="matter"
            aria-pressed={i === chosen}
            title={`${one.column}: ${amount(one.levels, "value")}, or ranges of them${sharing(one, called)}`}
            onClick={() => onChoose(one.column)}
          >
            <span class="rowname">{[one.column, ...one.together].map(called).join(" + ")}</span>
            <Bar of={one} chance={chance} />
            <span class="num">{text(one)}</span>
          </button>
        ))}
        <div class="matter seeds">
          <span class="rowname">seeds alone</span>
          <span class="track">
            {Number.isFinite(share(found.seeds)) && <i class="range" style={{ right: right(share(found.seeds)) }} />}
          </span>
          <span class="num">{Number.isFinite(share(found.seeds)) ? `${percent(found.seeds)} %` : "one seed each"}</span>
        </div>
        <p class="small soft">
          {Number.isFinite(chance)
            ? `Dashed: what the first setting reaches by chance in 5 % of sweeps, ${percent(found.chance)} %. `
            : ""}
          Each share is beyond those above it, so they may be added; hatched is what a setting shares with them. Shares
          tell what goes along with the score, not what causes it.
        </p>
        {found.settings
          .filter((one) => shared(one) > 0)
          .slice(0, MOST_SHARING)
          .map((one) => (
            <p key={one.column} class="small">
              <b>{called(one.column)}</b> alone goes with {percent(one.alone)} %.{" "}
              {one.alike
                ? `These runs cannot tell it from ${called(one.goes_with)}: their values go together.`
                : `What ${called(one.goes_with)} has of that is counted there.`}
            </p>
          ))}
        {found.settings.some((one) => one.why !== "") && (
          <p class="small soft">{[...new Set(found.settings.map((one) => one.why))].filter(Boolean).join("; ")}.</p>
        )}
      </div>
    </section>
  );
}

const MOST_SHARING = 3;

/** What a setting has in common with one above it. */
const shared = (of: SweepSetting): number =>
  of.goes_with === "" ? 0 : Math.max(0, share(of.alone) - (Number.isFinite(share(of.share)) ? share(of.share) : 0));

const sharing = (of: SweepSetting, called: (column: string) => string): string =>
  shared(of) > 0
    ? `; ${Math.round(100 * shared(of))} % more are shared with ${called(of.goes_with)}, which stands above it`
    : "";

const right = (v: number): string => `${100 - 100 * v}%`;

function Bar({ of, chance }: { of: SweepSetting; chance: number }) {
  const has = Number.isFinite(share(of.share));
  return (
    <span class="track">
      {has && <i class="range" style={{ right: right(share(of.share)) }} />}
      {shared(of) > 0 && (
        <i
          class="range shared"
          style={{ left: `${100 * (share(of.alone) - shared(of))}%`, right: right(share(of.alone)) }}
        />
      )}
      {has && Number.isFinite(share(of.low)) && (
        <i class="whisker" style={{ left: `${100 * share(of.low)}%`, right: right(share(of.high)) }} />
      )}
      {has && <i class="centre" style={{ left: `${100 * share(of.share)}%` }} />}
      {Number.isFinite(chance) && <i class="chance" style={{ left: `${100 * chance}%` }} />}
    </span>
  );
}

function text(of: SweepSetting): string {
  if (!Number.isFinite(share(of.share))) return "not known";
  return `${percent(of.share)} %${Number.isFinite(share(of.low)) ? ` (${percent(of.low)} … ${percent(of.high)})` : ""}`;
}
