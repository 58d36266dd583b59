/** The runs page with this run alone and what happened there. */
export const causeOf = (run: string, clock: string, x: number, key: string): string =>
  `#/runs?show=${encodeURIComponent(run)}.1&g=none&cause=${encodeURIComponent(`${run},${clock},${x},${key}`)}`;
