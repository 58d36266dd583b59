/** Where an axis gets its ticks: round numbers, decades on a log scale, whole units of time. */

const TIME_STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800,
];

/** Round ticks inside [low, high], at most about `count` of them. */
export function linear(low: number, high: number, count: number): number[] {
  const span = high - low;
  if (!(span > 0) || count < 1) return [];
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const share = rough / power;
  const steps = [10, 5, 2, 1, 0.5].filter((one) => one <= (share > 5 ? 10 : share > 2 ? 5 : share > 1 ? 2 : 1));
  for (const step of steps.slice(0, 2)) {
    const ticks = every(low, high, power * step);
    // One number says nothing about a scale: where the round step gives less than two, the next finer one is taken.
    if (ticks.length >= 2 || count < 2) return ticks;
  }
  return every(low, high, power * (steps[2] ?? 0.5));
}

function every(low: number, high: number, step: number): number[] {
  const out: number[] = [];
  const digits = Math.max(0, 12 - Math.floor(Math.log10(Math.max(Math.abs(low), Math.abs(high), step))));
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && out.length < 1000; i++) {
    out.push(Number((i * step).toFixed(Math.min(20, digits))));
  }
  return out;
}

/** Ticks between which there is nothing: of steps and updates, which are counted. */
export function whole(low: number, high: number, count: number): number[] {
  const ticks = linear(low, high, count);
  return ticks.every(Number.isInteger) ? ticks : every(low, high, 1);
}

/** Powers of ten (and 2, 5 where there is room) inside [low, high]; both above 0. */
export function log(low: number, high: number, count: number): number[] {
  if (!(low > 0) || !(high > low)) return [];
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const decades = last - first;
  const skip = Math.max(1, Math.ceil(decades / Math.max(1, count)));
  const inside = decades <= count / 3 ? [1, 2, 5] : [1];
  const out: number[] = [];
  for (let e = first; e <= last; e += skip) {
    for (const m of inside) {
      const tick = m * 10 ** e;
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) out.push(tick);
    }
  }
  return out.length >= 2 ? out : linear(low, high, count);
}

/** Ticks of a length of time in seconds. */
export function duration(low: number, high: number, count: number): number[] {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0)) return [];
  if (rough < 1) return linear(low, high, count);
  const step = TIME_STEPS.find((s) => s >= rough);
  return step === undefined ? linear(low, high, count) : every(low, high, step);
}

/** Ticks of wall time in unix seconds, on round local hours and days. */
export function wall(low: number, high: number, count: number): number[] {
  const shift = new Date(low * 1000).getTimezoneOffset() * 60;
  return duration(low - shift, high - shift, count).map((t) => t + shift);
}
