/** The small curves in the runs table: asked for together, for the rows on the screen only. */

import { signal, type Signal } from "@preact/signals";
import type { Row } from "../../api/names.ts";
import { behind } from "../../state/first.ts";
import { rowId } from "./table.ts";

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
  const put = (of: string, id: string, path: string): void => {
    const small = drawn.get(id);
    if (small?.of === of) small.path.value = path;
  };
  const { pathsOf } = await import("./sparkPaths.ts");
  await Promise.all(
    [...byKey].map(([of, rows]) =>
      pathsOf(of, rows, { width: WIDTH, height: HEIGHT }, (id, path) => put(of, id, path)),
    ),
  );
}
