/** More runs than one request may name: all that fit, and what is asked about them in parts. */

import type { Row } from "../../api/names.ts";
import { source } from "../../state/here.ts";
import { query } from "./table.ts";

const WINDOW = 1000; // rows or runs of one request
const AGAIN = 300; // ms, while the server still reads numbers of runs
const PATIENCE = 60_000; // ms without a further one: then what is there is taken

/** Rows of the table that fit what is asked for, drawn or not, in its order, with cells of some columns. */
export async function rowsThatFit(columns: string[], grouped = false): Promise<Row[]> {
  const { filter, search, archived, sort, group_by } = query.peek();
  const found: Row[] = [];
  let [left, since] = [Infinity, Date.now()];
  for (let all = 1; found.length < all;) {
    const { rows, rows_total, pending } = await source.runs({
      ...(filter === "" ? {} : { filter }),
      ...(search === "" ? {} : { search }),
      archived,
      sort,
      group_by: grouped ? group_by : null,
      sections: false,
      columns,
      offset: found.length,
      limit: WINDOW,
    });
    if (pending < left) [left, since] = [pending, Date.now()];
    if (columns.length > 0 && pending > 0 && Date.now() - since < PATIENCE) {
      await new Promise((done) => setTimeout(done, AGAIN));
      continue;
    }
    found.push(...rows);
    left = Infinity;
    all = rows.length === 0 ? 0 : rows_total;
  }
  return found;
}

/** All runs that fit. */
export const fitting = async (): Promise<string[]> =>
  (await rowsThatFit([])).flatMap((row) => (row.kind === "run" ? [row.run] : []));

/** Asks about many runs as often as one request may name only some of them. */
export async function inParts<Given>(
  runs: readonly string[],
  ask: (some: string[]) => Promise<Given>,
): Promise<Given[]> {
  const given: Given[] = [];
  for (let i = 0; i < runs.length; i += WINDOW) given.push(await ask(runs.slice(i, i + WINDOW)));
  return given;
}
