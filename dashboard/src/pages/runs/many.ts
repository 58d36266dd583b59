/** More runs than one request may name. */

import { source } from "../../state/here.ts";
import { query } from "./table.ts";

const WINDOW = 1000; // rows or runs of one request

/** All runs that fit what is asked for, drawn or not. */
export async function fitting(): Promise<string[]> {
  const { filter, search, archived } = query.peek();
  const runs: string[] = [];
  for (let all = 1; runs.length < all;) {
    const { rows, total } = await source.runs({
      ...(filter === "" ? {} : { filter }),
      ...(search === "" ? {} : { search }),
      archived,
      group_by: null,
      sections: false,
      columns: [],
      offset: runs.length,
      limit: WINDOW,
    });
    runs.push(...rows.flatMap((row) => (row.kind === "run" ? [row.run] : [])));
    all = rows.length === 0 ? 0 : total;
  }
  return runs;
}

/** Asks about many runs as often as one request may name only some of them. */
export async function inParts<Given>(
  runs: readonly string[],
  ask: (some: string[]) => Promise<Given>,
): Promise<Given[]> {
  const given: Given[] = [];
  for (let i = 0; i < runs.length; i += WINDOW) given.push(await ask(runs.slice(i, i + WINDOW)));
  return given;
}
