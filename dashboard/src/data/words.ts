/** Words in texts as the server finds them: what a copy of the page searches by. */

import { escaped } from "./search.ts";

/** Whether all words of a search stand somewhere in a text, `*` for any letters and `?` for one: as the server does it
 *  (`searched` of `server/runs/columns.py`). */
export function wordsIn(search: string): (text: string) => boolean {
  const words = folded(search)
    .split(/\s+/)
    .filter((word) => word !== "")
    .map((word) => spellings(word).map(wild).join("|"))
    .map((source) => new RegExp(source, "u"));
  return (text) => words.every((word) => word.test(folded(text)));
}

const wild = (word: string): string => escaped(word).replace(/\\\*/g, "[^]*").replace(/\\\?/g, "[^\\n]");

const DECIMAL = /^(?=.*[.e])(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,2})?$/;

/** A word as it was typed; of a number such as 3e-3 or 0.003 also what else people write for it. */
function spellings(word: string): string[] {
  const number = DECIMAL.test(word) ? Number(word) : 0;
  const plain = number.toFixed(12).replace(/\.?0+$/, "");
  if (number === 0 || Number(plain) !== number) return [word];
  const [digits = "", power = ""] = number.toExponential().replace("+", "").split("e");
  const padded = `${power.startsWith("-") ? "-" : "+"}${power.replace("-", "").padStart(2, "0")}`;
  return [...new Set([word, plain, `${digits}e${power}`, `${digits}e${padded}`])];
}

/** Without case, letter by letter, as Python folds it. */
export const folded = (text: string): string => [...text].map((letter) => letter.toUpperCase().toLowerCase()).join("");
