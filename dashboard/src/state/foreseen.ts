/** Asks what happened at a point when a finger comes down on it; a click or a double click, that is known later. */

import type { Cause } from "../api/names.ts";
import { source } from "./here.ts";

export interface Point {
  run: string;
  x: string;
  at: number;
  key: string;
}

const word = ({ run, x, at, key }: Point): string => `${run} ${x} ${at} ${key}`;
let asked: { word: string; answer: Promise<Cause> } | null = null;

/** A click on this point may be on its way. */
export function foresee(point: Point): void {
  const answer = source.cause(point.run, point.x, point.at, point.key, null);
  answer.catch(() => undefined); // who opens the drawer hears of it
  asked = { word: word(point), answer };
}

/** What happened there: the answer that is under way, or a new question. */
export function causeOf(point: Point, window: number | null): Promise<Cause> {
  const ready = window === null && asked?.word === word(point) ? asked.answer : null;
  asked = null;
  return ready ?? source.cause(point.run, point.x, point.at, point.key, window);
}
