import type { EpisodesQuery, Obj } from "../../api/names.ts";
import { source } from "../../state/here.ts";

/** How an episode ended, in one word. */
export const ending = (row: Obj): string =>
  typeof row["outcome"] === "string"
    ? row["outcome"]
    : row["terminated"] === true
      ? "terminated"
      : row["truncated"] === true
        ? "truncated"
        : "cut";

/**
 * What is shown where nobody chose an episode: the first that fits and came to its end. One that was cut, as by the end
 * of training, only where there is no other; null: none fits.
 */
export async function firstWhole(run: string, query: EpisodesQuery): Promise<string | null> {
  const first = async (more: EpisodesQuery): Promise<unknown> =>
    (await source.episodes(run, { ...more, ...query, limit: 1 })).rows[0]?.["episode_id"];
  const [whole, other] = await Promise.all([first({ outcome: ["terminated", "truncated"] }), first({})]);
  const id = whole ?? other ?? null;
  return id === null ? null : String(id);
}
