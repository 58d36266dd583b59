/** Rows that a copy of the page has recorded, chosen and ordered as the server does it. */

import type { SentRow } from "./rows.ts";
import { folded } from "./words.ts";

const NOT_FINITE = new Map<unknown, number>([
  ["NaN", NaN],
  ["Infinity", Infinity],
  ["-Infinity", -Infinity],
]);
const CUT = 100; // longer texts may have been cut

/** The rows by a cell; those without one last, equal ones as they were; null where the cells tell no order. */
export function inOrder<Row>(
  rows: readonly Row[],
  cell: (row: Row) => unknown,
  descending: boolean,
): readonly Row[] | null {
  const there = rows.filter((row) => cell(row) != null);
  const cells = there.map(cell);
  const isNumber = cells.every((one) => typeof one === "number" || NOT_FINITE.has(one));
  const isOther = cells.every((one) => typeof one === "boolean" || (typeof one === "string" && one.length < CUT));
  if (!isNumber && !isOther) return null;
  const value = (row: Row): number | string => {
    const one = cell(row);
    return isNumber ? (NOT_FINITE.get(one) ?? (one as number)) : String(one);
  };
  const sign = descending ? -1 : 1;
  there.sort((a, b) => sign * ascending(value(a), value(b)));
  return [...there, ...rows.filter((row) => cell(row) == null)];
}

/** NaN is above all numbers. */
function ascending(a: number | string, b: number | string): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Whether a cell is a number from low to high. */
export const isInside = (cell: unknown, low: number, high: number): boolean =>
  typeof cell === "number" && cell >= low && cell <= high;

export interface SortBy {
  column: string;
  descending?: boolean;
}

/** A cell of the table of runs as it is sorted: numbers before texts before others; null for nothing, and for NaN. */
function sortKey(cell: unknown): readonly [number, number | string] | null {
  const value = NOT_FINITE.get(cell) ?? cell;
  if (value == null || Number.isNaN(value)) return null;
  if (typeof value === "number" || typeof value === "boolean") return [0, Number(value)];
  return typeof value === "string" ? [1, folded(value)] : [2, JSON.stringify(value)];
}

function compared(a: readonly [number, number | string], b: readonly [number, number | string]): number {
  if (a[0] !== b[0]) return a[0] - b[0];
  return a[1] < b[1] ? -1 : a[1] > b[1] ? 1 : 0;
}

/** By a cell, those without one last, equal ones as they were (`_sorted` of `server/runs/table.py`). */
function byKey<Item>(items: readonly Item[], cell: (item: Item) => unknown, descending: boolean): Item[] {
  const keyed = items.map((item) => ({ item, key: sortKey(cell(item)) }));
  const there = keyed.filter((one) => one.key !== null) as { item: Item; key: readonly [number, number | string] }[];
  there.sort((a, b) => (descending ? -1 : 1) * compared(a.key, b.key));
  return [...there, ...keyed.filter((one) => one.key === null)].map((one) => one.item);
}

/** The cell of a run, in a column that the table has, or of what every row says. */
function cellOf(row: SentRow, column: string): unknown {
  if (column in (row.cells ?? {})) return row.cells?.[column];
  return column === "name" ? row.name : column === "status" ? row.status : column === "project" ? row.project : null;
}

/** Whether the runs of a table can be sorted by a column: its cells are there, and none is cut. */
export const sortsBy = (rows: readonly SentRow[], cells: readonly string[], column: string): boolean =>
  ["name", "status", "project"].includes(column) ||
  (cells.includes(column) &&
    !rows.some((row) => {
      const cell = row.kind === "run" ? row.cells?.[column] : null;
      return typeof cell === "object" && cell !== null && "length" in cell && "text" in cell;
    }));

/** A number of a key, such as last:loss. */
const isNumberOfKey = (column: string): boolean => /^\w+[:(]/.test(column);

/** What a group is sorted by: the centre of a number of a key, the latest time, else the first cell (`group_value`). */
function cellOfGroup(members: readonly SentRow[], group: SentRow | undefined, column: string): unknown {
  if (isNumberOfKey(column)) {
    const cell = group ? (group.cells?.[column] as { centre?: unknown } | undefined)?.centre : null;
    const own = group ? cell : cellOf(members[0] as SentRow, column);
    return Number.isFinite(own) ? own : null;
  }
  const cells = members.map((row) => cellOf(row, column)).filter((cell) => sortKey(cell) !== null);
  const times = ["created", "updated", "ended"].includes(column);
  return byKey(cells, (cell) => cell, times)[0] ?? null;
}

function apart<Item>(items: readonly Item[], name: (item: Item) => string): Map<string, Item[]> {
  const parts = new Map<string, Item[]>();
  for (const item of items) {
    const part = parts.get(name(item));
    if (part) part.push(item);
    else parts.set(name(item), [item]);
  }
  return parts;
}

/** The table of the runs that fit as one list, in an order: projects, groups with all their members, runs
 *  (`_flatten` of `server/runs/table.py`). */
export function listed(
  rows: readonly SentRow[],
  fits: ReadonlySet<string>,
  sort: readonly SortBy[],
  hasSections: boolean,
  isGrouped: boolean,
): SentRow[] {
  let runs = rows.filter((row) => row.kind === "run" && fits.has(row.id));
  runs.sort((a, b) => (b.created ?? 0) - (a.created ?? 0));
  const last = [...sort].reverse();
  for (const { column, descending } of last) runs = byKey(runs, (row) => cellOf(row, column), descending ?? false);
  const groups = new Map(rows.filter((row) => row.kind === "group").map((row) => [row.id, row]));
  const sections = apart(runs, (row) => (hasSections ? (row.section ?? "") : ""));
  const all: SentRow[] = [];
  for (const [name, members] of sections) {
    if (hasSections) all.push(...rows.filter((row) => row.kind === "section" && row.name === name));
    if (!isGrouped) {
      all.push(...members);
      continue;
    }
    // Groups of one name lie together, where the first of their runs is.
    const named = apart(members, (row) => JSON.stringify([row.project ?? "", row.group || row.name]));
    const units = [...named.values()].flatMap((some) => [...apart(some, (row) => row.member_of ?? row.id)]);
    let inOrder = units;
    for (const { column, descending } of last)
      inOrder = byKey(inOrder, ([id, of]) => cellOfGroup(of, groups.get(id), column), descending ?? false);
    for (const [id, of] of inOrder) {
      const group = groups.get(id);
      // A group that the search divides keeps all its runs: by their number the caller knows.
      if (group) all.push(of.length === group.runs?.length ? { ...group, runs: of.map((row) => row.id) } : group);
      all.push(...of);
    }
  }
  return all;
}
