/** Which colour a run or a group has: given when it is first drawn, and its own from then on. */

export const COLORS = 12;
const MOST = 4_000;

export interface Drawn {
  id: string;
  color: number;
}

/** The lowest colour that the fewest of these have. */
export function nextColor(drawn: readonly Drawn[]): number {
  const used = new Map<number, number>();
  for (const { color } of drawn) used.set(color, (used.get(color) ?? 0) + 1);
  let best = 1;
  for (let color = 1; color <= COLORS; color++) if ((used.get(color) ?? 0) < (used.get(best) ?? 0)) best = color;
  return best;
}

/** Something that is drawn in one colour: a run, or the runs of a group. */
export interface Owner {
  id: string;
  runs: readonly string[];
}

/**
 * The colours of runs and groups as long as this browser remembers them.
 *
 * A group is remembered by its runs as well: one whose id changes, because a run with another configuration came, keeps
 * its colour.
 */
export class Colors {
  private readonly own: Map<string, number>;

  constructor(
    stored: Iterable<readonly [string, number]> = [],
    private readonly store: (all: [string, number][]) => void = () => undefined,
  ) {
    this.own = new Map(stored);
  }

  /** The colour that it has had; of a run also that of a group it was drawn in. */
  of({ id, runs }: Owner): number | undefined {
    for (const name of [id, ...runs.map(member)]) {
      const color = this.own.get(name);
      if (color !== undefined) return color;
    }
    return undefined;
  }

  /** Its colour; a new one, unlike those of `others`, where it has none. */
  given(owner: Owner, others: readonly Drawn[]): number {
    const color =
      this.own.get(owner.id) ??
      (owner.runs.length === 1 && owner.runs[0] === owner.id ? undefined : this.of(owner)) ??
      nextColor(others);
    this.keep(owner, color);
    return color;
  }

  /** A hand, or a link, chose this colour. */
  keep({ id, runs }: Owner, color: number): void {
    const names = [id, ...runs.filter((run) => run !== id).map(member)];
    if (names.every((name) => this.own.get(name) === color)) return;
    for (const name of names) {
      this.own.delete(name); // the last one named is the last to be forgotten
      this.own.set(name, color);
    }
    for (const name of this.own.keys()) {
      if (this.own.size <= MOST) break;
      this.own.delete(name);
    }
    this.store([...this.own]);
  }
}

const member = (run: string): string => `~${run}`;

/**
 * The colour of each value of a setting: numbers by size, then words by the alphabet, so that a value has the same one
 * in every view. Values beyond the last colour begin again.
 */
export function colorsOfValues(values: Iterable<unknown>): Map<string, number> {
  const known = new Map<string, unknown>();
  for (const value of values) if (value !== null && value !== undefined) known.set(JSON.stringify(value), value);
  const order = ([a, x]: [string, unknown], [b, y]: [string, unknown]): number =>
    typeof x === "number" && typeof y === "number"
      ? x - y
      : Number(typeof y === "number") - Number(typeof x === "number") || a.localeCompare(b);
  return new Map([...known].sort(order).map(([word], i) => [word, (i % COLORS) + 1]));
}

/** From the seventh colour on dashes help to tell lines apart, and where two have the same one. */
export function dashOf(color: number, same: number): number[] | undefined {
  return same > 0 ? [2, 2] : color > 6 ? [5, 2] : undefined;
}
