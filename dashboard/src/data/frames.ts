/** The binary answers of the server: frames of a JSON header and little-endian arrays (docs: API, "Frames"). */

import type { ErrorBody } from "../api/names.ts";

/** Where an array lies in the payload; value i is `b + s * raw[i]`. */
export interface ArrayPlace {
  o: number;
  n: number;
  t: "f8" | "f4" | "u4" | "i4" | "u2" | "u1";
  b?: number;
  s?: number;
}

export interface SeriesEntry {
  run: string;
  key: string;
  x: string;
  kind: "raw" | "envelope" | "none";
  n: number;
  rows: number;
  more: boolean;
  arrays: Partial<Record<"x" | "y" | "mean" | "min" | "max" | "count", ArrayPlace>>;
  /** Rows that are NaN or infinite: where, and how many at each place. */
  bad?: { x: ArrayPlace; count: ArrayPlace; kind?: ArrayPlace };
  span: [number, number] | null;
  y_span: [number, number] | null;
  robust: [number, number] | null;
  ghost?: number;
  inferred: number;
  error?: ErrorBody;
  version: string;
}

export interface CurveEntry {
  group: string;
  key: string;
  x: string;
  kind: "curve" | "none";
  n: number;
  arrays: Partial<Record<"x" | "centre" | "low" | "high" | "count" | "min" | "max", ArrayPlace>>;
  statistic: string;
  level: number;
  method: string;
  claim: number | null;
  sentence: string;
  seeds: number;
  missing: string[];
  preliminary?: boolean;
  error?: ErrorBody;
  version: string;
}

export interface Frame<Entry> {
  entries: Entry[];
  last: boolean;
  took_ms: number;
  /** The payload; `floats` and `counts` read arrays out of it. */
  payload: ArrayBuffer;
}

const MAGIC = 0x31464252; // "RBF1"
const HEAD = 16;

type Raw = Float64Array | Float32Array | Uint32Array | Int32Array | Uint16Array | Uint8Array;

function raw(payload: ArrayBuffer, place: ArrayPlace): Raw {
  switch (place.t) {
    case "f8":
      return new Float64Array(payload, place.o, place.n);
    case "f4":
      return new Float32Array(payload, place.o, place.n);
    case "u4":
      return new Uint32Array(payload, place.o, place.n);
    case "i4":
      return new Int32Array(payload, place.o, place.n);
    case "u2":
      return new Uint16Array(payload, place.o, place.n);
    case "u1":
      return new Uint8Array(payload, place.o, place.n);
  }
}

/** The array as float64: the payload itself where it is that already, a converted copy otherwise. */
export function doubles(payload: ArrayBuffer, place: ArrayPlace): Float64Array {
  const values = raw(payload, place);
  if (values instanceof Float64Array && place.s === undefined && place.b === undefined) return values;
  return scaled(values, place, new Float64Array(values.length));
}

/** The array as float32, as charts draw it. */
export function floats(payload: ArrayBuffer, place: ArrayPlace): Float32Array {
  const values = raw(payload, place);
  if (values instanceof Float32Array && place.s === undefined && place.b === undefined) return values;
  return scaled(values, place, new Float32Array(values.length));
}

export function counts(payload: ArrayBuffer, place: ArrayPlace): Uint32Array {
  const values = raw(payload, place);
  return values instanceof Uint32Array ? values : Uint32Array.from(values as ArrayLike<number>);
}

/** A loop: `from` with a function costs ten times as much. */
function scaled<T extends Float64Array | Float32Array>(values: Raw, { b = 0, s = 1 }: ArrayPlace, into: T): T {
  for (let i = 0; i < values.length; i++) into[i] = b + s * (values[i] as number);
  return into;
}

/** Takes frames out of a stream of bytes as they arrive. */
export class FrameReader<Entry> {
  private rest = new Uint8Array(0);

  /** The frames that `chunk` completes; what is left over waits for the next chunk. */
  push(chunk: Uint8Array): Frame<Entry>[] {
    const all = new Uint8Array(this.rest.length + chunk.length);
    all.set(this.rest);
    all.set(chunk, this.rest.length);
    const out: Frame<Entry>[] = [];
    let at = 0;
    while (all.length - at >= HEAD) {
      const head = new DataView(all.buffer, at, HEAD);
      if (head.getUint32(0, true) !== MAGIC)
        throw new Error("The answer is not in rollbook's frames. Is the page as new as the server? Reload it.");
      const size = head.getUint32(4, true);
      const payload = head.getUint32(8, true);
      const end = at + HEAD + size + payload;
      if (all.length < end) break;
      const text = new TextDecoder().decode(all.subarray(at + HEAD, at + HEAD + size));
      const header = JSON.parse(text) as { entries: Entry[]; last: boolean; took_ms: number };
      // A run without the key comes without arrays; who reads the others must not fall over it.
      for (const entry of header.entries as { arrays?: object }[]) entry.arrays ??= {};
      out.push({ ...header, payload: all.slice(at + HEAD + size, end).buffer });
      at = end;
    }
    this.rest = all.slice(at);
    return out;
  }

  /** True when bytes of an unfinished frame are left: the answer was cut off. */
  get unfinished(): boolean {
    return this.rest.length > 0;
  }
}
