/** Rows that a copy of the page has recorded, chosen and ordered as the server does it. */

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
