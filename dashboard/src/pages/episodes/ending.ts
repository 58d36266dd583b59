import type { Obj } from "../../api/names.ts";

/** How an episode ended, in one word. */
export const ending = (row: Obj): string =>
  typeof row["outcome"] === "string"
    ? row["outcome"]
    : row["terminated"] === true
      ? "terminated"
      : row["truncated"] === true
        ? "truncated"
        : "cut";
