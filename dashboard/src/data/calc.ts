/** Expressions over keys: `"train/return" - "test/return"`, several with a comma between them. Nothing is executed. */

import type { Line } from "../charts/model.ts";

type Node =
  | { kind: "number"; value: number }
  | { kind: "key"; key: string }
  | { kind: "call"; name: string; of: Node }
  | { kind: "pair"; sign: string; a: Node; b: Node };

/** An expression, or why it is none. */
export type Read = { nodes: Node[]; texts: string[]; name: string } | { error: string };

const CALLS: Record<string, (v: number) => number> = {
  abs: Math.abs,
  exp: Math.exp,
  log: Math.log,
  log10: Math.log10,
  sqrt: Math.sqrt,
  "-": (v) => -v,
};
const PAIRS: Record<string, (a: number, b: number) => number> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "^": (a, b) => a ** b,
};
const DEEPEST = 40;

interface Sign {
  kind: "sign" | "number" | "key" | "call";
  text: string;
}

/** The signs of a text; keys as they are known, the longest first, or anything in quotes. */
function signsOf(text: string, known: readonly string[]): Sign[] {
  const longest = [...known].sort((a, b) => b.length - a.length);
  const signs: Sign[] = [];
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at);
    const blank = /^\s+/.exec(rest)?.[0];
    const quoted = /^(["`])((?:(?!\1).)+)\1/.exec(rest);
    const key = longest.find((one) => rest.startsWith(one) && !/\w/.test(rest[one.length] ?? ""));
    const number = /^\d+(\.\d+)?(e[-+]?\d+)?|^\.\d+/i.exec(rest)?.[0];
    const call = /^(abs|exp|log10|log|sqrt)\s*(?=\()/.exec(rest)?.[1];
    if (blank !== undefined) at += blank.length;
    else if (quoted) {
      signs.push({ kind: "key", text: quoted[2] as string });
      at += quoted[0].length;
    } else if (key !== undefined) {
      signs.push({ kind: "key", text: key });
      at += key.length;
    } else if (call !== undefined) {
      signs.push({ kind: "call", text: call });
      at += call.length;
    } else if (number !== undefined) {
      signs.push({ kind: "number", text: number });
      at += number.length;
    } else if (/^[-+*/^(),]/.test(rest)) {
      signs.push({ kind: "sign", text: rest[0] as string });
      at += 1;
    } else {
      const word = /^[^\s,()]+/.exec(rest)?.[0] ?? rest;
      throw new SyntaxError(`No drawn run has a key “${word}”.`);
    }
  }
  return signs;
}

class Reader {
  private at = 0;
  constructor(private readonly signs: readonly Sign[]) {}

  all(): Node[] {
    const nodes = [this.sum(0)];
    while (this.takes(",")) nodes.push(this.sum(0));
    const left = this.signs[this.at];
    if (left) throw new SyntaxError(`“${left.text}” stands where a sign such as + or a comma is expected.`);
    return nodes;
  }

  private takes(...texts: string[]): string | null {
    const next = this.signs[this.at];
    if (next?.kind !== "sign" || !texts.includes(next.text)) return null;
    this.at += 1;
    return next.text;
  }

  private sum(depth: number): Node {
    if (depth > DEEPEST) throw new SyntaxError("The parentheses are nested too deeply.");
    let a = this.product(depth);
    for (let sign = this.takes("+", "-"); sign !== null; sign = this.takes("+", "-"))
      a = { kind: "pair", sign, a, b: this.product(depth) };
    return a;
  }

  private product(depth: number): Node {
    let a = this.power(depth);
    for (let sign = this.takes("*", "/"); sign !== null; sign = this.takes("*", "/"))
      a = { kind: "pair", sign, a, b: this.power(depth) };
    return a;
  }

  private power(depth: number): Node {
    if (this.takes("-")) return { kind: "call", name: "-", of: this.power(depth + 1) };
    const a = this.one(depth);
    return this.takes("^") ? { kind: "pair", sign: "^", a, b: this.power(depth + 1) } : a;
  }

  private one(depth: number): Node {
    const next = this.signs[this.at];
    this.at += 1;
    if (next?.kind === "number") return { kind: "number", value: Number(next.text) };
    if (next?.kind === "key") return { kind: "key", key: next.text };
    if (next?.kind === "call") return { kind: "call", name: next.text, of: this.one(depth + 1) };
    if (next?.text === "(") {
      const inner = this.sum(depth + 1);
      if (!this.takes(")")) throw new SyntaxError("A parenthesis is not closed.");
      return inner;
    }
    throw new SyntaxError(next ? `“${next.text}” stands where a key is expected.` : "A key is missing at the end.");
  }
}

function textOf(node: Node, quote: string, outer = 0): string {
  if (node.kind === "number") return String(node.value);
  if (node.kind === "key") return `${quote}${node.key}${quote}`;
  if (node.kind === "call")
    return node.name === "-"
      ? `-${textOf(node.of, quote, 3)}`
      : `${node.name}(${textOf(node.of, quote).replace(/^\((.*)\)$/, "$1")})`;
  const rank = node.sign === "^" ? 3 : "*/".includes(node.sign) ? 2 : 1;
  const text = `${textOf(node.a, quote, rank)} ${node.sign} ${textOf(node.b, quote, rank + 0.5)}`;
  return rank < outer ? `(${text})` : text;
}

/** Reads what was typed; keys may stand without quotes where they are known. */
export function read(text: string, known: readonly string[] = []): Read {
  try {
    const nodes = new Reader(signsOf(text.replace(/^=/, ""), known)).all();
    if (nodes.every((node) => keysOf(node).length === 0)) return { error: "There is no key in it." };
    const name = nodes.map((node) => textOf(node, '"')).join(", ");
    return { nodes, texts: nodes.map((node) => textOf(node, "")), name: `=${name}` };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/** The keys of an expression, each once. */
export function keysOf(node: Node): string[] {
  if (node.kind === "key") return [node.key];
  if (node.kind === "call") return keysOf(node.of);
  return node.kind === "pair" ? [...new Set([...keysOf(node.a), ...keysOf(node.b)])] : [];
}

function valueOf(node: Node, at: (key: string) => number): number {
  if (node.kind === "number") return node.value;
  if (node.kind === "key") return at(node.key);
  if (node.kind === "call") return (CALLS[node.name] ?? Number)(valueOf(node.of, at));
  return (PAIRS[node.sign] ?? (() => NaN))(valueOf(node.a, at), valueOf(node.b, at));
}

/** Between two points a straight line; beyond the ends, and beside a gap, nothing. */
function between(line: Line, x: number, from: number): [value: number, place: number] {
  let i = from;
  while (i < line.x.length && (line.x[i] as number) < x) i++;
  if (i >= line.x.length) return [NaN, i];
  const [x1, y1] = [line.x[i] as number, line.y[i] as number];
  if (x1 === x || i === 0) return [x1 === x ? y1 : NaN, i];
  const [x0, y0] = [line.x[i - 1] as number, line.y[i - 1] as number];
  return [y0 + ((y1 - y0) * (x - x0)) / (x1 - x0), i];
}

/** One curve of an expression: at the points of the key that has most of them. */
export function calculated(node: Node, lines: ReadonlyMap<string, Line>): Line | null {
  const keys = keysOf(node);
  const all = keys.map((key) => lines.get(key));
  if (all.some((line) => line === undefined || line.x.length === 0)) return null;
  const [finest] = (all as Line[]).sort((a, b) => b.x.length - a.x.length);
  if (finest === undefined) return null;
  if (node.kind === "key") return finest;
  const places = new Map(keys.map((key) => [key, 0]));
  const y = new Float32Array(finest.x.length);
  for (let i = 0; i < y.length; i++) {
    const v = valueOf(node, (key) => {
      const [there, place] = between(lines.get(key) as Line, finest.x[i] as number, places.get(key) ?? 0);
      places.set(key, place);
      return there;
    });
    y[i] = Number.isFinite(v) ? v : NaN;
  }
  const { id, name, color, x, dash, dim } = finest;
  return { id, name, color, x, y, dash, dim, envelope: false };
}
