/** Which episodes a question is about, where all of them are at hand: in a copy of the page. */

import type { EpisodesQuery, Obj } from "../api/names.ts";
import { byValue } from "./rollouts.ts";

/** The chosen ones in the order asked for; no condition is understood here. */
export function chosenEpisodes(rows: readonly Obj[], query: EpisodesQuery): Obj[] {
  const inside = (value: unknown, low: number, high: number): boolean => Number(value) >= low && Number(value) <= high;
  const { box, outcome = [] } = query;
  const found = rows.filter(
    (row) =>
      (!query.film || row["film"] === true) &&
      (!query.traces || row["traces"] === true) &&
      (outcome.length === 0 || outcome.some((one) => one === row["outcome"])) &&
      (!box || (inside(row["x"], box.x0, box.x1) && inside(row[box.y], box.y0, box.y1))),
  );
  for (const { column, descending } of [...(query.sort ?? [])].reverse())
    found.sort((a, b) => byValue(a[column], b[column], descending ? -1 : 1));
  return found;
}
