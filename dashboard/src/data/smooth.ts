/** Smoothing for the eye. Only the picture is smoothed; the raw line stays under it and no number is taken from it. */

const POINTS = 1000;

/**
 * A debiased exponential average whose reach depends on x, not on how many points the window happens to hold.
 *
 * @param x rising positions
 * @param y values; NaN is a gap: it stays a gap and the average goes on behind it
 * @param weight 0 (none) to below 1; 0.6 weighs like 0.6 a point on a curve of at most 1000 points
 * @param whole the whole range of x, which makes the result the same at every zoom
 * @param rows how many rows stand behind the whole range; fewer than 1000 are weighed one by one
 */
export function smooth(x: Float64Array, y: Float32Array, weight: number, whole: number, rows: number): Float32Array {
  if (!(weight >= 0 && weight < 1)) throw new RangeError(`smoothing is from 0 to below 1, not ${weight}`);
  const out = new Float32Array(y.length);
  const unit = whole > 0 ? whole / Math.max(1, Math.min(POINTS, rows - 1)) : 1;
  let sum = 0;
  let mass = 0;
  let last = NaN;
  for (let i = 0; i < y.length; i++) {
    const v = y[i] as number;
    if (!Number.isFinite(v)) {
      out[i] = NaN;
      continue;
    }
    const at = x[i] as number;
    const keep = Number.isNaN(last) ? 0 : weight ** Math.max(0, (at - last) / unit);
    last = at;
    sum = sum * keep + v * (1 - weight);
    mass = mass * keep + (1 - weight);
    out[i] = sum / mass;
  }
  return out;
}

/** How a line is smoothed: an exponential average, a running mean, or a Gaussian one. */
export type Smoother = "ema" | "mean" | "gauss";
export const SMOOTHERS: Record<Smoother, string> = {
  ema: "exponential",
  mean: "running mean",
  gauss: "Gaussian",
};

const REACH = 3; // widths of a Gaussian

/**
 * A mean over what lies around each point: of a window, or weighed by distance. Gaps stay gaps.
 *
 * The width is 1 / (1 - weight) points of a curve of at most 1000 points: about as far as the exponential average of
 * this weight reaches.
 */
export function around(
  x: Float64Array,
  y: Float32Array,
  weight: number,
  whole: number,
  rows: number,
  gauss: boolean,
): Float32Array {
  const out = new Float32Array(y.length);
  const unit = whole > 0 ? whole / Math.max(1, Math.min(POINTS, rows - 1)) : 1;
  const half = unit / (1 - weight);
  const reach = gauss ? half * REACH : half;
  let [from, to, sum, n] = [0, 0, 0, 0];
  for (let i = 0; i < y.length; i++) {
    const at = x[i] as number;
    while (to < y.length && (x[to] as number) <= at + reach) {
      const v = y[to++] as number;
      if (Number.isFinite(v)) [sum, n] = [sum + v, n + 1];
    }
    while ((x[from] as number) < at - reach) {
      const v = y[from++] as number;
      if (Number.isFinite(v)) [sum, n] = [sum - v, n - 1];
    }
    if (!Number.isFinite(y[i] as number)) out[i] = NaN;
    else if (gauss) out[i] = weighed(x, y, from, to, at, half);
    else out[i] = sum / n;
  }
  return out;
}

function weighed(x: Float64Array, y: Float32Array, from: number, to: number, at: number, width: number): number {
  let [sum, mass] = [0, 0];
  for (let i = from; i < to; i++) {
    const v = y[i] as number;
    if (!Number.isFinite(v)) continue;
    const far = ((x[i] as number) - at) / width;
    const w = Math.exp(-0.5 * far * far);
    sum += v * w;
    mass += w;
  }
  return sum / mass;
}
