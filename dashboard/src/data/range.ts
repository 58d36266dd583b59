/** Which part of y a chart shows, and what that cuts off. */

export interface Range {
  low: number;
  high: number;
}

/** Something that is drawn: values, and the envelope around them where there is one. */
export interface Extent {
  x: Float64Array;
  y: Float32Array;
  low?: Float32Array | undefined;
  high?: Float32Array | undefined;
}

const SAMPLE = 4000;

/**
 * The range of y for lines inside [x0, x1].
 *
 * With `robust`, a tail is left out when it is longer than the middle 96 % of the values: what is left out must be
 * marked by the caller (`cuts`). NaN and infinities never count.
 */
export function yRange(
  lines: readonly Extent[],
  x0: number,
  x1: number,
  options: { robust: boolean; log: boolean },
): Range | null {
  const total = lines.reduce((n, line) => n + line.x.length, 0);
  const every = Math.max(1, Math.floor(total / SAMPLE));
  // Typed: sorted as numbers, without asking.
  const values = new Float64Array(2 * (Math.ceil(total / every) + lines.length));
  let known = 0;
  let low = Infinity;
  let high = -Infinity;
  for (const line of lines) {
    for (let i = 0; i < line.x.length; i++) {
      const at = line.x[i] as number;
      if (at < x0 || at > x1) continue;
      const [lo, hi] = reach(line, i);
      if (Number.isFinite(lo) && (!options.log || lo > 0)) {
        if (lo < low) low = lo;
        if (i % every === 0) values[known++] = lo;
      }
      if (Number.isFinite(hi) && (!options.log || hi > 0)) {
        if (hi > high) high = hi;
        if (line.high !== undefined && i % every === 0) values[known++] = hi;
      }
    }
  }
  if (!(low <= high)) return null;
  if (options.robust && known >= 20) [low, high] = middle(values.subarray(0, known), low, high, options.log);
  return padded(low, high, options.log);
}

/** The lowest and highest value at a point: of its envelope where it has one there, else the value itself. */
function reach(line: Extent, i: number): [number, number] {
  const y = line.y[i] as number;
  const lo = line.low?.[i] ?? y;
  const hi = line.high?.[i] ?? y;
  return [Number.isNaN(lo) ? y : lo, Number.isNaN(hi) ? y : hi];
}

function middle(values: Float64Array, low: number, high: number, isLog: boolean): [number, number] {
  const scale = isLog ? Math.log10 : (v: number): number => v;
  const back = isLog ? (v: number): number => 10 ** v : (v: number): number => v;
  values.sort();
  const at = (q: number): number => scale(values[Math.round(q * (values.length - 1))] as number);
  const [a, b] = [at(0.02), at(0.98)];
  const span = b - a;
  if (!(span > 0)) return [low, high];
  return [scale(low) < a - span ? back(a - span * 0.15) : low, scale(high) > b + span ? back(b + span * 0.15) : high];
}

function padded(low: number, high: number, isLog: boolean): Range {
  if (isLog) {
    const share = Math.max(1.05, (high / low) ** 0.04);
    return { low: low / share, high: high * share };
  }
  if (low === high) {
    const room = Math.abs(low) > 0 ? Math.abs(low) * 0.1 : 1;
    return { low: low - room, high: high + room };
  }
  const room = (high - low) * 0.05;
  return { low: low >= 0 && low < room * 2 ? Math.min(0, low) : low - room, high: high + room };
}

/** A stretch of points outside the range: where, how many, and the furthest of them. */
export interface Cut {
  x: number;
  count: number;
  furthest: number;
  above: boolean;
}

/** What of `line` lies outside `range` within [x0, x1], neighbours closer than `near` in x together. */
export function cuts(line: Extent, range: Range, x0: number, x1: number, near: number): Cut[] {
  const out: Cut[] = [];
  const open: { above: Cut | null; below: Cut | null } = { above: null, below: null };
  const add = (side: "above" | "below", x: number, v: number): void => {
    const last = open[side];
    if (last !== null && x - last.x <= near) {
      last.count += 1;
      if (side === "above" ? v > last.furthest : v < last.furthest) last.furthest = v;
      return;
    }
    const cut: Cut = { x, count: 1, furthest: v, above: side === "above" };
    open[side] = cut;
    out.push(cut);
  };
  for (let i = 0; i < line.x.length; i++) {
    const x = line.x[i] as number;
    if (x < x0 || x > x1) continue;
    const [lo, hi] = reach(line, i);
    if (hi > range.high && hi < Infinity) add("above", x, hi);
    if (lo < range.low && lo > -Infinity) add("below", x, lo);
  }
  return out;
}

/** Where a text of some width starts beside a mark at `x`: towards the middle if it fits, always inside. */
export function startBeside(x: number, wide: number, left: number, right: number): number {
  const [before, after] = [x - 7 - wide, x + 7];
  const behind = before < left || (x < (left + right) / 2 && after + wide <= right);
  return Math.max(left, Math.min(right - wide, behind ? after : before));
}

/** Places from top to bottom, moved as little as keeps them `gap` apart, and inside where there is room. */
export function apart(places: readonly number[], gap: number, top: number, bottom: number): number[] {
  const out = places.map((place) => Math.max(top, Math.min(bottom, place)));
  for (let i = 1; i < out.length; i++) out[i] = Math.max(out[i] as number, (out[i - 1] as number) + gap);
  for (let i = out.length - 1, end = Math.max(bottom, top + gap * (out.length - 1)); i >= 0; i--, end -= gap)
    out[i] = Math.min(out[i] as number, end);
  return out;
}
