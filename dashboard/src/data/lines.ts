/** From the server's entries to what a chart draws. */

import { counts, doubles, floats, type CurveEntry, type SeriesEntry } from "./frames.ts";
import { around, smooth, type Smoother } from "./smooth.ts";
import type { Line } from "../charts/model.ts";

export interface LineLook {
  id: string;
  name: string;
  color: number;
  dash?: number[] | undefined;
  dim?: boolean | undefined;
}

/** The curve of one run. */
export function runLine(entry: SeriesEntry, payload: ArrayBuffer, look: LineLook): Line {
  const at = entry.arrays;
  const x = at.x ? doubles(payload, at.x) : new Float64Array(0);
  const low = at.min ? floats(payload, at.min) : undefined;
  const high = at.max ? floats(payload, at.max) : undefined;
  const centre = at.y ?? at.mean;
  const y = centre ? floats(payload, centre) : middle(low, high);
  const bad = entry.bad && { x: doubles(payload, entry.bad.x), n: counts(payload, entry.bad.count) };
  return { ...look, x, y, low, high, bad, envelope: true, ghost: entry.ghost !== undefined };
}

function middle(low: Float32Array | undefined, high: Float32Array | undefined): Float32Array {
  if (!low || !high) return new Float32Array(0);
  return low.map((v, i) => (v + (high[i] as number)) / 2);
}

/** The curve of a group: centre, interval, and the seeds behind each point. */
export function groupLine(entry: CurveEntry, payload: ArrayBuffer, look: LineLook): Line {
  const at = entry.arrays;
  const n = at.count ? counts(payload, at.count) : new Uint32Array(0);
  return {
    ...look,
    x: at.x ? doubles(payload, at.x) : new Float64Array(0),
    y: at.centre ? floats(payload, at.centre) : new Float32Array(0),
    low: at.low ? floats(payload, at.low) : undefined,
    high: at.high ? floats(payload, at.high) : undefined,
    seeds: { n, of: entry.seeds },
    envelope: false,
  };
}

/** The same line with its smoothed form above it; `whole` is the full range of x. */
export function smoothed(line: Line, weight: number, whole: number, rows: number, by: Smoother = "ema"): Line {
  if (weight <= 0 || line.ghost === true || line.x.length < 3) return line;
  const smooths =
    by === "ema"
      ? smooth(line.x, line.y, weight, whole, rows)
      : around(line.x, line.y, weight, whole, rows, by === "gauss");
  return { ...line, smooth: smooths };
}

/** The value of a line at `x`: of the nearest point, or null where that is a gap or the line does not reach. */
export function valueAt(line: Line, x: number): { value: number; index: number } | null {
  const { x: xs } = line;
  if (xs.length === 0) return null;
  let [a, b] = [0, xs.length - 1];
  while (a < b) {
    const m = (a + b) >> 1;
    if ((xs[m] as number) < x) a = m + 1;
    else b = m;
  }
  const index = a > 0 && x - (xs[a - 1] as number) < (xs[a] as number) - x ? a - 1 : a;
  const step = xs.length > 1 ? ((xs[xs.length - 1] as number) - (xs[0] as number)) / (xs.length - 1) : Infinity;
  if (Math.abs((xs[index] as number) - x) > step * 3) return null;
  const value = (line.smooth ?? line.y)[index] as number;
  if (line.seeds && !Number.isFinite(value)) return null; // no seed stands here
  return { value, index };
}

/** The last finite value of a line up to `until`, and the interval of a group there; null where there is none. */
export function endOf(line: Line, until: number): { x: number; value: number; low: number; high: number } | null {
  for (let i = line.x.length - 1; i >= 0; i--) {
    const [x, value] = [line.x[i] as number, (line.smooth ?? line.y)[i] as number];
    if (x > until || !Number.isFinite(value)) continue;
    const [low, high] = line.envelope ? [value, value] : [line.low?.[i] ?? value, line.high?.[i] ?? value];
    return { x, value, low: Number.isFinite(low) ? low : value, high: Number.isFinite(high) ? high : value };
  }
  return null;
}
