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

/** A word of a name, or a setting with its value: `lr=3e-4`. */
interface Part {
  /** Of a setting; "" of a word. */
  label: string;
  /** What stands between a label and its value. */
  between: string;
  value: string;
  /** What stands before it. */
  gap: string;
  /** Its first and its last word in the name. */
  from: number;
  to: number;
  /** What it is in all names: its label, or its place among the words. */
  key: string;
}

/** `CartPole-v1__ppo lr=3e-4` in words, each with what stands before it; the minus of a number does not separate. */
function wordsOf(name: string): [text: string, gap: string][] {
  const found: [string, string][] = [];
  let gap = "";
  for (const part of name.split(/([\s,_/|;:=]+|(?<!\d[eE])(?<=[^\s,_/|;:=])-(?=\w))/)) {
    if (part === "") continue;
    if (/^[\s,_/|;:=]+$|^-$/.test(part)) gap += part;
    else {
      found.push([part, gap]);
      gap = "";
    }
  }
  return found;
}

const isNumber = (word: string): boolean => /^[-+.]?\d/.test(word);
/** A time of the clock, or a hash: it tells runs apart, and says nothing. */
const isStamp = (word: string): boolean => /^\d{8,}$|^(?=.*\d)[0-9a-f]{7,}$/.test(word);
const JOINS = /^[\s=:]+$/;

/** A number belongs to the word before it, "clip_range 0.1". */
function partsOf(name: string): Part[] {
  const words = wordsOf(name);
  const out: Part[] = [];
  let places = 0;
  words.forEach(([value, gap], i) => {
    const before = words[i - 1]?.[0] ?? "0";
    const labelled = isNumber(value) && !isStamp(value) && !isNumber(before) && JOINS.test(gap);
    if (!labelled) {
      out.push({ label: "", between: "", value, gap, from: i, to: i, key: `${places++}` });
      return;
    }
    let from = i - 1;
    while (from > 0 && words[from]?.[1] === "_") from--;
    const [, ahead = ""] = words[from] ?? [];
    if (!/\s/.test(ahead) && !(from === 0 && /\s/.test(gap))) from = i - 1;
    while ((out.at(-1)?.from ?? -1) >= from) {
      out.pop();
      places--;
    }
    const label = words
      .slice(from, i)
      .map(([text, own], at) => (at === 0 ? text : own + text))
      .join("");
    out.push({ label, between: gap, value, gap: words[from]?.[1] ?? "", from, to: i, key: ` ${label}` });
  });
  return out;
}

/** The longest row of texts that both have, in their order. */
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

const textOf = ({ label, value }: Part): string => (label === "" ? value : `${label} ${value}`);

/** The parts of a name that not all have. */
function told(own: readonly Part[], shared: readonly string[]): Part[] {
  let next = shared.length - 1;
  return own
    .toReversed()
    .filter((part) => next < 0 || textOf(part) !== shared[next] || next-- < 0)
    .toReversed();
}

const apart = (texts: readonly string[]): boolean => new Set(texts).size === texts.length && !texts.includes("");

/** How a part is written: its label, and its value. */
type Spell = (part: Part) => string;
const inFull: Spell = ({ label, between, value }) => label + between + value;

const written = (parts: readonly Part[], spell: Spell): string =>
  parts
    .map((part, i) => {
      const before = parts[i - 1];
      if (before === undefined) return spell(part);
      return (before.to === part.from - 1 ? part.gap.replace(/_+/g, "_") : " ") + spell(part);
    })
    .join("");

/** Of each word so many letters, and as many more as tell it from the others. */
function abbreviated(words: readonly string[], letters: number): Map<string, string> {
  const short = (word: string): string => {
    let most = word.length < 3 ? word.length : letters;
    while (most < word.length && words.some((other) => other !== word && other.startsWith(word.slice(0, most)))) most++;
    return word.slice(0, most).replace(/[_.]+$/, "");
  };
  return new Map(words.map((word) => [word, short(word)]));
}

/** Letters of a setting's name, and of a word, where there is no room for all. */
const OF_LABELS = [5, 3, 1];
const OF_WORDS = [8, 5, 4, 3, 2, 1];

/** Ways to write names, the longest first. */
function* ways(names: readonly (readonly Part[])[], most: number): Generator<string[]> {
  const labels = [...new Set(names.flatMap((own) => own.map(({ label }) => label)))].filter((label) => label !== "");
  const all = (spell: Spell): string[] => names.map((own) => written(own, spell));
  const full = all(inFull);
  yield full;
  const shortened = (letters: number, without?: Set<string>): Spell => {
    const short = abbreviated(labels, letters);
    return ({ label, between, value }) =>
      label === "" || without?.has(label) ? value : (short.get(label) as string) + between + value;
  };
  for (const letters of OF_LABELS) yield all(shortened(letters));
  // A setting that all have can do without its name: values stand in one order.
  const owners = names.map((own) => own.map(({ label }) => label).filter((label) => label !== ""));
  const bare = new Set(labels.filter((label) => owners.every((own) => own.length < 2 || own.includes(label))));
  for (const letters of OF_LABELS) yield withoutCommas(all(shortened(letters, bare)));
  const isLong = full.map((name) => name.length > most);
  const words = new Set(names.flatMap((own, i) => (isLong[i] ? own.map(({ value }) => value) : [])));
  const spell = shortened(1, bare);
  for (const letters of OF_WORDS) {
    const short = abbreviated(
      [...words].filter((word) => !/\d/.test(word)),
      letters,
    );
    const write = (own: readonly Part[]): string =>
      written(own, (part) => spell({ ...part, value: short.get(part.value) ?? part.value }));
    yield withoutCommas(names.map((own, i) => (isLong[i] ? write(own) : (full[i] as string))));
  }
}

const withoutCommas = (names: readonly string[]): string[] => names.map((name) => name.replace(/,\s+/g, " "));

/** Without the settings and words, from the last on, that are not needed to tell names apart, until all fit. */
function fewest(names: readonly Part[][], fits: (texts: readonly string[]) => boolean): Part[][] {
  const write = (some: readonly Part[][]): string[] => some.map((own) => written(own, inFull));
  const often = new Map<string, number>();
  for (const own of names) for (const text of new Set(own.map(textOf))) often.set(text, (often.get(text) ?? 0) + 1);
  /** A word that most of them have goes from these alone, any other from its place. */
  const keyOf = (part: Part): string =>
    part.label === "" && !/\d/.test(part.value) && 2 * (often.get(part.value) ?? 0) > names.length
      ? ` ${part.value}`
      : part.key;
  const keys = [...new Set(names.flatMap((own) => own.map(keyOf)))];
  let best = [...names];
  for (const key of keys.toReversed()) {
    if (fits(write(best))) break;
    const fewer = best.map((own) => own.filter((part) => keyOf(part) !== key));
    // A word of its own says more than the one setting that would be left, "seed 9".
    const says = fewer.every((own, i) => own.length === best[i]?.length || own.length > 1 || own[0]?.label === "");
    if ((says || key.startsWith(" ")) && apart(write(fewer))) best = fewer;
  }
  return best;
}

/** What tells names apart that stand beside each other, within `most` letters each; no two alike. */
function shortened(names: readonly string[], most: number): readonly string[] {
  if (names.length === 1) return names.map((name) => half(name, most, 0.5));
  const fits = (texts: readonly string[]): boolean => texts.every((text) => text.length <= most);
  const parts = names.map(partsOf);
  const texts = parts.map((own) => own.map(textOf));
  const shared = texts.reduce(common);
  const write = (some: readonly Part[][]): string[] => some.map((own) => written(own, inFull));
  let left = parts.map((own) => told(own, shared));
  left = left.map((own, i) => (own.length > 0 ? own : (parts[i] as Part[])));
  if (!apart(write(left))) left = parts;
  const plain = left.map((own) => own.filter(({ value }) => !isStamp(value)));
  if (apart(write(plain))) left = plain;
  left = fewest(left, fits);
  const tooLong = (texts: readonly string[]): number => texts.filter((text) => text.length > most).length;
  let best = names;
  for (const way of ways(left, most)) {
    if (!apart(way)) continue;
    if (fits(way)) return way;
    if (best === names || tooLong(way) < tooLong(best)) best = way;
  }
  for (const tail of [0.5, 0.35, 0.7, 1]) {
    const cut = best.map((name) => half(name, most, tail));
    if (apart(cut) && !best.some((name, i) => breaksNumber(name, cut[i] as string))) return cut;
  }
  const some = best.map((name, i) => (name.length > most ? numbered(name, i + 1, most) : name));
  return apart(some) ? some : best.map((name, i) => numbered(name, i + 1, most));
}

/** Its beginning and its end. */
function half(name: string, most: number, share: number): string {
  if (name.length <= most) return name;
  const tail = Math.max(1, Math.ceil((most - 1) * share));
  return `${name.slice(0, Math.max(0, most - 1 - tail))}…${name.slice(name.length - tail)}`;
}

const NUMBERS = /\d*\.?\d+(e[-+]?\d+)?/g;
const inNumber = (name: string, at: number): boolean =>
  [...name.matchAll(NUMBERS)].some(({ index, 0: number }) => index < at && at < index + number.length);

/** Whether a cut goes through a number, of which half says something else. */
function breaksNumber(name: string, cut: string): boolean {
  const head = cut.indexOf("…");
  return cut !== name && (inNumber(name, head) || inNumber(name, name.length - (cut.length - head - 1)));
}

/** Its beginning and a number of its own, where no room is left for what tells it apart. */
function numbered(name: string, n: number, most: number): string {
  let at = Math.max(0, most - 2 - `${n}`.length);
  while (at > 0 && inNumber(name, at)) at--;
  const head = name.slice(0, at).replace(/[^\p{L}\p{N}]+$/u, "");
  return head.length < 2 ? `#${n}` : `${head}…#${n}`;
}

/**
 * What tells names apart that stand beside each other, within `most` letters each: without what all share, then
 * without what is not needed, then by the first letters of their settings, by the values alone, by beginning and end.
 * Where all that makes two alike, each has a number, "lr 0.0…#3", and whoever shows it says the whole at a touch.
 *
 * The one rule for names on the page; `rollbook/system/short_names.py` is the same for Python, and names.cases.json
 * holds both to it. Two names that differ are never written alike. `whole`: names that have the room are not
 * shortened at all.
 */
export function shortNames(names: readonly string[], most = 16, whole = false): readonly string[] {
  const asked = `${most} ${whole} ${names.length} ${names.join("\n")}`;
  const known = made.get(asked);
  if (known) return known;
  const short = inParts(names, most, whole) ?? shortNamesOf(names, most, whole);
  if (made.size >= KEPT) made.clear();
  made.set(asked, short);
  return short;
}

function shortNamesOf(names: readonly string[], most: number, whole: boolean): readonly string[] {
  const distinct = [...new Set(names)];
  if (distinct.length === 0 || (whole && distinct.every((name) => name.length <= most))) return names;
  const short = shortened(distinct, Math.max(3, most));
  const of = new Map(distinct.map((name, i) => [name, short[i] as string]));
  return names.map((name) => of.get(name) as string);
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
