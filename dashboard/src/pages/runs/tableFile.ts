/** The table of runs as a file for other programs: its columns, what fits the search, in its order. */

import type { Cell, GroupCell, GroupRow, Row, RunRow } from "../../api/names.ts";
import { csvOf } from "../../data/csv.ts";
import { cellsOf } from "./columns.tsx";
import { rowsThatFit } from "./many.ts";

const csv = (rows: unknown[][]): Blob => new Blob([csvOf(rows)], { type: "text/csv" });

/** What stands in every row, and needs no cell. */
const OWN: Record<string, (row: RunRow) => unknown> = {
  id: (row) => row.id,
  project: (row) => row.project,
  name: (row) => row.name,
  seed: (row) => row.seed,
  status: (row) => row.status,
  progress: (row) => (row.at !== null && row.total !== null && row.total > 0 ? row.at / row.total : null),
  tags: (row) => row.tags.join(" "),
};
const FIRST = ["id", "project", "name", "seed", "status"];

/** The columns of a file: those that are shown; of several that stand for one, those that have a value. */
const filed = (shown: readonly string[], rows: readonly Row[]): string[] =>
  shown
    .filter((column) => column !== "spark")
    .flatMap(cellsOf)
    .filter(
      (column) => shown.includes(column) || rows.some((row) => row.kind !== "section" && isThere(row.cells[column])),
    );

const isThere = (cell: Cell | GroupCell | undefined): boolean => cell != null && ofMany(cell)?.centre !== null;

const asked = (shown: readonly string[]): string[] =>
  shown.filter((column) => column !== "spark" && !(column in OWN)).flatMap(cellsOf);

/** All runs that fit as a file: who each is, then the columns, in the order of the table. */
export async function runsAsCsv(shown: readonly string[]): Promise<Blob> {
  const rows = await rowsThatFit(asked(shown));
  const names = [...new Set([...FIRST, ...filed(shown, rows)])];
  const cell = (row: RunRow, name: string): unknown => (name in OWN ? OWN[name]?.(row) : row.cells[name]);
  return csv([names, ...rows.flatMap((row) => (row.kind === "run" ? [names.map((name) => cell(row, name))] : []))]);
}

/** The groups as they stand in the table: of a number its centre, interval and runs; of a setting its one value. */
export async function groupsAsCsv(shown: readonly string[]): Promise<Blob> {
  const rows = (await rowsThatFit(asked(shown), true)).filter((row) => row.kind !== "section");
  const names = filed(shown, rows).filter((name) => !(name in OWN));
  const parts = ["centre", "low", "high", "n"] as const;
  const isNumber = (name: string): boolean =>
    rows.some((row) => row.kind === "group" && ofMany(row.cells[name])?.centre !== undefined);
  const numbers = new Set(names.filter(isNumber));
  const cells = (row: GroupRow | RunRow, name: string): unknown[] => {
    const cell = row.cells[name];
    const many = ofMany(cell);
    if (numbers.has(name)) return many ? parts.map((part) => many[part]) : [cell, null, null, cell == null ? 0 : 1];
    return [many ? (many.values ?? []).join(" ") : cell];
  };
  const heads = names.flatMap((name) =>
    numbers.has(name) ? parts.map((part) => (part === "centre" ? name : `${name} ${part}`)) : [name],
  );
  return csv([
    ["project", "group", "runs", ...heads],
    ...rows.map((row) => [
      row.kind === "group" ? row.section : row.project,
      row.name,
      row.kind === "group" ? row.runs.length : 1,
      ...names.flatMap((name) => cells(row, name)),
    ]),
  ]);
}

const ofMany = (cell: Cell | GroupCell | undefined): GroupCell | null =>
  cell !== null && typeof cell === "object" && !Array.isArray(cell) && ("centre" in cell || "distinct" in cell)
    ? (cell as GroupCell)
    : null;
