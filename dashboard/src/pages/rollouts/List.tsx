/** The table of rollouts: searched, filtered and sorted on the server. */

import type { Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Cell, RolloutRow } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { value } from "../../data/numbers.ts";
import { Field } from "../../parts/Field.tsx";
import { AskedRows, NoneFits, sortOf, sorts, useAsked } from "../../parts/Asked.tsx";
import type { Column } from "../../parts/Grid.tsx";
import { say, word } from "../../state/address.ts";
import { source } from "../../state/here.ts";
import { useNews } from "../../state/run.ts";
import { cellText } from "../samples/cells.ts";

const search = word("q");
const where = word("where");
const order = word("sort");
const near = word("of");

/** What became of a rollout, in a word. */
export function fateOf(cells: { [name: string]: Cell }): string {
  if (cells["used"] === null || cells["used"] === undefined) return "no fate yet";
  const reason = cells["reason"];
  if (typeof reason === "string") return shown(reason);
  return cells["used"] === true ? "used" : "dropped";
}

const HEADS: [id: string, head: string, width: string, number: boolean, wide: boolean][] = [
  ["item", "last answer", "minmax(120px, 2fr)", false, false],
  ["reward", "reward", "58px", true, false],
  ["fate", "fate", "minmax(72px, 1fr)", false, false],
  ["advantage", "advantage", "78px", true, true],
  ["turns", "turns", "48px", true, true],
  ["gradient_step", "update", "58px", true, true],
];

export function List({ run, row, first }: { run: string; row: string; first: Signal<string> }) {
  const news = useNews(run, ["rollouts", "fates"], 5000);
  const [kind, id] = near.value === "" ? ["", ""] : near.value.split(":", 2);
  const asked = useAsked({
    what: "rollout",
    query: {
      ...(search.value === "" ? {} : { search: search.value }),
      ...(where.value === "" ? {} : { where: where.value }),
      ...(kind === "group" && id ? { group: id } : {}),
      ...(kind === "task" && id ? { task: id } : {}),
      sort: sortOf(order.value),
    },
    news,
    ask: (query, signal) => source.rollouts(run, query, signal),
    open: ({ id: name }: RolloutRow) => say({ row: name }, row === ""),
  });
  first.value = asked.rows.row(0)?.id ?? "";
  const columns = useMemo<Column<RolloutRow>[]>(
    () =>
      HEADS.map(([name, head, width, number, wide]) => {
        return {
          id: name,
          head,
          width,
          wide,
          number,
          ...sorts(order.value, name === "fate" ? "reason" : name),
          cell: ({ cells }) => {
            const cell = cells[name];
            if (name === "fate") return <span class={cells["used"] === true ? "" : "soft"}>{fateOf(cells)}</span>;
            if (name === "item") return shown(cellText(cell ?? cells["error"]));
            return number && typeof cell === "number" && !Number.isInteger(cell) ? value(cell) : cellText(cell);
          },
        };
      }),
    [order.value],
  );
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
      <AskedRows
        asked={asked}
        what="rollouts"
        columns={columns}
        id={(one) => one.id}
        chosen={row === "" ? first.value : row}
        none={<NoneFits all={asked.answer?.all ?? 0} what="rollouts" words={["q", "where", "of"]} />}
      >
        <kbd>j</kbd> <kbd>k</kbd> rollout <kbd>n</kbd> <kbd>p</kbd> turn <kbd>?</kbd> all keys
      </AskedRows>
    </section>
  );
}
