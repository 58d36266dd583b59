/** Which colour a run or group gets: the lowest that is free, kept as long as it is drawn. */

export const COLORS = 10;

export interface Drawn {
  id: string;
  color: number;
}

export function nextColor(drawn: readonly Drawn[]): number {
  const used = new Map<number, number>();
  for (const { color } of drawn) used.set(color, (used.get(color) ?? 0) + 1);
  let best = 1;
  for (let color = 1; color <= COLORS; color++) if ((used.get(color) ?? 0) < (used.get(best) ?? 0)) best = color;
  return best;
}

/** With `id` where it was not, without it where it was. */
export function toggle(drawn: readonly Drawn[], id: string): Drawn[] {
  return drawn.some((one) => one.id === id) ? drawn.filter((one) => one.id !== id) : [...drawn, { id, color: nextColor(drawn) }];
}

/** From the seventh line on colours alone do not tell lines apart; dashes help. */
export function dashOf(place: number): number[] | undefined {
  return place < 6 ? undefined : place < 12 ? [5, 2] : [2, 2];
}
