/** The small curves in the runs table: asked for together, for the rows on the screen only. */

import { signal, type Signal } from "@preact/signals";
import type { Row } from "../../api/names.ts";
import { doubles, floats, type ArrayPlace } from "../../data/frames.ts";
import { sparkPath } from "../../data/spark.ts";
import { behind } from "../../state/first.ts";
import { source } from "../../state/here.ts";
import { rowId } from "./table.ts";

const POINTS = 40;
const SOON = 60; // ms, in which rows come on the screen together
export const WIDTH = 62;
export const HEIGHT = 18;

/** What is drawn of a row: the key, and the path, empty until it is there. */
interface Small {
  of: string;
  path: Signal<string>;
}

const drawn = new Map<string, Small>();
const waiting = new Map<string, Row>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** The path of a row's curve of `of`, empty until it is there. */
export function spark(row: Row, of: string): Signal<string> {
  const id = rowId(row);
  let small = drawn.get(id);
  if (small?.of !== of) {
    small = { of, path: signal("") };
    drawn.set(id, small);
    waiting.set(id, row);
    timer ??= setTimeout(() => void behind.then(ask), SOON);
  }
  return small.path;
}

/** Rows that changed are asked for again when they are next on the screen, and at once if they are. */
export function forget(runs: readonly string[], rows: Iterable<Row>): void {
  const changed = new Set(runs);
  for (const row of rows) {
    const hit =
      row.kind === "run" ? changed.has(row.run) : row.kind === "group" && row.runs.some((run) => changed.has(run));
    if (hit && drawn.has(rowId(row))) waiting.set(rowId(row), row);
  }
  if (waiting.size > 0) timer ??= setTimeout(() => void ask(), 1000);
}

async function ask(): Promise<void> {
  timer = undefined;
  const byKey = new Map<string, Row[]>();
  for (const [id, row] of waiting) {
    const of = drawn.get(id)?.of ?? "";
    if (of !== "") byKey.set(of, [...(byKey.get(of) ?? []), row]);
  }
  waiting.clear();
  await Promise.all([...byKey].map(([of, rows]) => askFor(of, rows)));
}

async function askFor(of: string, rows: readonly Row[]): Promise<void> {
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
  const put = (id: string, payload: ArrayBuffer, x: ArrayPlace | undefined, y: ArrayPlace | undefined): void => {
    const small = drawn.get(id);
    if (small?.of === of && x && y) small.path.value = draw(doubles(payload, x), floats(payload, y));
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

const draw = (x: Float64Array, y: Float32Array): string =>
  sparkPath(x, y, WIDTH, HEIGHT, Math.max(1, Math.floor(x.length / (POINTS * 2))));
