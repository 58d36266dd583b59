/** How numbers, times and sizes are written: true minus, thin space for thousands (one that no line breaks
 * at), the figures that matter. */

const THIN = "\u202f";
const MINUS = "\u2212";

/** `n`, or the nearest that toFixed and its like allow, which throw beside it; the most where it is no number. */
const held = (n: number, least: number, most: number): number => (n <= most ? Math.max(least, n) : most);

/** `x` to `figures` significant figures, whatever they were computed from: 17 and more change nothing. */
export function rounded(x: number, figures: number): number {
  return Number(x.toPrecision(held(figures, 1, 17)));
}

/** The ends of a range for an address: with enough figures to tell them, and places between them, apart. */
export function ends(a: number, b: number): [string, string] {
  const size = Math.max(Math.abs(a), Math.abs(b), 1);
  const figures = Math.max(6, Math.ceil(Math.log10(size / Math.abs(b - a))) + 7);
  return [rounded(a, figures).toString(), rounded(b, figures).toString()];
}

function grouped(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+(?!\d))/g, THIN);
}

/** A measured value with `figures` significant figures; from 1000 on to the unit. */
export function value(x: number | null | undefined, figures = 3): string {
  if (x === null || x === undefined) return "–";
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : `${MINUS}∞`;
  if (x === 0) return "0";
  const size = Math.abs(x);
  const sign = x < 0 ? MINUS : "";
  if (Number.isInteger(x) && size < 1e15) return sign + grouped(size.toString());
  if (size >= 1e9 || size < 1e-4)
    return (
      sign +
      size
        .toExponential(held(figures - 1, 0, 16))
        .replace(/\.?0+e/, "e")
        .replace("e+", "e")
        .replace("e-", `e${MINUS}`)
    );
  if (size >= 1000) return sign + grouped(size.toFixed(0));
  const near = rounded(size, figures); // 9.996 is 10.0, and 999.7 has thousands
  if (near >= 1000) return sign + grouped(near.toString());
  return sign + near.toFixed(held(figures - 1 - Math.floor(Math.log10(near)), 0, 8));
}

/** A count, exact. */
export function count(n: number): string {
  return (n < 0 ? MINUS : "") + grouped(Math.abs(Math.round(n)).toString());
}

/** A count and what is counted: "1 run", "12 runs". */
export function amount(n: number, what: string): string {
  return `${count(n)} ${what}${n === 1 ? "" : "s"}`;
}

/** A tick or a step, short: 250k, 1.5M. */
export function short(x: number): string {
  const size = Math.abs(x);
  const sign = x < 0 ? MINUS : "";
  const trim = (n: number, unit: string): string => sign + n.toFixed(2).replace(/\.?0+$/, "") + unit;
  if (size >= 1e12) return sign + size.toExponential(1).replace("e+", "e");
  if (size >= 1e9) return trim(size / 1e9, "G");
  if (size >= 1e6) return trim(size / 1e6, "M");
  if (size >= 1e4) return trim(size / 1e3, "k");
  if (size === 0) return "0";
  if (size < 1e-3) return sign + size.toExponential(1).replace(/\.0e/, "e").replace("e-", `e${MINUS}`);
  const digits = rounded(size, 4).toString();
  return sign + (size < 1000 ? digits : grouped(digits));
}

/** Ticks beside each other, short; with all their digits where short ones would be alike. */
export function shorts(all: readonly number[]): string[] {
  const texts = all.map(short);
  if (new Set(texts).size === texts.length) return texts;
  return all.map((x) => (x < 0 ? MINUS : "") + rounded(Math.abs(x), 15).toString().replace(/^\d+/, grouped));
}

/** A sentence of the server's or of a rule's: its thousands, which Python parts with commas, minus, NaN, infinity and
 * per cent as everywhere here. */
export function sentence(text: string): string {
  return text
    .replace(/(?<=^|[\s(])-(?=[\d.]|inf\b)/g, MINUS)
    .replace(/(?<=\b(?:became|was|is|of) )nan\b/g, "NaN")
    .replace(/(?<=\b(?:became|was|is|of) \u2212?)inf\b/g, "∞")
    .replace(/(?<=\d)%/g, " %")
    .replace(/(?<![\d.,])\d{1,3}(?:,\d{3})+(?!,?\d)/g, (number) => number.replaceAll(",", THIN));
}

/** A length of time in seconds: 40 ms, 12.4 s, 4 m 33 s, 2 h 05 m, 3 d 4 h. */
export function seconds(s: number | null | undefined): string {
  if (s === null || s === undefined || !Number.isFinite(s)) return "–";
  const size = Math.abs(s);
  if (size === 0) return "0 s";
  if (size < 1e-3) return `${value(s * 1e6)} µs`;
  if (size < 1) return `${value(s * 1e3)} ms`;
  if (size < 60) return `${value(s)} s`;
  if (size < 3600) return `${Math.floor(s / 60)} m ${pad(Math.floor(s % 60))} s`;
  if (size < 86400) return `${Math.floor(s / 3600)} h ${pad(Math.floor((s % 3600) / 60))} m`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function bytes(n: number, figures = 3): string {
  const [unit, size] = UNITS.find(([, least]) => Math.abs(n) >= least) ?? (["B", 1] as const);
  return `${value(n / size, figures)} ${unit}`;
}

const UNITS = [
  ["TB", 1e12],
  ["GB", 1e9],
  ["MB", 1e6],
  ["kB", 1e3],
] as const;

/** How a value is written, with so many significant figures. */
export type Write = (x: number | null | undefined, figures?: number) => string;

/** How the values of a key, or of a column of it, are written: bytes, by the key's name, with their unit. */
export const writeOf = (key: string): Write =>
  /(^|[/_])bytes$/i.test(key)
    ? (x, figures) => (typeof x === "number" && Number.isFinite(x) ? bytes(x, figures) : value(x))
    : value;

export function percent(share: number): string {
  const p = share * 100;
  if (p > 99 && p < 100) return `${Math.min(p, 99.9).toFixed(1)} %`;
  return `${p !== 0 && Math.abs(p) < 1 ? p.toFixed(1) : p.toFixed(0)} %`;
}

const pad = (n: number): string => n.toString().padStart(2, "0");

/** The time of day of `unix` seconds; the date too where it is not today. */
export function clock(unix: number | null | undefined, now = Date.now() / 1000): string {
  if (unix === null || unix === undefined) return "–";
  const date = new Date(unix * 1000);
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return new Date(now * 1000).toDateString() === date.toDateString() ? time : `${day(unix)} ${time}`;
}

export function day(unix: number): string {
  const date = new Date(unix * 1000);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}

/** Moments beside each other, in unix seconds: as fine as what lies between them, and with a day where it matters. */
export function wallTexts(all: readonly number[]): string[] {
  const step = all.length < 2 ? 60 : Math.min(...all.slice(1).map((x, i) => x - (all[i] as number)));
  const span = (all[all.length - 1] ?? 0) - (all[0] ?? 0);
  const digits = step < 1 ? Math.min(6, Math.ceil(-Math.log10(step) - 1e-9)) : 0;
  return all.map((x) => {
    const date = new Date(x * 1000);
    const [hours, minutes] = [pad(date.getHours()), pad(date.getMinutes())];
    if (step >= 86_400 - 3600) return span > 300 * 86_400 ? day(x) : day(x).slice(5); // a day may have 23 hours
    if (step >= 60) return `${span > 86_400 - 3600 ? `${pad(date.getDate())}. ` : ""}${hours}:${minutes}`;
    const part = digits === 0 ? "" : (x - Math.floor(x)).toFixed(digits).slice(1);
    return `${hours}:${minutes}:${pad(date.getSeconds())}${part}`;
  });
}

/** How long ago, in one unit. */
export function ago(unix: number, now = Date.now() / 1000): string {
  const s = Math.max(0, now - unix);
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

/** A number as people write one, with all its figures: 3e-4, 0.05. */
export const written = (x: number): string => (x !== 0 && Math.abs(x) < 1e-3 ? x.toExponential() : x.toString());

/** Six, or all before the point: none becomes a zero that was none. */
const figuresOf = (x: number): number => Math.max(6, Math.trunc(Math.abs(x)).toString().length);

/** Any JSON value in one line, as a configuration shows it; as `setting_text` of rollbook/system/texts.py. */
export function plain(x: unknown): string {
  if (x === null || x === undefined) return "–";
  if (typeof x === "number") return Number.isInteger(x) ? x.toString() : written(rounded(x, figuresOf(x)));
  if (typeof x === "string") return x;
  if (typeof x === "boolean") return x ? "true" : "false";
  const { distinct, values } = x as { distinct?: unknown; values?: unknown }; // of a group whose runs differ
  if (typeof distinct !== "number" || !Array.isArray(values)) return JSON.stringify(x);
  return distinct === values.length && distinct <= 5 ? values.map(plain).join(", ") : amount(distinct, "value");
}
