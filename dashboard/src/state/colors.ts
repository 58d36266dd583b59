/** The colours of this browser: runs and groups keep theirs over reloads, filters and newer runs. */

import { Colors } from "../data/colors.ts";

const STORED = "rollbook.colors";

function stored(): [string, number][] {
  try {
    const all: unknown = JSON.parse(localStorage.getItem(STORED) ?? "[]");
    return Array.isArray(all)
      ? all.filter(
          (one): one is [string, number] =>
            Array.isArray(one) && typeof one[0] === "string" && typeof one[1] === "number",
        )
      : [];
  } catch {
    return [];
  }
}

export const colors = new Colors(stored(), (all) => {
  try {
    localStorage.setItem(STORED, JSON.stringify(all));
  } catch {
    // A browser without storage remembers them until the page is left.
  }
});

/** The colour of one run, on a page about it. */
export const colorOfRun = (run: string): number => colors.of({ id: run, runs: [run] }) ?? 1;
