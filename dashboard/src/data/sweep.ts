/** A sweep on axes: where a value stands, which configurations lie in the ranges that a hand has drawn. */

import type { Cell } from "../api/names.ts";
import { plain, short } from "./numbers.ts";
import { linear, log } from "./ticks.ts";

/** One setting, or the score, as an axis from 0 (bottom) to 1 (top). */
export interface SettingAxis {
  log: boolean;
  /** Values that are no numbers, in order; empty for numbers. */
  words: string[];
  ticks: { at: number; text: string }[];
  /** Where a value stands; null where it is not set. */
  at: (value: Cell) => number | null;
}

/** So far apart numbers stand on a log axis, as in `rollbook plot`. */
const FAR = 50;
const MOST_TICKS = 6;

const isNumber = (value: Cell): value is number => typeof value === "number" && Number.isFinite(value);
const word = (value: Cell): string => (typeof value === "string" ? value : plain(value));

/** The axis of values: numbers by size, anything else by its word. `everyValue`: each of a few numbers has a tick. */
export function axisOf(values: readonly Cell[], everyValue = true): SettingAxis {
  const there = values.filter((value) => value !== null);
  const numbers = there.filter(isNumber);
  if (numbers.length < there.length || numbers.length === 0) {
    const words = [...new Set(there.map(word))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const place = (i: number): number => (words.length > 1 ? i / (words.length - 1) : 0.5);
    const every = Math.ceil(words.length / 12);
    return {
      log: false,
      words,
      ticks: words.map((text, i) => ({ at: place(i), text })).filter((_, i) => i % every === 0),
      at: (value) => (value === null || !words.includes(word(value)) ? null : place(words.indexOf(word(value)))),
    };
  }
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const isLog = low > 0 && high / low >= FAR;
  const scaled = (v: number): number => (isLog ? Math.log(v) : v);
  const at = (value: Cell): number | null =>
    !isNumber(value) || (isLog && value <= 0)
      ? null
      : high > low
        ? (scaled(value) - scaled(low)) / (scaled(high) - scaled(low))
        : 0.5;
  const own = [...new Set(numbers)].sort((a, b) => a - b);
  const marked =
    everyValue && own.length <= MOST_TICKS ? own : isLog ? log(low, high, MOST_TICKS) : linear(low, high, MOST_TICKS);
  const ticks = marked.map((v) => ({ at: at(v) as number, text: short(v) }));
  // Of values that stand too near each other the first keeps its text.
  const apart = ticks.filter(
    (tick, i) => i === 0 || ticks.slice(0, i).every((other) => Math.abs(tick.at - other.at) > 0.05),
  );
  return { log: isLog, words: [], ticks: apart, at };
}

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

/** A setting without what all names begin with. */
export const shortSetting = (column: string): string => column.replace(/^config\./, "");

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
