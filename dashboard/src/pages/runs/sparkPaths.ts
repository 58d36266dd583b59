/** The small curves in the runs table, from the server's answers: loaded behind the first charts. */

import type { Row } from "../../api/names.ts";
import { doubles, floats, type ArrayPlace } from "../../data/frames.ts";
import { sparkPath } from "../../data/spark.ts";
import { source } from "../../state/here.ts";

const POINTS = 40;

/** Asks for the curve of `of` of each row, and puts the paths that come. */
export async function pathsOf(
  of: string,
  rows: readonly Row[],
  { width, height }: { width: number; height: number },
  onPath: (id: string, path: string) => void,
): Promise<void> {
  const runs = rows.flatMap((row) =>
    row.kind === "run" ? [row.run] : row.kind === "group" && row.runs.length === 1 ? [row.runs[0] as string] : [],
  );
  const alone = new Map(
    rows.flatMap((row): [string, string][] =>
      row.kind === "group" && row.runs.length === 1 ? [[row.runs[0] as string, row.id]] : [],
    ),
  );
  const groups = rows.flatMap((row) =>
    row.kind === "group" && row.runs.length > 1 ? [{ name: row.id, runs: row.runs }] : [],
  );
  const path = (x: Float64Array, y: Float32Array): string =>
    sparkPath(x, y, width, height, Math.max(1, Math.floor(x.length / (POINTS * 2))));
  const put = (id: string, payload: ArrayBuffer, x: ArrayPlace | undefined, y: ArrayPlace | undefined): void => {
    if (x && y) onPath(id, path(doubles(payload, x), floats(payload, y)));
  };
  await Promise.all([
    runs.length > 0 &&
      source.series({ runs, keys: [of], points: POINTS, fields: ["mean"] }, (frame) => {
        for (const entry of frame.entries) {
          if (entry.ghost !== undefined) continue;
          put(entry.run, frame.payload, entry.arrays.x, entry.arrays.y ?? entry.arrays.mean);
          const group = alone.get(entry.run);
          if (group !== undefined) put(group, frame.payload, entry.arrays.x, entry.arrays.y ?? entry.arrays.mean);
        }
      }),
    groups.length > 0 &&
      source.curves({ by: groups, keys: [of], points: POINTS }, (frame) => {
        for (const entry of frame.entries) put(entry.group, frame.payload, entry.arrays.x, entry.arrays.centre);
      }),
  ]).catch(() => undefined); // a table without small curves is still a table; the charts say what is wrong
}
