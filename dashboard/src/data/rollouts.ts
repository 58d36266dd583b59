/** Rollouts and prompts as the page tells of them: their fates, stretches of training, words. */

import type { Cell, Fates, PromptRow, RolloutRow } from "../api/names.ts";
import { shown } from "./diff.ts";
import { count } from "./numbers.ts";

/** In the order in which they were made. */
export const byId = (a: string, b: string): number => a.localeCompare(b, undefined, { numeric: true });

/** What names the group of a rollout; one without a group is its own. */
export const groupKey = ({ id, cells }: RolloutRow): string =>
  JSON.stringify([cells["group"] ?? id, cells["task_id"] ?? null, cells["batch"] ?? null]);

/** Of lines where some groups are unfolded: how many there are, and which group, or which of its rollouts, is one. */
export function unfoldedLines(groups: number, opened: readonly { at: number; n: number }[]) {
  const there = opened.filter(({ at }) => at >= 0).sort((a, b) => a.at - b.at);
  return {
    total: groups + there.reduce((sum, { n }) => sum + n, 0),
    place: (line: number): { group: number; of: number | null } => {
      let above = 0;
      for (const { at, n } of there) {
        if (line <= at + above) break;
        if (line <= at + above + n) return { group: at, of: line - above - at - 1 };
        above += n;
      }
      return { group: line - above, of: null };
    },
  };
}

const mean = (all: readonly number[]): number | null =>
  all.length === 0 ? null : all.reduce((sum, one) => sum + one, 0) / all.length;

/** The standard deviation of all there are; of equal numbers exactly 0. */
export function spread(all: readonly number[]): number | null {
  const middle = mean(all);
  if (middle === null || all.every((one) => one === all[0])) return middle === null ? null : 0;
  return Math.sqrt(mean(all.map((one) => (one - middle) ** 2)) ?? 0);
}

/** What became of a rollout, in the word of the data. */
export function fateIn(cells: { [name: string]: Cell }): string {
  if (cells["used"] === null || cells["used"] === undefined)
    return cells["mode"] === "eval" ? "evaluation" : "no fate yet";
  const reason = cells["reason"];
  return typeof reason === "string" ? reason : cells["used"] === true ? "used" : "dropped";
}

/** The same, to be shown. */
export const fateOf = (cells: { [name: string]: Cell }): string => shown(fateIn(cells));

/** The colours of fates, the same wherever they are named. */
const FATE_COLORS = new Map(
  Object.entries({
    ...{ used: 1, zero_std: 6, stale: 7, overlong: 2, error: 8, surplus: 9, cancelled: 3, unscorable: 4 },
    ...{ evaluation: 5, "no fate yet": 10, dropped: 10 },
  }),
);
const OTHERS = [5, 9, 3, 4, 6, 2, 7, 8];

/** The series whose colour a fate has; reasons of one's own get one by their name, apart from those seen before. */
export function colorOf(fate: string): number {
  const known = FATE_COLORS.get(fate);
  if (known !== undefined) return known;
  const own = [...FATE_COLORS.keys()].slice(11).map((name) => FATE_COLORS.get(name));
  const start = [...fate].reduce((sum, sign) => (sum * 31 + (sign.codePointAt(0) ?? 0)) % 9973, 7) % OTHERS.length;
  const turned = [...OTHERS.slice(start), ...OTHERS.slice(0, start)];
  const color = turned.find((one) => !own.includes(one)) ?? (turned[0] as number);
  FATE_COLORS.set(fate, color);
  return color;
}

/** A stretch of training, both ends with it. */
export interface Stretch {
  by: "gradient_step" | "policy_version";
  low: number;
  high: number;
}

const STRETCH = /^(gradient_step|policy_version) between (-?\d+) and (-?\d+)(?: and \((.*)\))?$/s;

/** A condition as a stretch of training and what else is asked. */
export function parted(where: string): { within: Stretch | null; rest: string } {
  const [, by, low, high, rest] = STRETCH.exec(where.trim()) ?? [];
  if (by === undefined) return { within: null, rest: where };
  return { within: { by: by as Stretch["by"], low: Number(low), high: Number(high) }, rest: rest ?? "" };
}

/** The other way round: the condition as one reads and types it. */
export function together(within: Stretch | null, rest: string): string {
  if (!within) return rest;
  return `${within.by} between ${within.low} and ${within.high}${rest === "" ? "" : ` and (${rest})`}`;
}

/** Places of stretches that lie in a part of training: the first, and the one behind the last. */
export function startsIn({ starts }: Pick<Fates, "starts">, within: Stretch): [number, number] {
  const from = starts.findIndex((at) => Number(at) >= within.low);
  const to = starts.findIndex((at) => Number(at) > within.high);
  return [from < 0 ? starts.length : from, to < 0 ? starts.length : to];
}

export interface Told {
  n: number;
  /** Share that taught something; before, null where nothing was before. */
  used: number;
  before: number | null;
  /** Fates whose share grew by 5 points or more; the most first. */
  grew: { fate: string; share: number; was: number }[];
}

const GREW = 0.05;

/** What became of the rollouts between two steps of training, and of those before. */
export function told({ layers }: Pick<Fates, "layers">, from: number, to: number): Told {
  const sum = (cells: readonly number[], a: number, b: number): number => cells.slice(a, b).reduce((s, n) => s + n, 0);
  const all = (a: number, b: number): number => layers.reduce((s, { n }) => s + sum(n, a, b), 0);
  const [n, were] = [all(from, to), all(0, from)];
  const shares = layers.map((layer) => ({
    fate: layer.reason,
    share: sum(layer.n, from, to) / (n || 1),
    was: sum(layer.n, 0, from) / (were || 1),
  }));
  const used = shares.find(({ fate }) => fate === "used");
  return {
    n,
    used: used?.share ?? 0,
    before: were === 0 ? null : (used?.was ?? 0),
    grew:
      were === 0
        ? []
        : shares
            .filter(({ fate, share, was }) => fate !== "used" && share - was >= GREW)
            .sort((a, b) => b.share - b.was - (a.share - a.was))
            .slice(0, 2),
  };
}

/** The condition that rollouts of a fate fulfil. */
export function conditionOf(fate: string): string {
  if (fate === "used") return "used and reason is null";
  if (fate === "no fate yet") return "used is null and mode is distinct from 'eval'";
  if (fate === "evaluation") return "reason = 'evaluation' or used is null and mode = 'eval'";
  return fate === "dropped" ? "not used and reason is null" : `reason = '${fate.replaceAll("'", "''")}'`;
}

/** What a prompt asks last: of messages in a row, "system: …", "user: …", the last one. */
export function askedLast(prompt: string): string {
  const last = prompt.lastIndexOf("\nuser: ");
  return last < 0 ? prompt.replace(/^user: /, "") : prompt.slice(last + "\nuser: ".length);
}

interface Call {
  name?: unknown;
  arguments?: unknown;
  function?: { name?: unknown; arguments?: unknown };
}

/** Tool calls in a line, `read(lines="0-9")`; what is no list of calls stays as it is. */
export function callsOf(json: string): string {
  try {
    const read: unknown = JSON.parse(json);
    const all = (Array.isArray(read) ? read : [read]) as Call[];
    return all
      .map((call) => {
        const { name, arguments: given } = call.function ?? call;
        if (typeof name !== "string") throw new TypeError("no call");
        let words: unknown = given ?? {};
        if (typeof words === "string") words = JSON.parse(words); // as some servers send them
        const listed = Object.entries(words as object).map(([word, v]) => `${word}=${JSON.stringify(v)}`);
        return `${name}(${listed.join(", ")})`;
      })
      .join("; ");
  } catch {
    return json;
  }
}

/** The line that stands for a text: of tests their result, which is last; of all else the first. */
export function headOf(text: string): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const last = lines[lines.length - 1] ?? "";
  return /\b\d+ (failed|passed|errors?)\b/i.test(last) ? last : (lines[0] ?? "");
}

export function solvedOf({ solved, rollouts }: PromptRow): "never" | "sometimes" | "always" {
  return solved === 0 ? "never" : solved === rollouts ? "always" : "sometimes";
}

/** Runs of equal turns, and each turn that differs, by its place in two rollouts. */
export function turnsApart(a: readonly string[], b: readonly string[]): { from: number; to: number; same: boolean }[] {
  const parts: { from: number; to: number; same: boolean }[] = [];
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const same = i < a.length && i < b.length && a[i] === b[i];
    const before = parts[parts.length - 1];
    if (same && before?.same === true) before.to = i;
    else parts.push({ from: i, to: i, same });
  }
  return parts;
}

/** A prompt over training: attempts in each stretch, and those that solved it. */
export type Strip = Pick<PromptRow, "tried" | "solved_in">;

/** Where the stretches lie, and what their readings are called. */
export interface Stretches {
  begin: number;
  width: number;
  x: "update" | "version";
}

/** A stretch of a prompt in words. */
export function stretchWords({ tried, solved_in }: Strip, i: number, { begin, width, x }: Stretches): string {
  const [low, n] = [begin + i * width, tried[i] ?? 0];
  const where = width === 1 ? `${x} ${count(low)}` : `${x}s ${count(low)} to ${count(low + width - 1)}`;
  return n === 0 ? `${where}: not tried` : `${where}: ${count(solved_in[i] ?? 0)} of ${count(n)} solved`;
}

/** The whole strip in words: where it was solved first, and how often at the beginning and at the end. */
export function stripWords(strip: Strip, where: Stretches): string {
  const places = strip.tried.flatMap((n, i) => (n > 0 ? [i] : []));
  const [first, last] = [places[0], places[places.length - 1]];
  if (first === undefined || last === undefined) return "not tried";
  const solved = strip.solved_in.findIndex((n) => n > 0);
  if (solved < 0) return `never solved, from ${where.x} ${count(where.begin + first * where.width)} on`;
  const words = (i: number): string => stretchWords(strip, i, where);
  return [`at first ${words(first)}`, solved > first ? `first solved ${words(solved)}` : "", `at last ${words(last)}`]
    .filter((part) => part !== "")
    .join("; ");
}
