import { clock, count, seconds, value } from "../data/numbers.ts";
import type { AxisKind } from "./model.ts";

/** An x in words: `412 672`, `14:32:07`, `4 m 33 s`. */
export function place(x: number, kind: AxisKind): string {
  if (kind === "wall") return clock(x);
  if (kind === "duration") return seconds(x);
  return kind === "count" || Number.isInteger(x) || Math.abs(x) >= 1000 ? count(x) : value(x, 4);
}
