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
