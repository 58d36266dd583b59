/** A table of rows that the server searches and sorts: the rows, the keys that move in it, and the frame around it. */

import { useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { amount, count, seconds } from "../data/numbers.ts";
import { say } from "../state/address.ts";
import { useHands } from "../state/hands.ts";
import { Windows } from "../state/windows.ts";
import { Grid, type Column } from "./Grid.tsx";
import { Empty, Failure, Waiting } from "./Say.tsx";

/** What the server says: how many rows there are, how many fit, and some of them. */
interface Matching<Row> {
  total: number;
  matched: number;
  /** How many rows stand for those that fit, where one stands for several. */
  groups?: number | null;
  rows: Row[];
}

/** What the table shows of the rows: as many lines, or more. */
export interface Lines<Row> {
  total: number;
  row: (i: number) => Row | undefined;
  see: (first: number, last: number) => void;
}

/** Lines among which the active one is looked for after others came. */
const MOST_LOOKED_AT = 2_000;

type Found<Answer> = Answer & { all: number; question: string };

export interface Asked<Row, Answer extends Matching<Row>> {
  rows: Windows<Row, Found<Answer>>;
  answer: Found<Answer> | null;
  lines: Lines<Row>;
  active: Signal<number>;
  /** The first row as the question was answered first: what is shown of it stays, whatever rows come before it. */
  top: Row | undefined;
  open: (row: Row) => void;
  pick: (row: Row) => boolean;
}

export interface Asking<Row, Query, Answer extends Matching<Row>> {
  /** What one row is, in a word. */
  what: string;
  query: Query;
  /** Changes when there are new rows. */
  news: number;
  ask: (query: Query & { offset: number; limit: number }, signal: AbortSignal) => Promise<Answer>;
  /** What a line is called: where other lines come before it, it stays the active one. */
  id: (row: Row) => string;
  open: (row: Row) => void;
  /** A row was pressed; true: that is all, it is not opened. */
  pick?: (row: Row) => boolean;
  /** The lines, where rows are not all. */
  lines?: (rows: Windows<Row, Found<Answer>>) => Lines<Row>;
  /** Keys beside j and k that do the same. */
  also?: [next: string, previous: string];
}

/**
 * Rows behind a question: asked again when it changes and when there are new ones; j and k open the next and the
 * previous one.
 */
export function useAsked<Row, Query, Answer extends Matching<Row>>({
  what,
  query,
  news,
  ask,
  id,
  open,
  pick = () => false,
  lines: linesOf,
  also,
}: Asking<Row, Query, Answer>): Asked<Row, Answer> {
  const active = useSignal(-1);
  const rows = useMemo(
    () => new Windows<Row, Found<Answer>>(async () => Promise.reject(new Error("not asked yet"))),
    [],
  );
  const see = useMemo(() => (first: number, last: number) => rows.see(first, last), [rows]);
  const question = JSON.stringify(query);
  useEffect(() => {
    void rows.again(async (offset, limit, signal) => {
      const answer = await ask({ ...query, offset, limit }, signal);
      return { ...answer, all: answer.total, total: answer.groups ?? answer.matched, question };
    });
  }, [rows, question, news]);
  void rows.changed.value;
  const plain = useMemo(() => ({ row: (i: number) => rows.row(i), see }), [rows]);
  const lines = linesOf?.(rows) ?? { ...plain, total: rows.total.value };
  const answered = rows.answer.value?.question;
  const top = useRef<{ of: string; row: Row | undefined }>({ of: "", row: undefined });
  if (answered !== undefined && (answered !== top.current.of || top.current.row === undefined))
    top.current = { of: answered, row: rows.row(0) };
  const nameAt = (i: number): string => {
    const line = lines.row(i);
    return line === undefined ? "" : id(line);
  };
  const held = useRef("");
  useLayoutEffect(() => {
    held.current = nameAt(active.value);
  }, [active.value]);
  useLayoutEffect(() => {
    if (held.current === "" || [held.current, ""].includes(nameAt(active.peek()))) return;
    for (let i = 0; i < Math.min(lines.total, MOST_LOOKED_AT); i++)
      if (nameAt(i) === held.current) {
        active.value = i;
        return;
      }
  }, [rows.changed.value]);
  const move = (by: number): void => {
    active.value = Math.max(0, Math.min(lines.total - 1, active.value + by));
    const next = lines.row(active.value);
    if (next !== undefined) open(next);
  };
  const [next, previous] = also ?? [];
  useHands(() => [
    {
      keys: next ? ["j", next] : ["j"],
      ...(next ? { shown: `j ${next}` } : {}),
      what: `next ${what}`,
      act: () => move(1),
      when: () => lines.total > 0,
    },
    {
      keys: previous ? ["k", previous] : ["k"],
      ...(previous ? { shown: `k ${previous}` } : {}),
      what: `previous ${what}`,
      act: () => move(-1),
      when: () => lines.total > 0,
    },
  ]);
  return { rows, answer: rows.answer.value, lines, active, top: top.current.row, open, pick };
}

/** The order as the address has it, for the server: a column, with a minus where the largest is first. */
export const sortOf = (order: string): { column: string; descending: boolean }[] =>
  order === "" ? [] : [{ column: order.replace(/^-/, ""), descending: order.startsWith("-") }];

/** What makes a column sort when its head is pressed; `word` is the address's. */
export function sorts(order: string, column: string, word = "sort"): Pick<Column<never>, "sorted" | "sort"> {
  const sorted = order === column ? "ascending" : order === `-${column}` ? "descending" : undefined;
  return { sorted, sort: () => say({ [word]: sorted === "descending" ? column : `-${column}` }) };
}

export interface AskedRowsProps<Row, Answer extends Matching<Row>> {
  asked: Asked<Row, Answer>;
  /** What the rows are, in a word: "prompts". */
  what: string;
  columns: Column<Row>[];
  id: (row: Row) => string;
  /** The id of the row that is open. */
  chosen: string | undefined;
  /** What stands there where none fits. */
  none: ComponentChildren;
  class?: string;
  rowClass?: (row: Row) => string;
  /** Keys that the foot names. */
  children?: ComponentChildren;
}

/** The table itself, or why there is none; below it how many rows fit, and how long that took. */
export function AskedRows<Row, Answer extends Matching<Row> & { took_ms: number }>({
  asked: { rows, answer, lines, active, open, pick },
  what,
  columns,
  id,
  chosen,
  none,
  rowClass,
  children,
  ...more
}: AskedRowsProps<Row, Answer>) {
  const error = rows.error.value;
  return (
    <>
      {error && (
        <div class="pad">
          <Failure error={error} again={() => void rows.again()} />
        </div>
      )}
      {!answer && !error ? (
        <Waiting what={what} />
      ) : answer?.total === 0 ? (
        none
      ) : (
        <Grid
          label={`Table of ${what}`}
          columns={columns}
          total={lines.total}
          row={lines.row}
          onSeen={lines.see}
          active={active.value}
          id={id}
          rowClass={rowClass ?? ((row) => (id(row) === chosen ? "chosen" : ""))}
          onOpen={(row, i, event) => {
            active.value = i;
            if (pick(row)) return;
            open(row);
            bring(event.currentTarget as HTMLElement);
          }}
          {...more}
          class={`asked ${more.class ?? ""}`}
        />
      )}
      <div class="foot">
        {answer && (
          <span>
            <b>{count(answer.matched)}</b> of {count(answer.all)} {what}
            {answer.groups != null && ` in ${amount(answer.groups, "group")}`}
          </span>
        )}
        {answer && <span>answered in {seconds(answer.took_ms / 1000)}</span>}
        <span class="grow" />
        <span class="hide-s">{children}</span>
      </div>
    </>
  );
}

/** On a phone what a row opens stands above or below the table: it comes into view. */
export function bring(row: HTMLElement): void {
  const [list, panes] = [row.closest(".pane"), row.closest("main")?.querySelectorAll(".pane") ?? []];
  if (matchMedia("(max-width: 760px)").matches) [...panes].find((pane) => pane !== list)?.scrollIntoView();
}

/** Where no row fits what was searched for. */
export function NoneFits({ all, what, words }: { all: number; what: string; words: readonly string[] }) {
  return (
    <Empty title={`None of ${count(all)} ${what} fit`}>
      <button class="btn" type="button" onClick={() => say(Object.fromEntries(words.map((word) => [word, ""])))}>
        Show all
      </button>
    </Empty>
  );
}
