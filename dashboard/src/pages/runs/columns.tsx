/** The columns of the runs table: which there are, and how a cell of each looks. */

import { signal } from "@preact/signals";
import type { Cell, ColumnsAnswer, GroupCell, GroupRow, Row, RunRow } from "../../api/names.ts";
import { ago, amount, clock, count, plain, seconds, short, value, writeOf } from "../../data/numbers.ts";
import { headsOf, metricOf } from "../../data/heads.ts";
import { asOne, RETURNS, telling } from "../../data/keys.ts";
import type { Column } from "../../parts/Grid.tsx";
import { Middle } from "../../parts/Middle.tsx";
import { Status } from "../../parts/Status.tsx";
import { tight } from "../../parts/useWidth.ts";
import { behind } from "../../state/first.ts";
import { source } from "../../state/here.ts";
import { say } from "../../state/address.ts";
import { GroupContent, Nan, Only, Tags } from "./cells.tsx";
import { HEIGHT, spark, WIDTH } from "./sparks.ts";
import { colorOf, columnsWanted, rowId, runName } from "./table.ts";
import * as view from "./view.ts";

/** What columns could be shown; null until the server said so. */
export const known = signal<ColumnsAnswer | null>(null);
/** The metric that shows how training goes: the small curve, and the first number. */
export const heroKey = signal("");

const AGAIN = 500; // ms, while the server still reads what the runs hold; longer and longer
const SELDOM = 10_000;

export async function learnColumns(after = AGAIN): Promise<void> {
  const answer = await source.columns();
  known.value = answer;
  heroKey.value = telling(asOne(answer.metrics)) ?? "";
  if (answer.pending === 0) return;
  await behind;
  setTimeout(() => void learnColumns(Math.min(SELDOM, after * 1.5)).catch(() => undefined), after);
}

/** Columns of the table, in order: those of the address, or a good choice. */
export function chosen(): string[] {
  const said = view.columns.value;
  if (said !== "") return said.split("~");
  const most = (known.value?.config ?? []).reduce((n, column) => Math.max(n, column.runs), 0);
  const config = (known.value?.config ?? [])
    .filter(
      (column) => column.varies && column.distinct > 1 && column.runs >= most * 0.4 && !/seed$/.test(column.column),
    )
    .sort((a, b) => b.runs - a.runs || b.distinct - a.distinct || a.column.length - b.column.length);
  const metric =
    heroKey.value === "" ? [] : ["spark", RETURNS.includes(heroKey.value) ? "return" : `last:${heroKey.value}`];
  if (tight.value) return ["status", ...metric];
  return ["status", ...metric, ...config.slice(0, 1).map((column) => column.column), "progress"];
}

/** A column, dragged to the place of another one. */
export function reorder(id: string, to: string): void {
  const now = chosen();
  const [from, at] = [now.indexOf(id), now.indexOf(to)];
  if (from < 0 || at < 0) return;
  const next = now.filter((one) => one !== id);
  next.splice(at, 0, id);
  say({ cols: next.join("~") });
}

export function offered(): { column: string; label: string; soft: string }[] {
  const answer = known.value;
  return [
    { column: "spark", label: "curve", soft: heroKey.value },
    { column: "return", label: "return", soft: "test, else train, else reward" },
    ...(answer?.own ?? []).map((column) => ({ column, label: column, soft: "" })),
    ...(answer?.metrics ?? []).flatMap(({ key, runs }) => [
      { column: `last:${key}`, label: key, soft: `last, ${amount(runs, "run")}` },
      { column: `max:${key}`, label: `max ${key}`, soft: amount(runs, "run") },
      { column: `min:${key}`, label: `min ${key}`, soft: amount(runs, "run") },
    ]),
    ...(answer?.config ?? []).map(({ column, distinct }) => ({
      column,
      label: column,
      soft: amount(distinct, "value"),
    })),
  ];
}

/** How the column `return` and others are asked for. */
export const cellsOf = (column: string): string[] =>
  column === "return" ? RETURNS.map((key) => `last:${key}`) : [column];

/** Tells the server which cells are wanted. */
export function sayColumns(columns: string[]): void {
  const by = view.colorBy.value;
  const shown = columns.filter((column) => column !== "spark" && column !== "status" && column !== "progress");
  const wanted = [...new Set([...shown.flatMap(cellsOf), ...(by === "" ? [] : [by])])];
  if (wanted.join("~") !== columnsWanted.peek().join("~")) columnsWanted.value = wanted;
}

const FEW = 2; // chosen columns beside the names on a phone

const WIDTHS: Record<string, string> = {
  status: "80px",
  spark: "74px",
  progress: "56px",
  tags: "120px",
  notes: "160px",
  created: "128px",
  updated: "84px",
  duration: "84px",
  host: "96px",
  cause: "124px",
};

export function column(id: string, place: number, all: readonly string[]): Column<Row> {
  const metric = metricOf(id);
  const sorted = view.sort.value === id ? "ascending" : view.sort.value === `-${id}` ? "descending" : undefined;
  const name = headsOf(all, heroKey.value)[place] as string;
  return {
    id,
    head: <Middle text={name} title={id === "spark" ? `curve of ${heroKey.value}` : id} />,
    width: WIDTHS[id] ?? `${Math.max(metric ? 80 : 58, Math.min(80, 16 + 5.6 * name.length))}px`,
    number:
      metric !== null ||
      ["progress", "seed", "attempts", "alerts", "duration", "worked", "updated"].includes(id) ||
      id.startsWith("config."),
    ...(id === "spark" ? {} : { sort: () => say({ sort: sorted === "descending" ? id : `-${id}` }) }),
    sorted,
    called: name,
    // On a phone: what tells how it goes, or the first columns that a hand chose.
    wide: view.columns.value === "" ? !["status", "spark"].includes(id) && metric === null : place >= FEW,
    cell: (row) => (row.kind === "section" ? null : content(id, row, metric !== null)),
  };
}

function content(id: string, row: GroupRow | RunRow, metric: boolean) {
  if (id === "status") return row.kind === "run" ? <OneStatus row={row} /> : <Statuses counts={row.status} />;
  if (id === "spark") return <Spark row={row} />;
  if (id === "progress") return <Progress row={row} />;
  if (id === "return") return <Return row={row} />;
  const nan = row.nan[id];
  const mark = nan ? <Nan of={nan} row={row} /> : null;
  const tags = row.cells["tags"];
  if (id === "tags" && row.kind === "group" && Array.isArray(tags)) return <Tags of={tags as string[]} />;
  if (row.kind === "group")
    return (
      <>
        <Only column={id} of={row.cells[id]}>
          <GroupContent cell={row.cells[id]} write={metric ? writeOf(id) : null} />
        </Only>
        {mark}
      </>
    );
  return (
    <span class={metric ? "" : "soft"}>
      <Only column={id} of={row.cells[id]}>
        {runContent(id, row.cells[id], row)}
      </Only>
      {mark}
    </span>
  );
}

/** The first of RETURNS that a row has; -1: none that is known. */
function placeOfReturn(row: GroupRow | RunRow): number {
  const has = (column: string): boolean => {
    const cell = row.cells[column] as Cell | GroupCell | undefined;
    if (cell === null || cell === undefined) return false;
    return (
      typeof cell !== "object" ||
      Array.isArray(cell) ||
      (cell as GroupCell).centre != null ||
      (cell as GroupCell).distinct !== undefined
    );
  };
  return cellsOf("return").findIndex(has);
}

function Return({ row }: { row: GroupRow | RunRow }) {
  const place = placeOfReturn(row);
  const said = content(`last:${RETURNS[Math.max(0, place)]}`, row, true);
  return place > 0 ? (
    <span title={`${RETURNS[place]}: there is no test/return`}>
      {said} <span class="of">{["", "train", "reward"][place]}</span>
    </span>
  ) : (
    said
  );
}

function runContent(id: string, cell: Cell | undefined, row: RunRow) {
  if (id === "created" || id === "ended") return clock(id === "created" ? row.created : row.ended);
  if (id === "updated") return ago(row.updated);
  if (id === "worked" && typeof cell === "number") return seconds(cell);
  if (id === "duration") return seconds(Math.max(0, (row.ended ?? Date.now() / 1000) - row.created));
  if (id === "tags") return <Tags of={row.tags} />;
  if (id === "notes") return row.notes;
  if (id === "host") return row.host;
  if (id === "seed") return plain(row.seed);
  if (id === "attempts") return row.attempts;
  if (id === "alerts") return row.alerts > 0 ? <span class="tag warn">{row.alerts}</span> : "–";
  if (typeof cell === "number") return id.includes(":") ? writeOf(id)(cell) : plain(cell);
  if (cell === "NaN" || cell === "Infinity" || cell === "-Infinity")
    return <span class="lost">{value(Number(cell))}</span>;
  return plain(cell);
}

/** The status of a run; of one that ended before its time what leads to why. */
function OneStatus({ row }: { row: RunRow }) {
  const { run, status, x, at } = row;
  if (status === "running" || status === "finished" || x === "" || at === null) return <Status status={status} />;
  const look = (): void => view.sayCause({ run, x, at, key: heroKey.value });
  return (
    <button class="link why" type="button" aria-label={`${status}: why ${runName(row)} ended`} onClick={look}>
      <Status status={status} />
    </button>
  );
}

function Statuses({ counts }: { counts: { [status: string]: number } }) {
  return (
    <span class="statuses">
      {["running", "finished", "killed", "crashed", "stale"].map((status) =>
        counts[status] ? <Status key={status} status={status} count={counts[status]} /> : null,
      )}
    </span>
  );
}

function Spark({ row }: { row: GroupRow | RunRow }) {
  const color =
    colorOf.value.get(rowId(row)) ??
    (row.kind === "run" && row.member_of !== null ? (colorOf.value.get(row.member_of) ?? 0) : 0);
  const place = RETURNS.includes(heroKey.value) ? placeOfReturn(row) : -1;
  const path = spark(row, RETURNS[place] ?? heroKey.value); // that of the value beside it
  return (
    <svg class={`spark s${color}`} width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <path class="line" d={path} />
    </svg>
  );
}

/** How far something came that has no total. */
function Reached({ at, x }: { at: number | null; x: string }) {
  return (
    <span class="soft" title={at === null ? "nothing says how far it goes" : `${count(at)} ${x}, of no known total`}>
      {at === null ? "–" : short(at)}
    </span>
  );
}

function Progress({ row }: { row: GroupRow | RunRow }) {
  if (row.kind === "group") {
    const done = row.done ?? null;
    if (done === null) return <Reached at={row.at} x={row.x} />;
    const live = (row.status["running"] ?? 0) > 0;
    return (
      <span
        class={`prog ${live ? "on" : ""}`}
        role="img"
        aria-label={`${Math.round(done * 100)} % done`}
        title={`${Math.round(done * 100)} % of all its runs together`}
      >
        <i style={{ width: `${done * 100}%` }} />
      </span>
    );
  }
  const share = row.at !== null && row.total ? Math.max(0, Math.min(1, row.at / row.total)) : null;
  if (share === null) return <Reached at={row.at} x={row.x} />;
  const kind = row.status === "running" ? "on" : row.status === "crashed" ? "dead" : "";
  return (
    <span
      class={`prog ${kind}`}
      role="img"
      aria-label={`${Math.round(share * 100)} % done`}
      title={`${plain(row.at)} of ${plain(row.total)} ${row.x}`}
    >
      <i style={{ width: `${share * 100}%` }} />
    </span>
  );
}
