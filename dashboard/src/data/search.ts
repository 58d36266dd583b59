/** Searches as people type them: words, wildcards, regular expressions; conditions where runs are filtered. */

import { written } from "./numbers.ts";

export interface Matcher {
  test(text: string): boolean;
}

export const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** `loss*value` or `critic_?`; what has other signs of a regular expression is one, if it can be read as such. */
function term(text: string): Matcher {
  if (/[|^$[\](){}+\\]|\.[*+?]/.test(text)) {
    try {
      return new RegExp(text, "i");
    } catch {
      return new RegExp(escaped(text), "i");
    }
  }
  return new RegExp(escaped(text).replace(/\\\*/g, ".*").replace(/\\\?/g, "."), "i");
}

/** What is typed to find names: all words must occur; `*` is any letters, `?` one; null where nothing is typed. */
export function pattern(text: string): Matcher | null {
  const whole = /^\s*\/(.+)\/i?\s*$/.exec(text)?.[1];
  if (whole !== undefined) return term(`(?:${whole})`);
  const terms = text
    .split(/\s+/)
    .filter((word) => word !== "")
    .map(term);
  return terms.length === 0 ? null : { test: (name) => terms.every((one) => one.test(name)) };
}

/** What is asked of the table of runs: words that occur somewhere, or a condition. */
export interface Asked {
  filter?: string;
  search?: string;
}

const CONDITION = /[=<>]|\b(has|like|ilike|between|is\s+(not\s+)?null|in\s*\(|not\s+in)\b|^\s*(not\s|\w+\()/i;
const SEARCHED = `concat_ws(' ', project, name, id, "group", notes)`;

/** The text over the table of runs: a condition filters, `/…/` is a regular expression, anything else is words. */
export function askedOf(text: string): Asked {
  const typed = text.trim();
  if (typed === "") return {};
  const regex = /^\/(.+)\/i?$/.exec(typed)?.[1];
  if (regex !== undefined) return { filter: `regexp_matches(${SEARCHED}, '${regex.replaceAll("'", "''")}', 'i')` };
  return CONDITION.test(typed) ? { filter: typed } : { search: typed.replace(/^'(.*)'$|^"(.*)"$/, "$1$2") };
}

const LONGEST = 100; // letters of a text: longer ones may have been cut

/** The condition that runs with this value in a column meet; null of what is no single value. */
export function conditionFor(column: string, value: unknown): string | null {
  const name = column
    .split(".")
    .map((part) => (/^[a-z_]\w*$/i.test(part) ? part : `"${part.replaceAll('"', '""')}"`))
    .join(".");
  if (typeof value === "number") return `${name} = ${written(value)}`;
  if (typeof value === "boolean") return `${name} = ${value}`;
  if (typeof value !== "string" || value.length >= LONGEST) return null;
  return `${name} ${column === "tags" ? "has" : "="} '${value.replaceAll("'", "''")}'`;
}

/** What is asked with a further condition: one that stands there already is no further one, and words stay words. */
export function narrowed({ filter = "", search = "" }: Asked, condition: string): Required<Asked> {
  if (filter === "" || filter.split(" and ").includes(condition)) return { filter: filter || condition, search };
  return { filter: `${/\bor\b/i.test(filter) ? `(${filter})` : filter} and ${condition}`, search };
}
