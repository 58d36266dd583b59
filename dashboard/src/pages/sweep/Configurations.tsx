/** The configurations, the best first: their settings, each seed, the mean, and whether they may be the best. */

import type { Cell, SweepAnswer } from "../../api/names.ts";
import { shortNames } from "../../data/names.ts";
import { plain, rounded, value } from "../../data/numbers.ts";
import { axisOf, quarter } from "../../data/sweep.ts";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { Named } from "../../parts/Named.tsx";
import { addressOf } from "../../state/address.ts";
import { hot } from "./hot.ts";

type Tried = SweepAnswer["configurations"][number];
const MOST_SETTINGS = 6;
const MOST_ROWS = 100;
const MOST_LETTERS = 28;

export function Configurations({
  found,
  called,
  kept,
}: {
  found: SweepAnswer;
  called: (column: string) => string;
  kept: readonly boolean[];
}) {
  const many = found.configurations.filter((one) => one.seeds.length > 0).length;
  const scores = axisOf(found.configurations.flatMap((one) => one.seeds.map((seed) => seed.value)));
  const rows = found.configurations.map((one, i) => ({ one, i })).filter(({ i }) => kept[i]);
  const names = shortNames(
    found.configurations.map(({ name }) => name),
    MOST_LETTERS,
    true,
  );
  // The first column is the name.
  const settings = found.settings.map(({ column }, at) => ({ column, at })).filter(({ column }) => column !== "name");
  const shown = settings.slice(0, MOST_SETTINGS);
  const columns = [
    { id: "rank", head: "configuration" },
    ...shown.map(({ column, at }) => ({ id: `${at}`, head: called(column), number: true })),
    { id: "seeds", head: "seeds" },
    { id: "mean", head: found.key, number: true },
    { id: "n", head: "n", number: true },
    { id: "best", head: "best?" },
  ];
  return (
    <section class="card tried">
      <header>
        <h2>Configurations</h2>
        <span class="soft">
          best first, mean ± standard deviation of the seeds
          {settings.length > MOST_SETTINGS ? `; the first ${MOST_SETTINGS} settings` : ""}
        </span>
      </header>
      <MiniTable
        label="Configurations"
        columns={columns}
        rows={rows.slice(0, MOST_ROWS)}
        rowClass={({ i }) => (hot.value === i ? "hot" : "")}
        onPoint={(row) => (hot.value = row?.i ?? null)}
        cell={({ one, i }, id) => {
          if (id === "rank")
            return (
              <a href={addressOf("runs", { show: `${one.group}.1`, g: "auto" })} title={`The curves of ${one.name}`}>
                <i class={`rankdot q${quarter(i, many)}`} /> #{i + 1}{" "}
                {names[i]?.includes("…#") ? (
                  <span class="sr">{one.name}</span> // too long to be cut to anything: the columns say it
                ) : (
                  <Named text={names[i] ?? ""} name={one.name} />
                )}
              </a>
            );
          if (id === "seeds") return <Strip of={one} at={(v) => scores.at(v)} tone={quarter(i, many)} />;
          if (id === "mean") return <Mean of={one} />;
          if (id === "n") return <Seeds of={one} />;
          if (id === "best")
            return one.may_be_best ? <span class="tag good">may be</span> : one.seeds.length ? "no" : "–";
          return <span class="mono">{setting(one.values[Number(id)] ?? null)}</span>;
        }}
      />
      {rows.length > MOST_ROWS && <p class="in soft">{rows.length - MOST_ROWS} more: keep a range, or filter.</p>}
    </section>
  );
}

const setting = (v: Cell): string => (v === null ? "–" : typeof v === "number" ? plain(rounded(v, 3)) : plain(v));

function Mean({ of }: { of: Tried }) {
  if (of.seeds.length === 0)
    return <span class="soft">{of.crashed > 0 ? "crashed" : of.running > 0 ? "runs" : "–"}</span>;
  return (
    <>
      <b>{value(Number(of.mean))}</b>
      {typeof of.std === "number" && <span class="soft"> ±{value(of.std, 2)}</span>}
    </>
  );
}

function Seeds({ of }: { of: Tried }) {
  const more = [
    of.crashed > 0 ? `${of.crashed} crashed` : "",
    of.running > 0 ? `${of.running} running` : "",
    of.without_score > 0 ? `${of.without_score} without` : "",
  ].filter((one) => one !== "");
  return (
    <>
      {of.seeds.length}
      {more.length > 0 && <span class="soft"> +{more.join(", ")}</span>}
    </>
  );
}

function Strip({ of, at, tone }: { of: Tried; at: (v: Cell) => number | null; tone: number }) {
  const places = of.seeds.flatMap((seed) => at(seed.value) ?? []);
  const told = of.seeds.map((s) => value(Number(s.value))).join(", ");
  return (
    <span class={`strip q${tone}`} role="img" aria-label={told === "" ? "no seed has a score" : told}>
      {places.map((place, i) => (
        <i key={i} style={{ left: `${100 * place}%` }} />
      ))}
    </span>
  );
}
