/** Finding things by parts of their names. */

export interface Thing {
  kind: string;
  name: string;
  /** Beside the name: what it is. */
  soft: string;
  /** Another word it is found by. */
  also?: string;
  /** Somebody else found it by the text: it fits, whatever its name. */
  sure?: boolean;
}

/** How well a name fits what is typed: 0 the best, null not at all. Every word must be in it, in any order. */
export function fit(name: string, text: string): number | null {
  const [low, words] = [
    name.toLowerCase(),
    text
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== ""),
  ];
  let far = 0;
  for (const word of words) {
    const at = low.indexOf(word);
    if (at < 0) return null;
    const begins = at === 0 || /[^a-z0-9]/.test(low[at - 1] ?? "");
    far += (begins ? 0 : 10) + (low.length - word.length) / 100;
  }
  return far;
}

/** The things that fit, the best of each kind first, at most `each` of one kind; without a text the first ones. */
export function found<T extends Thing>(all: readonly T[], text: string, kinds: readonly string[], each: number): T[] {
  return kinds.flatMap((kind) =>
    all
      .filter((thing) => thing.kind === kind)
      .map((thing) => ({
        thing,
        far: minimum(fit(thing.name, text), fit(thing.also ?? "", text), thing.sure === true ? 50 : null),
      }))
      .filter((one): one is { thing: T; far: number } => one.far !== null)
      .sort((a, b) => a.far - b.far)
      .slice(0, each)
      .map(({ thing }) => thing),
  );
}

const minimum = (...all: (number | null)[]): number | null => {
  const known = all.filter((one): one is number => one !== null);
  return known.length === 0 ? null : Math.min(...known);
};

/** Where one can go, and from where. */
export interface Places {
  /** What can be opened: the name of each page, its question, its address. */
  pages: readonly { name: string; question: string; address: string }[];
  onRuns: boolean;
}
