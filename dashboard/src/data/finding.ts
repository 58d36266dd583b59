/** Finding things by parts of their names. */

import { plain } from "./numbers.ts";

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

/** A setting as names of groups have it. */
const word = (column: string): string => (column.split(".").at(-1) ?? "").replace(/^learning_rate$/, "lr");

/**
 * What tells runs apart that are called the same, in the words of their settings: "lr 0.001, clip 0.2"; of those that
 * differ in no setting, the id. "" for the others.
 */
export function apart(
  runs: readonly { name: string; id: string; cells: { readonly [column: string]: unknown } }[],
): string[] {
  return runs.map(({ name, id, cells }) => {
    const alike = runs.filter((run) => run.name === name);
    if (alike.length < 2) return "";
    const differ = Object.keys(cells).filter((one) => new Set(alike.map((run) => plain(run.cells[one]))).size > 1);
    const words = (of: (typeof alike)[number]): string =>
      differ.map((one) => `${word(one)} ${plain(of.cells[one])}`).join(", ");
    const own = words({ name, id, cells });
    return own !== "" && alike.filter((run) => words(run) === own).length === 1 ? own : id;
  });
}

/** Where one can go, and from where. */
export interface Places {
  /** What can be opened: the name of each page, its question, its address. */
  pages: readonly { name: string; question: string; address: string }[];
  onRuns: boolean;
}
