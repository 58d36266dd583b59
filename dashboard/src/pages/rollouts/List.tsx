/** The table of rollouts: searched, filtered and sorted on the server. */

import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Cell, RolloutRow, RolloutsAnswer } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { count, seconds, value } from "../../data/numbers.ts";
import { Field } from "../../parts/Field.tsx";
import { Grid, type Column } from "../../parts/Grid.tsx";
import { Empty, Failure, Waiting } from "../../parts/Say.tsx";
import { say, word } from "../../state/address.ts";
import { useHands } from "../../state/hands.ts";
import { source } from "../../state/here.ts";
import { useNews } from "../../state/run.ts";
import { Windows } from "../../state/windows.ts";
import { cellText } from "../samples/cells.ts";

const search = word("q");
const where = word("where");
const order = word("sort");
const near = word("of");

type Answer = RolloutsAnswer & { all: number };

/** What became of a rollout, in a word. */
export function fateOf(cells: { [name: string]: Cell }): string {
  if (cells["used"] === null || cells["used"] === undefined) return "no fate yet";
  const reason = cells["reason"];
  if (typeof reason === "string") return shown(reason);
  return cells["used"] === true ? "used" : "dropped";
}

const HEADS: [id: string, head: string, width: string, number: boolean, wide: boolean][] = [
  ["item", "last answer", "minmax(120px, 3fr)", false, false],
  ["reward", "reward", "58px", true, false],
  ["fate", "fate", "84px", false, false],
  ["advantage", "advantage", "78px", true, true],
  ["turns", "turns", "48px", true, true],
  ["gradient_step", "update", "58px", true, true],
];

export function List({ run, row, first }: { run: string; row: string; first: Signal<string> }) {
  const active = useSignal(-1);
  const rows = useMemo(
    () => new Windows<RolloutRow, Answer>(async () => Promise.reject(new Error("not asked yet"))),
    [],
  );
  const see = useMemo(() => (from: number, to: number) => rows.see(from, to), [rows]);
  const news = useNews(run, ["rollouts", "fates"], 5000);
  const [kind, id] = near.value === "" ? ["", ""] : near.value.split(":", 2);
  const query = {
    ...(search.value === "" ? {} : { search: search.value }),
    ...(where.value === "" ? {} : { where: where.value }),
    ...(kind === "group" && id ? { group: id } : {}),
    ...(kind === "task" && id ? { task: id } : {}),
    sort:
      order.value === "" ? [] : [{ column: order.value.replace(/^-/, ""), descending: order.value.startsWith("-") }],
  };
  const question = JSON.stringify(query);
  useEffect(() => {
    void rows.again(async (offset, limit, signal) => {
      const answer = await source.rollouts(run, { ...query, offset, limit }, signal);
      return { ...answer, all: answer.total, total: answer.matched };
    });
  }, [rows, question, news]);
  void rows.changed.value;
  const answer = rows.answer.value;
  first.value = rows.row(0)?.id ?? "";
  const open = (name: string): void => say({ row: name }, row === "");
  const move = (by: number): void => {
    active.value = Math.max(0, Math.min(rows.total.value - 1, active.value + by));
    const next = rows.row(active.value);
    if (next) open(next.id);
  };
  useHands(() => [
    { keys: ["j"], what: "next rollout", act: () => move(1) },
    { keys: ["k"], what: "previous rollout", act: () => move(-1) },
  ]);
  const columns = useMemo<Column<RolloutRow>[]>(
    () =>
      HEADS.map(([name, head, width, number, wide]) => {
        const column = name === "fate" ? "reason" : name;
        const sorted = order.value === column ? "ascending" : order.value === `-${column}` ? "descending" : undefined;
        return {
          id: name,
          head,
          width,
          wide,
          number,
          sorted,
          sort: () => say({ sort: sorted === "descending" ? column : `-${column}` }),
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
          bad={rows.error.value?.code === "bad_input"}
          onSay={(text) => say({ where: text })}
          wait={500}
        />
        {near.value !== "" && (
          <button class="chip" type="button" onClick={() => say({ of: "" })}>
            one {kind} ×
          </button>
        )}
      </div>
      {rows.error.value && (
        <div class="pad">
          <Failure error={rows.error.value} again={() => void rows.again()} />
        </div>
      )}
      {!answer && !rows.error.value ? (
        <Waiting what="rollouts" />
      ) : answer && answer.total === 0 ? (
        <Empty title={`None of ${count(answer.all)} rollouts fit`}>
          <button class="btn" type="button" onClick={() => say({ q: "", where: "", of: "" })}>
            Show all
          </button>
        </Empty>
      ) : (
        <Grid
          label="Table of rollouts"
          columns={columns}
          total={rows.total.value}
          row={(i) => rows.row(i)}
          onSeen={see}
          active={active.value}
          rowClass={({ id: own }) => (own === (row === "" ? first.value : row) ? "chosen" : "")}
          onOpen={({ id: own }, i) => {
            active.value = i;
            open(own);
          }}
        />
      )}
      <div class="foot">
        {answer && (
          <span>
            <b>{count(answer.total)}</b> of {count(answer.all)} rollouts
          </span>
        )}
        {answer && <span>answered in {seconds(answer.took_ms / 1000)}</span>}
        <span class="grow" />
        <span class="hide-s">
          <kbd>j</kbd> <kbd>k</kbd> rollout <kbd>n</kbd> <kbd>p</kbd> turn <kbd>?</kbd> all keys
        </span>
      </div>
    </section>
  );
}
