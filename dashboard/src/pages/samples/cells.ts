/** Cells of samples as text: numbers short, long texts as far as they were sent. */

import type { Cell } from "../../api/names.ts";
import { count, plain, value } from "../../data/numbers.ts";

/** Numbers that are names: "1 024" would not be found again. */
const IS_NAME = /(^|_)(id|seed|group|hash|batch|index|first_seen)$/;

export function cellText(cell: Cell | undefined, name = ""): string {
  if (typeof cell === "number")
    return !Number.isInteger(cell) ? value(cell) : IS_NAME.test(name) ? plain(cell) : count(cell);
  if (
    cell !== null &&
    typeof cell === "object" &&
    !Array.isArray(cell) &&
    typeof cell["text"] === "string" &&
    typeof cell["length"] === "number"
  )
    return `${cell["text"]}…`;
  return plain(cell);
}

export function width(name: string, type: string): string {
  if (type === "boolean") return "60px";
  const head = Math.min(130, 22 + 6 * name.length);
  if (type === "integer") return `${Math.max(76, head)}px`;
  if (type === "number") return `${Math.max(80, head)}px`;
  return /prompt|text|completion|item/.test(name) ? "minmax(110px, 2fr)" : "minmax(80px, 1fr)";
}

/** The number in the first of `names` that is one. */
export function numberIn(cells: { [name: string]: Cell }, names: readonly string[]): number | null {
  for (const name of names) if (typeof cells[name] === "number") return cells[name] as number;
  return null;
}

export function textIn(cells: { [name: string]: Cell }, names: readonly string[]): string | null {
  for (const name of names) if (cells[name] !== undefined && cells[name] !== null) return cellText(cells[name]);
  return null;
}
