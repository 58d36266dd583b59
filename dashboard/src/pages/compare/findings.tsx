/** What a verdict rests on: intervals with every seed, probabilities, when curves parted, profiles, seeds to come. */

import { useMemo } from "preact/hooks";
import type { CompareAnswer, Num } from "../../api/names.ts";
import { Chart } from "../../charts/Chart.tsx";
import { Hub } from "../../charts/hub.ts";
import type { Line } from "../../charts/model.ts";
import { plain, shorts, value, sentence } from "../../data/numbers.ts";
import { linear } from "../../data/ticks.ts";
import { Named } from "../../parts/Named.tsx";
import { colorOfGroup, shortOf } from "./groups.ts";

const num = (v: Num): number => (typeof v === "number" ? v : NaN);
const said = (v: Num, figures?: number): string => (Number.isFinite(num(v)) ? value(num(v), figures) : "–");
const floats = (values: readonly Num[]): Float32Array => Float32Array.from(values, num);

/** A horizontal scale in per cent of a row's width. */
function scale(low: number, high: number): { at: (v: number) => string; ticks: number[] } {
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  const [a, b] = [low - room, high + room];
  return { at: (v) => `${Math.max(0, Math.min(100, ((v - a) / (b - a)) * 100))}%`, ticks: linear(a, b, 6) };
}

/** The standard deviation of the seeds of a group. */
function spread(found: CompareAnswer, name: string): string {
  const sd = num(found.plan.find((row) => row.group === name)?.sd ?? null);
  return Number.isFinite(sd) ? `, sd ${value(sd, 2)}` : "";
}

/** How the tag of a verdict looks; others are plain. */
const TONE: Record<string, string> = { better: " good", worse: " good", "cannot say": " warn" };

export function Intervals({ found }: { found: CompareAnswer }) {
  const all = found.groups
    .flatMap((group) => [
      num(group.low),
      num(group.high),
      num(group.centre),
      ...group.seeds.map((seed) => num(seed.value)),
    ])
    .filter(Number.isFinite);
  const { at, ticks } = scale(Math.min(...all), Math.max(...all));
  const any = found.groups.some(({ low, high }) => Number.isFinite(num(low)) && Number.isFinite(num(high)));
  return (
    <section class="card c6">
      <header>
        <h2>
          {found.statistic === "iqm" ? "IQM" : found.statistic}
          {any && " and its interval"}
        </h2>
        <span class="soft">
          the best first; each small tick one seed, its {found.score}
          {!any && "; no interval of so few"}
        </span>
      </header>
      <div class="in rowsplot">
        {found.groups.map((group) => {
          const has = Number.isFinite(num(group.low)) && Number.isFinite(num(group.high));
          return (
            <div key={group.name} class={`rowplot s${colorOfGroup(group.name)}`} title={sentence(group.sentence)}>
              <span class="rowname">
                <Named text={shortOf(group.name)} name={group.name} />
              </span>
              <span class="track">
                {has && (
                  <i class="range" style={{ left: at(num(group.low)), right: `calc(100% - ${at(num(group.high))})` }} />
                )}
                {Number.isFinite(num(group.centre)) && <i class="centre" style={{ left: at(num(group.centre)) }} />}
                {group.seeds.map(
                  (seed) =>
                    Number.isFinite(num(seed.value)) && (
                      <i
                        key={seed.run}
                        class={seed.counted ? "seedtick" : "seedtick faint"}
                        style={{ left: at(num(seed.value)) }}
                        title={
                          `seed ${plain(seed.seed)}: ${value(num(seed.value))}` + (seed.counted ? "" : ", not counted")
                        }
                      />
                    ),
                )}
              </span>
              <span class="rowvalue">
                {Number.isFinite(num(group.centre)) ? <b>{said(group.centre)}</b> : "no score"}
                {has && (
                  <span class="soft">
                    {" "}
                    {value(num(group.low))} … {value(num(group.high))}
                  </span>
                )}{" "}
                <span class="soft">
                  · n {group.n}
                  {spread(found, group.name)}
                </span>
              </span>
            </div>
          );
        })}
        <div class="rowplot axis" aria-hidden="true">
          <span class="rowname" />
          <span class="track">
            {shorts(ticks).map((text, i) => (
              <span key={text} class="ticktext" style={{ left: at(ticks[i] as number) }}>
                {text}
              </span>
            ))}
          </span>
          <span class="rowvalue" />
        </div>
        <details class="small">
          <summary>How each interval was made</summary>
          {found.groups.map((group) => (
            <p key={group.name} class="soft small">
              <b>{group.name}</b>: {sentence(group.sentence)}
              {group.missing.length > 0 &&
                ` ${group.missing.length} without it: ${group.missing
                  .slice(0, 3)
                  .map((one) => one.why)
                  .join("; ")}.`}
            </p>
          ))}
        </details>
      </div>
    </section>
  );
}

/** Each pair: how likely a run of one beats one of the other, and p beside what decides. */
export function Better({ found }: { found: CompareAnswer }) {
  const { at } = scale(0, 1);
  return (
    <section class="card c6">
      <header>
        <h2>Probability of improvement</h2>
        <span class="soft">a run of one beats a run of the other</span>
      </header>
      <div class="in rowsplot">
        {found.pairs.map((pair) => {
          const [p, limit] = [num(pair.p ?? null), num(pair.limit ?? null)];
          return (
            <div key={`${pair.a} ${pair.b}`} class="pairplot">
              <div class="row">
                <span>
                  {pair.a} &gt; {pair.b}
                </span>
                <span class="grow" />
                <b>{said(pair.better, 2)}</b>
              </div>
              <span class="track line">
                <i class="rail" />
                <i class="half" style={{ left: at(0.5) }} />
                {Number.isFinite(num(pair.better)) && <i class="point" style={{ left: at(num(pair.better)) }} />}
              </span>
              <p class="small">
                <span class={`tag${TONE[pair.verdict] ?? ""}`}>{pair.outcome}</span>{" "}
                {Number.isFinite(p) && Number.isFinite(limit) && (
                  <span class="soft">
                    p {p < 0.0001 ? "< 0.0001" : value(p, 2)}; {value(limit, 2)} or less decides
                  </span>
                )}
              </p>
            </div>
          );
        })}
      </div>
    </section>
  );
}

export function Profile({ found }: { found: CompareAnswer }) {
  const hub = useMemo(() => new Hub(), []);
  const profile = found.profile;
  const lines = useMemo<Line[]>(
    () =>
      Object.entries(profile?.groups ?? {}).map(([name, shares]) => ({
        id: name,
        name,
        color: colorOfGroup(name),
        // A share falls at a value, not towards it: stairs.
        x: Float64Array.from((profile?.tau ?? []).flatMap((tau) => [tau, tau])),
        y: floats(shares.flatMap((share, i) => [shares[Math.max(0, i - 1)] ?? share, share])),
        envelope: false,
      })),
    [profile],
  );
  if (!profile || profile.tau.length === 0 || found.groups.every(({ n }) => n < 2)) return null;
  return (
    <section class="card c12">
      <header>
        <h2>Performance profile</h2>
        <span class="soft">share of seeds above a value</span>
      </header>
      <div class="in tall">
        <Chart
          bare
          hub={hub}
          title={found.key}
          lines={lines}
          span={{ x0: profile.tau[0] ?? 0, x1: profile.tau.at(-1) ?? 1 }}
          robust={false}
          lasts={false}
          xName="value"
        />
      </div>
    </section>
  );
}
