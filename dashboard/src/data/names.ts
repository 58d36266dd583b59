/** Names of runs. Of names beside each other what all share is left out; what differs stays, at the room there is. */

/** A run by its name, what tells it from others of that name, and its seed. */
export const fullName = ({ name, own, seed }: { name: string; own?: string; seed: number | null }): string =>
  [own ? `${name} ${own}` : name, ...(seed === null ? [] : [`seed ${seed}`])].join(", ");

/** Names of which some are the same, those with their ids. */
export function withIds(names: readonly string[], ids: readonly string[]): string[] {
  const often = new Map<string, number>();
  for (const name of names) often.set(name, (often.get(name) ?? 0) + 1);
  return names.map((name, i) => ((often.get(name) ?? 0) > 1 ? `${name} ${ids[i]}` : name));
}

interface Word {
  text: string;
  /** What stands between it and the word before. */
  gap: string;
  /** Its place in the name; with the number that belongs to it, those of both. */
  from: number;
  to: number;
}

/** `CartPole-v1__ppo lr=3e-4` in words; the minus of a number is none that separates. */
function wordsOf(name: string): Word[] {
  const found: Word[] = [];
  let gap = "";
  for (const part of name.split(/([\s,_/|;:=]+|(?<!\d[eE])(?<=[^\s,_/|;:=])-(?=\w))/)) {
    if (part === "") continue;
    if (/^[\s,_/|;:=]+$|^-$/.test(part)) gap += part;
    else {
      found.push({ text: part, gap, from: found.length, to: found.length });
      gap = "";
    }
  }
  return found;
}

/** The longest row of words that both have, in their order. */
function common(a: readonly string[], b: readonly string[]): string[] {
  const long = a.map(() => new Uint16Array(b.length + 1)).concat(new Uint16Array(b.length + 1));
  const at = (i: number, k: number): number => long[i]?.[k] ?? 0;
  for (let i = a.length - 1; i >= 0; i--)
    for (let k = b.length - 1; k >= 0; k--)
      (long[i] as Uint16Array)[k] = a[i] === b[k] ? at(i + 1, k + 1) + 1 : Math.max(at(i + 1, k), at(i, k + 1));
  const out: string[] = [];
  for (let i = 0, k = 0; i < a.length && k < b.length;)
    if (a[i] === b[k]) out.push(a[i++] as string, ...(k++, []));
    else if (at(i + 1, k) >= at(i, k + 1)) i++;
    else k++;
  return out;
}

const isNumber = (word: string): boolean => /^[-+.]?\d/.test(word);
/** A time of the clock, or a hash: it tells runs apart, and says nothing. */
const isStamp = (word: string): boolean => /^\d{8,}$|^(?=.*\d)[0-9a-f]{7,}$/.test(word);

/** Which words of a name stay: those that not all have; a number together with the word before it, "clip 0.1". */
function told(own: readonly Word[], shared: readonly string[]): Word[] {
  let next = shared.length - 1;
  const kept = own.map(() => true);
  for (let i = own.length - 1; i >= 0 && next >= 0; i--)
    if (own[i]?.text === shared[next]) {
      kept[i] = false;
      next--;
    }
  const out: Word[] = [];
  own.forEach((word, i) => {
    if (!kept[i]) return;
    const label = own[i - 1];
    const alone = label === undefined || isNumber(label.text) || !isNumber(word.text) || isStamp(word.text);
    if (alone || !/^[\s=:]+$/.test(word.gap)) {
      out.push(word);
      return;
    }
    if (out.at(-1) === label) out.pop();
    out.push({ ...label, text: label.text + word.gap + word.text, to: i });
  });
  return out;
}

const alike = (texts: readonly string[]): number => texts.length - new Set(texts).size;

function written(words: readonly Word[]): string {
  return words
    .map((word, i) => {
      const before = words[i - 1];
      if (before === undefined) return word.text;
      return (before.to === word.from - 1 ? word.gap.replace(/_+/g, "_") : " ") + word.text;
    })
    .join("");
}

/** Of a word, where there is no room for all. */
const LETTERS = [8, 5, 4, 3, 2, 1];
/** Letters that names may have too many rather than to be alike: digits are narrow. */
const OVER = 3;

/** Within `most` letters: its beginning and its end; where that makes two alike, what is different of them. */
function cut(names: readonly string[], most: number): string[] {
  const half = (name: string, tail: number): string =>
    name.length <= most ? name : `${name.slice(0, Math.max(0, most - 1 - tail))}…${name.slice(name.length - tail)}`;
  const sound = alike(names);
  const tries = [0.5, 0.35, 0.7, 1].map((share) => Math.max(1, Math.ceil((most - 1) * share)));
  const cuts = tries.map((tail) => names.map((name) => half(name, tail)));
  const best = cuts.find((some) => alike(some) === sound);
  const told = best ?? inShort(names, most, LETTERS) ?? inShort(names, most + OVER, [1]);
  if (told) return told;
  return names.map((name) => {
    if (name.length <= most) return name;
    const others = names.filter((other) => other !== name);
    const from = Math.max(0, ...others.map((other) => firstApart(name, other)).filter((i) => i < name.length - most));
    return from === 0 ? half(name, tries[0] ?? 1) : `…${name.slice(from, from + most - 1)}`;
  });
}

/** A number in the fewest letters: 1e-3 of 0.001, 10k of 10000. */
function compact(number: string): string {
  const v = Number(number);
  if (!Number.isFinite(v)) return number;
  const all = [number, v.toExponential().replace("e+", "e")];
  for (const [unit, factor] of [
    ["k", 1e3],
    ["M", 1e6],
  ] as const)
    if (v % factor === 0) all.push(v / factor + unit);
  return all.reduce((a, b) => (b.length < a.length && !/^0\D/.test(b) ? b : a));
}

/** Of each word so many letters, and as many more as tell it from the others. */
function abbreviated(words: readonly string[], letters: number): Map<string, string> {
  const short = (word: string): string => {
    let most = letters;
    while (most < word.length && words.some((other) => other !== word && other.startsWith(word.slice(0, most)))) most++;
    return word.slice(0, most);
  };
  return new Map(words.map((word) => [word, isNumber(word) ? word : short(word)]));
}

/** Long names by their values alone, each word by its first letters: "6 cos 1e-4 100"; null where that is no help. */
function inShort(names: readonly string[], most: number, tries: readonly number[]): string[] | null {
  const words = names.map((name) => (name.length <= most ? null : wordsOf(name).map(({ text }) => text)));
  const long = words.filter((own) => own !== null).map((own) => new Set(own));
  const labels = new Set([...(long[0] ?? [])].filter((word) => !isNumber(word) && long.every((own) => own.has(word))));
  const values = [...new Set(long.flatMap((own) => [...own]))].filter((word) => !labels.has(word));
  for (const letters of tries)
    for (const numbers of [String, compact]) {
      const told = abbreviated(values, letters);
      const write = (word: string): string => (isNumber(word) ? numbers(word) : (told.get(word) ?? word));
      const short = names.map(
        (name, i) =>
          words[i]
            ?.filter((word) => !labels.has(word))
            .map(write)
            .join(" ") ?? name,
      );
      if (short.every((name) => name.length <= most && name !== "") && alike(short) === alike(names)) return short;
    }
  return null;
}

function firstApart(a: string, b: string): number {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  return i;
}

/**
 * What tells names apart that stand beside each other, within `most` letters each.
 *
 * The one rule for legends, labels, tables and sentences of the page. Two names that differ are not written alike, if
 * few more letters prevent it; a name of which nothing would be left stands whole. `whole`: names that have the room
 * are not shortened at all.
 */
export function shortNames(names: readonly string[], most = 16, whole = false): readonly string[] {
  const asked = `${most} ${whole} ${names.length} ${names.join("\n")}`;
  const known = made.get(asked);
  if (known) return known;
  const short = inParts(names, most, whole) ?? shortened(names, most, whole);
  if (made.size >= KEPT) made.clear();
  made.set(asked, short);
  return short;
}

/** What stands between a run and one of several keys of it in a name: each side is shortened by itself. */
export const BETWEEN = " · ";

/** The two sides of names of runs and keys, `ppo, seed 0 · train/return`; null of other names. */
export function sidesOf(names: readonly string[]): [runs: string[], keys: string[]] | null {
  const parts = names.map((name) => name.split(BETWEEN));
  if (names.length < 2 || !parts.every(({ length }) => length === 2)) return null;
  return [parts.map(([run = ""]) => run), parts.map(([, key = ""]) => key)];
}

/** A side that all names share is left out. */
function inParts(names: readonly string[], most: number, whole: boolean): readonly string[] | null {
  const [runs, keys] = sidesOf(names) ?? [];
  if (!runs || !keys) return null;
  if (new Set(runs).size === 1) return shortNames(keys, most, whole);
  if (new Set(keys).size === 1) return shortNames(runs, most, whole);
  const right = shortNames(keys, most >> 1);
  const left = shortNames(runs, most - BETWEEN.length - Math.max(...right.map(({ length }) => length)));
  return left.map((run, i) => run + BETWEEN + right[i]);
}

/** Charts of one page ask for the same names, and a live table again and again. */
const made = new Map<string, readonly string[]>();
const KEPT = 100;

function shortened(names: readonly string[], most: number, whole: boolean): string[] {
  if (whole && names.every((name) => name.length <= most)) return [...names];
  const words = names.map(wordsOf);
  const texts = words.map((own) => own.map(({ text }) => text));
  const others = [...new Set(names)].length > 1;
  const shared = others ? texts.reduce((a, b) => common(a, b)) : [];
  let left = words.map((own) => told(own, shared));
  const write = (some: Word[][]): string[] =>
    some.map((own, i) => (own.length === 0 ? (names[i] as string) : written(own)));
  const sound = alike(names);
  if (others) {
    const plain = left.map((own) => own.filter(({ text }) => !isStamp(text)));
    if (plain.every((own) => own.length > 0) && alike(write(plain)) === sound) left = plain;
    left = fewest(left, most, (some) => alike(write(some)) === sound, write);
  }
  const all = write(left);
  const apart = alike(all) === sound ? all : names;
  const bare = numbersOf(apart);
  const isNeeded = apart.some((name) => name.length > most) && alike(bare) === sound;
  const given = isNeeded && bare.every((name) => name.length <= most) ? bare : [...apart];
  return longApart(given, most) ?? cut(given, Math.max(3, most));
}

/** Beside names that fit, the long ones by what differs among themselves; null where that makes two alike. */
function longApart(names: readonly string[], most: number): string[] | null {
  const long = [...new Set(names.filter((name) => name.length > most))];
  if (long.length < 2 || names.every((name) => name.length > most)) return null;
  const told = new Map(shortened(long, most, false).map((short, i) => [long[i] as string, short]));
  const all = names.map((name) => told.get(name) ?? name);
  return alike(all) === alike(names) ? all : null;
}

const LABEL = /(?<![\d.])[A-Za-z_]+[ =:]?(?=[-+.]?\d)/g; // not the e of 3e-4

/** Of names that differ in their numbers alone the numbers: "0.01-0.99 1" of "lr0.01-g0.99 seed 1". */
function numbersOf(names: readonly string[]): string[] {
  const bones = new Set(names.map((name) => name.replace(/\d+(\.\d+)?(e[-+]?\d+)?/g, "#")));
  return bones.size > 1 ? [...names] : names.map((name) => name.replace(LABEL, "").trim());
}

/** Where there is no room for all words: without those, from the last on, that are not needed to tell names apart. */
function fewest(
  left: Word[][],
  most: number,
  tells: (some: Word[][]) => boolean,
  write: (some: Word[][]) => string[],
): Word[][] {
  const fits = (some: Word[][]): boolean => write(some).every((text) => text.length <= most);
  const many = Math.max(0, ...left.map((own) => own.length));
  const even = left.every((own) => own.length === many);
  let best = left;
  for (let k = 1; k <= many && !fits(best); k++) {
    // Of names with equally many words any place can go, of others the last words.
    const fewer = best.map((own) => (even ? own.filter((_, i) => i !== many - k) : own.slice(0, -1)));
    if (fewer.every((own) => own.length > 0) && tells(fewer)) best = fewer;
    else if (!even) break;
  }
  return best;
}
