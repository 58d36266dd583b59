/** Which colour a run or a group has: given when it is first drawn, kept with the runs, and its own from then on. */

export const COLORS = 12;
/** Those that a name alone can get, as in the library. */
const FIRST = 6;

export interface Drawn {
  id: string;
  color: number;
}

/** The colour that the fewest of those drawn have; then the fewest of all; then the lowest. */
export function nextColor(drawn: readonly number[], all: readonly number[] = []): number {
  const among = (colors: readonly number[], color: number): number => colors.filter((one) => one === color).length;
  const order = Array.from({ length: COLORS }, (_, i) => i + 1);
  return order.sort((a, b) => among(drawn, a) - among(drawn, b) || among(all, a) - among(all, b) || a - b)[0] ?? 1;
}

/**
 * A colour that follows from a name alone (FNV-1a), as the library computes it: where nothing can be
 * kept, and nothing else that is drawn has it.
 */
export function colorOfName(name: string): number {
  let mixed = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(name)) mixed = Math.imul(mixed ^ byte, 0x01000193) >>> 0;
  return (mixed % FIRST) + 1;
}

/** Something that is drawn in one colour: a run, or the runs of a group. */
export interface Owner {
  id: string;
  runs: readonly string[];
}

/** Run -> [its colour alone, the colour of the group that it is drawn in]; 0: none yet. */
export type Kept = Record<string, readonly number[]>;

/** Colours to keep, by run. */
export interface New {
  alone: Record<string, number>;
  grouped: Record<string, number>;
  chosen: boolean;
}

const isAlone = ({ id, runs }: Owner): boolean => runs.length === 1 && runs[0] === id;

/**
 * The colours of runs and groups.
 *
 * A group has no name that lasts: its colour is the one that most of its runs have in a group, so it keeps it when its
 * id changes, because a run with another configuration came.
 */
export class Colors {
  private readonly known = new Map<string, readonly [number, number]>();
  private writable = true;

  constructor(private readonly keep: (colors: New) => void = () => undefined) {}

  /** What is kept with the runs, and whether more can be. */
  take(kept: Kept, writable = this.writable): void {
    this.writable = writable;
    for (const [run, [alone = 0, grouped = 0]] of Object.entries(kept)) this.known.set(run, [alone, grouped]);
  }

  /** The colour that it has; of several that its runs have, the one of most of them, then the lowest. */
  of(owner: Owner): number | undefined {
    const place = isAlone(owner) ? 0 : 1;
    const counts = new Map<number, number>();
    for (const run of owner.runs) {
      const color = this.known.get(run)?.[place] ?? 0;
      if (color > 0) counts.set(color, (counts.get(color) ?? 0) + 1);
    }
    return [...counts].sort(([a, n], [b, m]) => m - n || a - b)[0]?.[0];
  }

  /** The colour of a run where nothing else is drawn: that of its group, else its own. */
  ofRun(run: string): number | undefined {
    const [alone, grouped] = this.known.get(run) ?? [0, 0];
    return grouped || alone || undefined;
  }

  /** Their colours; new ones, unlike those of the others and of `beside`, for those that have none. */
  given(owners: readonly Owner[], beside: readonly Drawn[] = []): Drawn[] {
    const colors = owners.map((owner) => this.of(owner));
    return owners.map((owner, i) => {
      const place = isAlone(owner) ? 0 : 1;
      const drawn = [...beside.map((one) => one.color), ...colors.flatMap((color) => color ?? [])];
      const ofName = this.writable ? 0 : colorOfName([...owner.runs].sort()[0] ?? owner.id);
      const every = this.writable ? [...this.known.values()].map((pair) => pair[place] ?? 0) : [];
      const color = (colors[i] ??= ofName > 0 && !drawn.includes(ofName) ? ofName : nextColor(drawn, every));
      this.set(owner, color, false);
      return { id: owner.id, color };
    });
  }

  /** A link says this colour: it is kept where there is none. */
  offer(owner: Owner, color: number): void {
    if (this.of(owner) === undefined) this.set(owner, color, false);
  }

  /** A hand chose this colour. */
  choose(owner: Owner, color: number): void {
    this.set(owner, color, true);
  }

  private set(owner: Owner, color: number, chosen: boolean): void {
    const place = isAlone(owner) ? 0 : 1;
    const told: Record<string, number> = {};
    for (const run of owner.runs) {
      const [alone, grouped] = this.known.get(run) ?? [0, 0];
      if ([alone, grouped][place] === color || (!chosen && [alone, grouped][place] !== 0)) continue;
      this.known.set(run, place === 0 ? [color, grouped] : [alone, color]);
      told[run] = color;
    }
    if (this.writable && Object.keys(told).length > 0)
      this.keep({ alone: place === 0 ? told : {}, grouped: place === 1 ? told : {}, chosen });
  }
}

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

const DASHES = [
  [5, 2],
  [2, 2],
  [6, 2, 2, 2],
  [9, 3],
  [3, 1, 1, 1, 1, 1],
];

/** Dashes tell lines of one colour apart, as in `rollbook plot`: `same` lines before this one have it, too. */
export const dashOf = (same: number): number[] | undefined =>
  same > 0 ? DASHES[(same - 1) % DASHES.length] : undefined;
