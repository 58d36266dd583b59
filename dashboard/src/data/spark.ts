/** The path of a small curve inside a box of `width` x `height`; gaps stay gaps. Empty where nothing is finite. */
export function sparkPath(
  x: ArrayLike<number>,
  y: ArrayLike<number>,
  width: number,
  height: number,
  every = 1,
): string {
  let [low, high] = [Infinity, -Infinity];
  for (let i = 0; i < y.length; i++) {
    const v = y[i] as number;
    if (Number.isFinite(v)) [low, high] = [Math.min(low, v), Math.max(high, v)];
  }
  if (low > high) return "";
  const [x0, x1] = [x[0] as number, x[x.length - 1] as number];
  let path = "";
  let down = false;
  for (let i = 0; i < x.length; i += every) {
    const v = y[i] as number;
    if (!Number.isFinite(v)) {
      down = false;
      continue;
    }
    const px = x1 > x0 ? (((x[i] as number) - x0) / (x1 - x0)) * width : width / 2;
    const py = high > low ? height - 2 - ((v - low) / (high - low)) * (height - 4) : height / 2;
    path += `${down ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`;
    down = true;
  }
  return path;
}
