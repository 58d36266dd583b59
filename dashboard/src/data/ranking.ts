/** The ranking of compared groups in one line, and what to run next: words about numbers that the server gave. */

import { amount } from "./numbers.ts";
import type { CompareAnswer, Num } from "../api/names.ts";

type Pairs = CompareAnswer["pairs"];

const num = (v: Num): number => (typeof v === "number" ? v : NaN);

/** The pair of two groups, seen from the first; null where they were not compared. */
export function pairOf(
  pairs: Pairs,
  a: string,
  b: string,
): { difference: number; better: number; verdict: string } | null {
  const straight = pairs.find((pair) => pair.a === a && pair.b === b);
  if (straight)
    return { difference: num(straight.difference), better: num(straight.better), verdict: straight.verdict };
  const turned = pairs.find((pair) => pair.a === b && pair.b === a);
  if (!turned) return null;
  const verdict = turned.verdict === "better" ? "worse" : turned.verdict === "worse" ? "better" : turned.verdict;
  return { difference: 0 - num(turned.difference), better: 1 - num(turned.better), verdict };
}

/** Whether less is better: the server counts wins in its direction, and differences as they are. */
export function isLowerBetter(pairs: Pairs): boolean {
  let agreed = 0;
  for (const pair of pairs) {
    const won = Math.sign(num(pair.better) - 0.5) * Math.sign(num(pair.difference));
    if (Number.isFinite(won)) agreed += won;
  }
  return agreed < 0;
}

export interface Ranked<G> {
  group: G;
  /** How it stands to the one before: ">" decided, "?" not; "" of the first, and of one without a score. */
  sign: ">" | "?" | "";
  scored: boolean;
}

/** Groups, the best first. One without a score comes last, and nothing is said of how it stands. */
export function ranked<G extends { name: string; centre: Num }>(groups: readonly G[], pairs: Pairs): Ranked<G>[] {
  const turn = isLowerBetter(pairs) ? -1 : 1;
  const size = (group: G): number => (Number.isFinite(num(group.centre)) ? turn * num(group.centre) : -Infinity);
  const order = [...groups].sort((a, b) => (size(a) === size(b) ? 0 : size(b) - size(a)));
  return order.map((group, i) => {
    const [before, scored] = [order[i - 1], Number.isFinite(num(group.centre))];
    if (!before || !scored) return { group, scored, sign: "" };
    return { group, scored, sign: pairOf(pairs, before.name, group.name)?.verdict === "better" ? ">" : "?" };
  });
}

/**
 * Groups that were compared with each other, the best first; of several environments each by itself, in the order of
 * its first group.
 */
export function rankings<G extends { name: string; centre: Num }>(groups: readonly G[], pairs: Pairs): Ranked<G>[][] {
  const family = new Map(groups.map(({ name }) => [name, pairs.length === 0 ? "" : name]));
  for (const { a, b } of pairs)
    if (family.has(a) && family.has(b)) {
      const [one, other] = [family.get(a), family.get(b)];
      for (const [name, mine] of family) if (mine === other) family.set(name, one as string);
    }
  const of = new Map<string, G[]>();
  for (const group of groups) {
    const mine = family.get(group.name) as string;
    of.set(mine, [...(of.get(mine) ?? []), group]);
  }
  return [...of.values()].map((each) => ranked(each, pairs));
}

/** Why a group has no score, counted: "2 still running, 1 did not finish"; "" where it has no run. */
export function whyNone(missing: readonly { why: string }[]): string {
  const counts = new Map<string, number>();
  for (const { why } of missing) counts.set(why, (counts.get(why) ?? 0) + 1);
  return [...counts].map(([why, n]) => `${n} ${why}`).join(", ");
}

export const decidedPairs = (pairs: Pairs): number =>
  pairs.filter(({ verdict }) => verdict === "better" || verdict === "worse").length;

const listed = (names: readonly string[]): string =>
  names.length < 3 ? names.join(" and ") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

/** What to run next, in one line: seeds that would decide the pair that is closest to it. */
export function runNext(found: Pick<CompareAnswer, "plan" | "pairs">): string {
  const few = found.plan.filter(({ more }) => more > 0);
  if (found.pairs.length === 0) return "A second group to compare with.";
  if (few.length === 0)
    return decidedPairs(found.pairs) === found.pairs.length
      ? "Nothing more: every pair is decided."
      : "No number of seeds up to 200 is known that would decide more.";
  const by = new Map<number, string[]>();
  for (const { group, more } of few) by.set(more, [...(by.get(more) ?? []), group]);
  const [[all, groups] = []] = by;
  if (groups?.length === found.plan.length && groups.length > 1) return `${amount(all ?? 0, "more seed")} of each.`;
  return `${[...by].map(([more, groups]) => `${amount(more, "more seed")} of ${listed(groups)}`).join("; ")}.`;
}
