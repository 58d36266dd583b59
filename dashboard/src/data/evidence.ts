/** What a finding rests on, as values with their units. */

import { bytes, clock, count, plain, seconds, value } from "./numbers.ts";

/** Of values and limits; the others are counts, times or texts. */
const MEASURED = /value|limit|usual|median|mean|low|high|last|before|after|largest|smallest|worst|best/;

/** What only programs need to find the row again. */
const PLACES = ["row", "count"];

/** The unit that a key is measured in by its name; "" where it has none, or none is known. */
export function unitOf(key: string): string {
  return /(^|[/_])(kl|entropy|log_?prob\w*)($|[/_])/i.test(key) ? "nats" : /seconds$/.test(key) ? "s" : "";
}

/** Name and text of each entry; of an entry with parts the parts. Text: the value with its unit. */
export function evidence(of: Record<string, unknown>, about = "", prefix = ""): [string, string][] {
  const key = typeof of["key"] === "string" ? of["key"] : about;
  return Object.entries(of).flatMap(([name, v]): [string, string][] => {
    const called = `${prefix}${name.replaceAll("_", " ")}`;
    if (v === null || PLACES.includes(name)) return [];
    if (name === "from" && JSON.stringify(v) === JSON.stringify(of["clocks"])) return []; // it began where it is said
    if (typeof v === "object" && !Array.isArray(v))
      return evidence(v as Record<string, unknown>, key, name === "clocks" ? "at " : `${called} `);
    if (Array.isArray(v)) return [[called, v.map((one) => written(name, one, key)).join(", ")]];
    return [[called.replace(/ (seconds|bytes)$/, ""), written(name, v, key)]];
  });
}

function written(name: string, v: unknown, key: string): string {
  if (typeof v !== "number") return plain(v);
  if (/(^|_)seconds$/.test(name)) return seconds(v);
  if (/(^|_)bytes$/.test(name)) return bytes(v);
  if (name === "time") return clock(v > 1e14 ? v / 1e9 : v);
  if (Number.isInteger(v) && !MEASURED.test(name)) return count(v);
  const unit = MEASURED.test(name) ? unitOf(key) : "";
  return value(v) + (unit === "" ? "" : ` ${unit}`);
}
