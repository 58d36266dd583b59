/** The table of rollouts, by prompt group or one by one: searched, filtered and sorted on the server. */

import type { Signal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { RolloutsQuery } from "../../api/names.ts";
import { count } from "../../data/numbers.ts";
import { conditionOf, groupKey, parted, together } from "../../data/rollouts.ts";
import { Field } from "../../parts/Field.tsx";
import { AskedRows, NoneFits, sortOf, sorts, useAsked, type Lines } from "../../parts/Asked.tsx";
import type { Column } from "../../parts/Grid.tsx";
import { tight } from "../../parts/useWidth.ts";
import { say, word } from "../../state/address.ts";
import { useHands } from "../../state/hands.ts";
import { source } from "../../state/here.ts";
import { cellOf, clockHead, clockOf, HEADS } from "./listed.tsx";
import { FateDot } from "./marks.tsx";
import { fateWords, openRollout, wideWord } from "./opened.ts";
import { useUnfolded, type Line } from "./unfolded.ts";

/** Columns that a small window has no room for; the opened rollout has them. */
const LAST = ["turns", "sampled_tokens"];
const search = word("q");
const where = word("where");
const order = word("sort");
const near = word("of");
const list = word("list");

export function List({
  run,
  row,
  first,
  news,
  clocks,
}: {
  run: string;
  row: string;
  first: Signal<string>;
  /** Counts up when there are new rollouts or fates. */
  news: number;
  clocks: readonly string[];
}) {
  const [kind, id] = near.value === "" ? ["", ""] : near.value.split(":", 2);
  const grouped = list.value === "" && kind !== "group";
  const query: RolloutsQuery = {
    ...(search.value === "" ? {} : { search: search.value }),
    ...(where.value === "" ? {} : { where: where.value }),
    ...(kind === "group" && id ? { group: id } : {}),
    ...(kind === "task" && id ? { task: id } : {}),
    sort: sortOf(order.value),
    by_group: grouped,
  };
  const { lines: unfolded, unfold } = useUnfolded(run, query, news);
  const asked = useAsked({
    what: "rollout",
    query,
    news,
    ask: (query, signal) => source.rollouts(run, query, signal),
    id: (line: Line) => (line.group == null || line.place !== undefined ? line.id : groupKey(line)),
    open: ({ id: name }) => openRollout(name, row === ""),
    pick: (line) => {
      if (line.group == null) return false;
      unfold(line);
      openRollout(line.id, row === "");
      return true;
    },
    lines: unfolded,
  });
  const { answer, lines, active } = asked;
  first.value = asked.top?.id ?? "";
  const fates = useRef<{ [fate: string]: number }>({}); // the first window of rows says them
  if (Object.keys(answer?.fates ?? {}).length > 0) fates.current = answer?.fates ?? {};
  const again = useRef<ReadonlySet<string>>(new Set());
  again.current = grouped ? new Set() : repeated(lines);
  /** To the next line of a kind, from the one where keys are. */
  const toGroup = (by: number): void => {
    for (let i = active.value + by; i >= 0 && i < lines.total; i += by) {
      const line = lines.row(i);
      if (line === undefined) return;
      if (grouped ? line.group == null : line.cells["group"] === lines.row(i - by)?.cells["group"]) continue;
      active.value = i;
      return openRollout(line.id, row === "");
    }
  };
  const fold = (open: boolean): void => {
    let at = active.value;
    while (at > 0 && lines.row(at)?.place !== undefined) at--;
    const line = lines.row(at);
    if (line) unfold(line, open);
    if (!open) active.value = at;
  };
  const folds = (): boolean => grouped && lines.total > 0;
  useHands(() => [
    { keys: ["J"], what: "next group", act: () => toGroup(1), when: () => lines.total > 0 },
    { keys: ["K"], what: "previous group", act: () => toGroup(-1), when: () => lines.total > 0 },
    { keys: ["ArrowRight"], shown: "→", what: "unfold the group", act: () => fold(true), when: folds },
    { keys: ["ArrowLeft"], shown: "←", what: "fold the group", act: () => fold(false), when: folds },
    {
      keys: ["g"],
      what: "by prompt group, or one list",
      act: () => say({ list: list.value === "" ? "one" : "" }),
    },
    {
      keys: ["Escape"],
      shown: "Esc",
      what: "from one rollout back to the list",
      act: () => say({ open: "" }),
      when: () => wideWord.value !== "",
    },
  ]);
  const clock = clockOf(clocks, answer?.rows ?? []);
  const columns = useMemo<Column<Line>[]>(
    () =>
      HEADS.filter(([name]) => !(tight.value && LAST.includes(name)))
        .map<(typeof HEADS)[number]>(([name, head, width, ...more]) =>
          name === "gradient_step" ? [clock, ...clockHead(clock), ...more] : [name, head, width, ...more],
        )
        .map(([name, head, width, number, wide]) => ({
          id: name,
          head,
          width,
          wide,
          number,
          ...sorts(order.value, name === "fate" ? "reason" : name),
          cell: (line) => cellOf(line, name, again.current.has(line.id), unfold),
        })),
    [order.value, tight.value, clock],
  );
  const chosen = row === "" ? first.value : row;
  return (
    <section class="pane" aria-label="Rollouts">
      <div class="bar">
        <Field
          grow
          value={search.value}
          label="Search in texts"
          placeholder="words in prompts and answers"
          onSay={(q) => say({ q })}
          wait={350}
        />
        <span class="seg" role="group" aria-label="Listed">
          {(["", "one"] as const).map((name) => (
            <button key={name} type="button" aria-pressed={list.value === name} onClick={() => say({ list: name })}>
              {name === "" ? "by group" : "one list"}
            </button>
          ))}
        </span>
      </div>
      <div class="bar">
        <Field
          grow
          mono
          value={where.value}
          label="Condition"
          placeholder="used and staleness > 3 or reason = 'zero_std'"
          bad={asked.rows.error.value?.code === "bad_input"}
          onSay={(text) => say({ where: text })}
          wait={500}
        />
        {near.value !== "" && (
          <button class="chip" type="button" onClick={() => say({ of: "" })}>
            one {kind} ×
          </button>
        )}
      </div>
      {Object.keys(fates.current).length > 1 && <FateButtons fates={fates.current} />}
      <AskedRows
        asked={asked}
        what="rollouts"
        columns={columns}
        id={(line) => (line.group == null ? line.id : (line.key ?? line.id))}
        chosen={chosen}
        rowClass={(line) =>
          [
            line.id === chosen && (line.group == null || !line.unfolded) ? "chosen" : "",
            line.group == null ? "" : "group",
          ].join(" ")
        }
        none={<NoneFits all={answer?.all ?? 0} what="rollouts" words={["q", "where", "of"]} />}
      >
        <kbd>j</kbd> <kbd>k</kbd> move{" "}
        {grouped && (
          <>
            <kbd>→</kbd> unfold{" "}
          </>
        )}
        <kbd>Enter</kbd> open <kbd>?</kbd> all keys
      </AskedRows>
    </section>
  );
}

/** The rollouts whose prompt is that of the line above. */
function repeated(lines: Lines<Line>): Set<string> {
  const out = new Set<string>();
  for (let i = 1; i < lines.total; i++) {
    const [one, before] = [lines.row(i), lines.row(i - 1)];
    if (one === undefined) break;
    if (one.cells["prompt"] != null && one.cells["prompt"] === before?.cells["prompt"]) out.add(one.id);
  }
  return out;
}

const MOST_FATES = 7;

/** What became of these rollouts: each fate with its number; pressed, the condition asks for it. */
function FateButtons({ fates }: { fates: { [fate: string]: number } }) {
  const all = Object.values(fates).reduce((sum, n) => sum + n, 0);
  const { within, rest: now } = parted(where.value);
  const ask = (condition: string): void => say({ where: together(within, condition) });
  return (
    <div class="bar fates">
      <button class="chip" type="button" aria-pressed={now === ""} onClick={() => ask("")}>
        all <b>{count(all)}</b>
      </button>
      {Object.entries(fates)
        .slice(0, MOST_FATES)
        .map(([fate, n]) => {
          const own = conditionOf(fate);
          return (
            <button
              key={fate}
              class="chip"
              type="button"
              aria-pressed={now === own}
              onClick={() => ask(now === own ? "" : own)}
            >
              <FateDot fate={fate} /> {fateWords(fate)} <b>{count(n)}</b>
            </button>
          );
        })}
    </div>
  );
}
