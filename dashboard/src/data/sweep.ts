/** A sweep on axes: where a value stands, which configurations lie in the ranges that a hand has drawn. */

import type { Cell } from "../api/names.ts";
import { plain, rounded, short } from "./numbers.ts";
import { linear, log } from "./ticks.ts";

/** One setting, or the score, as an axis from 0 (bottom) to 1 (top). */
export interface SettingAxis {
  log: boolean;
  /** Whether it could be the other: numbers, none below 0, that differ. */
  either: boolean;
  /** Values that are no numbers, in order; empty for numbers. */
  words: string[];
  ticks: { at: number; text: string }[];
  /** Where a value stands; null where it is not set. */
  at: (value: Cell) => number | null;
}

const MOST_TICKS = 6;
/** What zero takes of a log axis, at its foot. */
const FOOT = 0.14;

const isNumber = (value: Cell): value is number => typeof value === "number" && Number.isFinite(value);
const word = (value: Cell): string => (typeof value === "string" ? value : plain(value));

/** How unevenly places in order are spread; the least where all gaps are alike. */
const unevenness = (places: readonly number[]): number =>
  places.slice(1).reduce((sum, at, i) => sum + (at - (places[i] as number)) ** 2, 0) /
  ((places.at(-1) as number) - (places[0] as number)) ** 2;

/** Whether numbers above 0, in order, are spread by factors, as in `rollbook plot`: more evenly on a log axis. */
function byFactors(own: readonly number[]): boolean {
  const [low = 0, high = 0] = [own[0], own.at(-1)];
  return low > 0 && high >= 8 * low && (own.length < 3 || unevenness(own.map(Math.log)) < unevenness(own));
}

/**
 * The axis of values: numbers by size, anything else by its word. `everyValue`: each of a few numbers has a tick.
 * `asLog`: what a hand chose; else log where the numbers are spread so. Zero stands at the foot of a log axis.
 */
export function axisOf(values: readonly Cell[], everyValue = true, asLog?: boolean): SettingAxis {
  const there = values.filter((value) => value !== null);
  const numbers = there.filter(isNumber);
  if (numbers.length < there.length || numbers.length === 0) {
    const words = [...new Set(there.map(word))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const place = (i: number): number => (words.length > 1 ? i / (words.length - 1) : 0.5);
    const every = Math.ceil(words.length / 12);
    return {
      log: false,
      either: false,
      words,
      ticks: words.map((text, i) => ({ at: place(i), text })).filter((_, i) => i % every === 0),
      at: (value) => (value === null || !words.includes(word(value)) ? null : place(words.indexOf(word(value)))),
    };
  }
  const own = [...new Set(numbers)].sort((a, b) => a - b);
  const [low, high] = [own[0] as number, own.at(-1) as number];
  const above = own.filter((v) => v > 0);
  const least = above[0] ?? 1;
  const either = low >= 0 && high > low && high > least;
  const isLog = either && (asLog ?? byFactors(above));
  const foot = isLog && low === 0 ? FOOT : 0;
  const at = (value: Cell): number | null => {
    if (!isNumber(value) || (isLog && value < 0)) return null;
    if (high === low) return 0.5;
    if (!isLog) return (value - low) / (high - low);
    return value === 0 ? 0 : foot + ((1 - foot) * Math.log(value / least)) / Math.log(high / least);
  };
  const scale = isLog ? [...(foot > 0 ? [0] : []), ...log(least, high, MOST_TICKS)] : linear(low, high, MOST_TICKS);
  const marked = everyValue && own.length <= MOST_TICKS ? own : scale;
  const write = marked === own ? (v: number): string => plain(rounded(v, 3)) : short; // a setting as everywhere
  const ticks = marked.map((v) => ({ at: at(v) as number, text: write(v) }));
  // Of values that stand too near each other the first keeps its text.
  const apart = ticks.filter(
    (tick, i) => i === 0 || ticks.slice(0, i).every((other) => Math.abs(tick.at - other.at) > 0.05),
  );
  return { log: isLog, either, words: [], ticks: apart, at };
}

/** What hands chose for axes, as it stands in the address: `config.lr:log~config.clip:linear`. */
export function readScales(text: string): ReadonlyMap<string, boolean> {
  const scales = new Map<string, boolean>();
  for (const part of text.split("~")) {
    const [, name, scale] = /^(.+):(log|linear)$/.exec(part) ?? [];
    if (name) scales.set(name, scale === "log");
  }
  return scales;
}

export const writeScales = (scales: ReadonlyMap<string, boolean>): string =>
  [...scales].map(([name, isLog]) => `${name}:${isLog ? "log" : "linear"}`).join("~");

/** Ranges that a hand has drawn: setting -> from, to, as places on its axis. */
export type Ranges = ReadonlyMap<string, readonly [number, number]>;

/** `lr:0.2_0.5~clip:0_0`, as it stands in the address. */
export function readRanges(text: string): Ranges {
  const ranges = new Map<string, readonly [number, number]>();
  for (const part of text.split("~")) {
    const cut = part.lastIndexOf(":");
    const [a, b] = part
      .slice(cut + 1)
      .split("_")
      .map(Number);
    if (cut > 0 && a !== undefined && b !== undefined && a <= b) ranges.set(part.slice(0, cut), [a, b]);
  }
  return ranges;
}

export const writeRanges = (ranges: Ranges): string =>
  [...ranges].map(([name, [a, b]]) => `${name}:${Number(a.toFixed(3))}_${Number(b.toFixed(3))}`).join("~");

/** Whether a configuration lies in all ranges; what is not set lies in none. */
export function fits(values: ReadonlyMap<string, number | null>, ranges: Ranges): boolean {
  for (const [name, [a, b]] of ranges) {
    const at = values.get(name);
    if (at === undefined) continue;
    if (at === null || at < a - 1e-9 || at > b + 1e-9) return false;
  }
  return true;
}

/** 1 for the best quarter of `many` … 4 for the last. */
export const quarter = (place: number, many: number): number =>
  Math.min(4, Math.floor((4 * place) / Math.max(1, many)) + 1);

/** Last parts that say nothing by themselves. */
const BARE = /^(id|name|kind|type|cls|class|value|size|_target_)$/;

/** How settings are called beside each other: by their last part, or by more where others end so or it says nothing. */
export function namesOfSettings(columns: readonly string[]): (column: string) => string {
  const all = [...new Set(columns)].map((column) => column.replace(/^config\./, "").split("."));
  const ends = (parts: readonly string[], n: number): string => parts.slice(-n).join(".");
  return (column) => {
    const parts = column.replace(/^config\./, "").split(".");
    let n = BARE.test(parts.at(-1) ?? "") ? 2 : 1;
    while (n < parts.length && all.filter((other) => ends(other, n) === ends(parts, n)).length > 1) n++;
    return ends(parts, n);
  };
}

/** A smooth path through points from left to right; where one is missing it is broken. */
export function thread(points: readonly (readonly [number, number] | null)[]): string {
  let path = "";
  points.forEach((point, i) => {
    const before = points[i - 1];
    if (!point) return;
    const [x, y] = point.map((v) => Math.round(v * 10) / 10) as [number, number];
    if (!before) path += `M${x} ${y}`;
    else {
      const middle = Math.round(5 * (before[0] + point[0])) / 10;
      path += `C${middle} ${Math.round(before[1] * 10) / 10} ${middle} ${y} ${x} ${y}`;
    }
  });
  return path;
}

/** A part of an axis, from 0 (bottom) to 1. */
export type Range = readonly [number, number];

/**
 * The range of an axis after a key: arrows move it, with shift its upper end, and begin with the lowest or highest
 * quarter; of words one at a time. null: the whole axis; undefined: the key means nothing here.
 */
export function keyedRange(
  range: Range | undefined,
  key: string,
  shift: boolean,
  words: number,
): Range | null | undefined {
  if (key === "Delete" || key === "Backspace") return null;
  if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
  const up = key === "ArrowUp";
  const tidy = (v: number): number => Math.round(Math.max(0, Math.min(1, v)) * 1e6) / 1e6;
  if (words > 1) {
    const place = range ? tidy(range[0] + (up ? 1 : -1) / (words - 1)) : up ? 0 : 1;
    return [place, place];
  }
  if (range === undefined) return up ? [0.75, 1] : [0, 0.25];
  const [low, high] = range;
  if (shift) return [low, tidy(Math.max(low + STEP, high + (up ? STEP : -STEP)))];
  const by = up ? Math.min(STEP, 1 - high) : -Math.min(STEP, low);
  return [tidy(low + by), tidy(high + by)];
}

const STEP = 0.05;
