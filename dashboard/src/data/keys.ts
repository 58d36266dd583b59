/** Keys of metrics: the one to look at first, sections by scope, search. */

import type { KeyInfo } from "../api/names.ts";

/** What stands for how well training goes, the most telling first. */
const TELLING = [
  /^(test|eval|evaluation|evaluate)\/.*(return|reward|score|success)(?!.*(std|min|max|length))/i,
  /(^|\/)(episode_)?return(_mean|s)?$/i,
  /ep_rew_mean$|episode_reward_mean$|(^|\/)reward(_mean|\/mean)?$|mean_reward$/i,
  /return|reward|score|success|accuracy/i,
  /loss/i,
  /kl|entropy|variance|length/i,
];

/** Scopes of the machine and of rollbook itself: never what training is about. */
const LATE = ["time", "timings", "host", "system", "rollbook", "samples"];
const SPREAD = /(^|\/)(std|sd|seconds)$|_std$|_sd$|_min$|_max$/;

function ranked<K extends { key: string; runs: number }>(keys: readonly K[]): K[] {
  const most = keys.reduce((n, { runs }) => Math.max(n, runs), 0);
  const rank = ({ key, runs }: K): number => {
    const at = TELLING.findIndex((telling) => telling.test(key));
    return (
      (at < 0 ? TELLING.length : at) +
      (SPREAD.test(key) ? 10 : 0) +
      (LATE.includes(key.split("/")[0] as string) ? 30 : 0) +
      (runs < most * 0.4 ? 20 : 0)
    );
  };
  return keys
    .map((one) => ({ one, rank: rank(one) }))
    .sort((a, b) => a.rank - b.rank || b.one.runs - a.one.runs)
    .map(({ one }) => one);
}

/** The key that shows how training goes, of those that many runs have; null when there is none at all. */
export function telling(keys: readonly { key: string; runs: number }[]): string | null {
  return ranked(keys)[0]?.key ?? null;
}

/** The first and some more that say something else than it. */
export function tellingFew(keys: readonly { key: string; runs: number }[], many: number): string[] {
  const all = ranked(keys).filter(({ key }) => !SPREAD.test(key));
  const chosen: string[] = [];
  const kinds = new Set<string>();
  for (const { key } of all) {
    const at = TELLING.findIndex((one) => one.test(key));
    const kind = `${at} ${key.split("/")[0]}`;
    if (kinds.has(kind)) continue;
    kinds.add(kind);
    chosen.push(key);
    if (chosen.length === many) return chosen;
  }
  return [...chosen, ...all.map(({ key }) => key).filter((key) => !chosen.includes(key))].slice(0, many);
}

/** A regular expression as typed; text that is none is searched for as it stands. */
export function pattern(text: string): RegExp | null {
  if (text.trim() === "") return null;
  try {
    return new RegExp(text, "i");
  } catch {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  }
}

export interface Section {
  scope: string;
  keys: KeyInfo[];
  /** How many of this scope there are before the search. */
  of: number;
}

/** Keys by scope: what training is about first, the machine last. */
export function sections(keys: readonly KeyInfo[], search: RegExp | null): Section[] {
  const all = new Map<string, Section>();
  for (const info of keys) {
    const scope = info.key.includes("/") ? (info.key.split("/")[0] as string) : "";
    const section = all.get(scope) ?? { scope, keys: [], of: 0 };
    all.set(scope, section);
    section.of += 1;
    if (search === null || search.test(info.key)) section.keys.push(info);
  }
  const late = (scope: string): number => LATE.indexOf(scope) + 1;
  return [...all.values()]
    .filter((section) => section.keys.length > 0)
    .sort((a, b) => late(a.scope) - late(b.scope) || rank(a) - rank(b) || a.scope.localeCompare(b.scope))
    .map((section) => ({
      ...section,
      keys: section.keys.sort((a, b) => a.key.localeCompare(b.key, "en", { numeric: true })),
    }));
}

function rank(section: Section): number {
  const at = TELLING.findIndex((telling) => section.keys.some(({ key }) => telling.test(key)));
  return at < 0 ? TELLING.length : at;
}

/** `test/return` as its grey scope and its bold name. */
export function split(key: string): { scope: string; name: string } {
  const cut = key.indexOf("/");
  return cut < 0 ? { scope: "", name: key } : { scope: key.slice(0, cut + 1), name: key.slice(cut + 1) };
}
