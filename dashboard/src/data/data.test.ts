import { describe, expect, test } from "vitest";
import { tickTexts, xTicks } from "../charts/draw.ts";
import { SvgPen } from "../charts/pen.ts";
import { Colors, colorOfName, nextColor, type Drawn, type New } from "./colors.ts";
import { counts, doubles, floats, FrameReader } from "./frames.ts";
import { sections, telling, pinnedFirst } from "./keys.ts";
import { pattern } from "./search.ts";
import { bytes, count, plain, seconds, short, value } from "./numbers.ts";
import { endOf } from "./lines.ts";
import { apart, cuts, startBeside, yRange } from "./range.ts";
import { around, smooth } from "./smooth.ts";
import * as ticks from "./ticks.ts";

const line = (y: number[], x = y.map((_, i) => i)): { x: Float64Array; y: Float32Array } => ({
  x: Float64Array.from(x),
  y: Float32Array.from(y),
});

/** A frame as the server writes it. */
function frame(entries: unknown, payload: Uint8Array, last = true): Uint8Array {
  let text = JSON.stringify({ entries, last, took_ms: 1 });
  text += " ".repeat((8 - (new TextEncoder().encode(text).length % 8)) % 8);
  const header = new TextEncoder().encode(text);
  const out = new Uint8Array(16 + header.length + payload.length);
  const view = new DataView(out.buffer);
  out.set(new TextEncoder().encode("RBF1"));
  view.setUint32(4, header.length, true);
  view.setUint32(8, payload.length, true);
  out.set(header, 16);
  out.set(payload, 16 + header.length);
  return out;
}

describe("numbers", () => {
  test("a value has the figures that matter, a true minus and thin spaces", () => {
    expect(value(3164.4)).toBe("3\u202f164");
    expect(value(-0.01234)).toBe("\u22120.0123");
    expect(value(0.5)).toBe("0.500");
    expect(value(1e-7)).toBe("1e\u22127");
    expect(value(12)).toBe("12");
    expect(value(1_300_000_001)).toBe("1\u202f300\u202f000\u202f001");
    expect(value(Number.NaN)).toBe("NaN");
    expect(value(-Infinity)).toBe("\u2212∞");
    expect(value(null)).toBe("–");
  });
  test("steps, times and sizes are short", () => {
    expect(short(250_000)).toBe("250k");
    expect(short(1_500_000)).toBe("1.5M");
    expect(count(412672)).toBe("412\u202f672");
    expect(seconds(273)).toBe("4 m 33 s");
    expect(seconds(0.041)).toBe("41 ms");
    expect(bytes(214_000)).toBe("214 kB");
    expect(plain({ a: 1 })).toBe('{"a":1}');
  });
});

describe("ticks", () => {
  test("are round and inside", () => {
    expect(ticks.linear(0, 1_000_000, 4)).toEqual([0, 500_000, 1_000_000]);
    expect(ticks.linear(0.1, 0.5, 4)).toEqual([0.1, 0.2, 0.3, 0.4, 0.5]);
    expect(ticks.linear(3, 3, 4)).toEqual([]);
  });
  test("of what is counted are whole, at any width", () => {
    expect(ticks.whole(1, 2, 5)).toEqual([1, 2]);
    expect(ticks.whole(0, 3, 8)).toEqual([0, 1, 2, 3]);
    expect(ticks.whole(0, 1_000_000, 4)).toEqual([0, 500_000, 1_000_000]);
    for (const span of [1, 2, 5, 7, 11, 23, 400])
      expect(ticks.whole(3, 3 + span, 20).every(Number.isInteger)).toBe(true);
  });
  test("of a log scale are powers of ten", () => {
    expect(ticks.log(1e-3, 1e3, 6)).toEqual([1e-3, 0.01, 0.1, 1, 10, 100, 1000]);
  });
  test("beside each other are told apart, on any axis, however far from 0 and however near to each other", () => {
    for (const kind of ["number", "count", "duration", "wall"] as const)
      for (const begin of [0, 90, 95_970_000, 1_764_444_412])
        for (const span of [0.05, 1, 7, 59, 130, 700, 4000, 9000, 90_000, 200_000, 4e5, 3e6, 4e7])
          for (const width of [150, 320, 700, 1400]) {
            const axes = { x0: begin, x1: begin + span, y0: 0, y1: 1, xLog: false, yLog: false, xKind: kind };
            const texts = tickTexts(xTicks(axes, width), kind, span);
            expect(new Set(texts).size, `${kind} from ${begin}, ${span} wide: ${texts.join(", ")}`).toBe(texts.length);
          }
  });
  test("never run away however narrow the range", () => {
    expect(ticks.linear(1e12, 1e12 + 1e-3, 5).length).toBeLessThan(20);
  });
});

describe("smoothing", () => {
  test("does not depend on how finely the window was sampled", () => {
    const fine = Array.from({ length: 1001 }, (_, i) => Math.sin(i / 50));
    const coarse = fine.filter((_, i) => i % 10 === 0);
    const a = smooth(line(fine).x, line(fine).y, 0.9, 1000, 1001);
    const b = smooth(Float64Array.from(coarse.map((_, i) => i * 10)), Float32Array.from(coarse), 0.9, 1000, 1001);
    for (let i = 20; i < 100; i++) expect(Math.abs((a[i * 10] as number) - (b[i] as number))).toBeLessThan(0.12);
  });
  test("keeps gaps, and begins at the first value", () => {
    const y = smooth(Float64Array.of(0, 1, 2, 3), Float32Array.of(5, NaN, 5, 7), 0.6, 3, 4);
    expect(y[0]).toBe(5);
    expect(y[1]).toBeNaN();
    expect(y[3]).toBeGreaterThan(5);
  });
  test("refuses a weight outside its range", () => {
    expect(() => smooth(new Float64Array(1), new Float32Array(1), 1, 1, 1)).toThrow("from 0 to below 1, not 1");
  });
});

describe("the range of y", () => {
  const tame = Array.from({ length: 500 }, (_, i) => Math.sin(i / 20));
  test("leaves a spike out, and what it cuts is told with its count and largest value", () => {
    const spiky = line([...tame.slice(0, 250), 40, 41, ...tame.slice(252)]);
    const range = yRange([spiky], 0, 500, { robust: true, log: false });
    expect(range?.high).toBeLessThan(3);
    const cut = cuts(spiky, range ?? { low: 0, high: 0 }, 0, 500, 5);
    expect(cut).toEqual([{ x: 250, count: 2, furthest: 41, above: true }]);
  });
  test("without a tail is everything, so nothing is cut", () => {
    const range = yRange([line(tame)], 0, 500, { robust: true, log: false });
    expect(cuts(line(tame), range ?? { low: 0, high: 0 }, 0, 500, 5)).toEqual([]);
  });
  test("of what is not finite is none", () => {
    expect(yRange([line([NaN, Infinity, -Infinity])], 0, 3, { robust: true, log: false })).toBeNull();
  });
  test("on a log scale leaves out what is not above 0", () => {
    const range = yRange([line([0, -5, 1, 10])], 0, 4, { robust: false, log: true });
    expect(range?.low).toBeGreaterThan(0);
  });
});

describe("frames", () => {
  const payload = new Uint8Array(Float64Array.of(1, NaN, 3).buffer);
  const place = { o: 0, n: 3, t: "f8" as const };
  test("come out whole however the bytes are cut up", () => {
    const whole = new Uint8Array([...frame([{ key: "a" }], payload, false), ...frame([{ key: "b" }], payload)]);
    for (const size of [1, 7, 64, whole.length]) {
      const reader = new FrameReader<{ key: string }>();
      const seen: string[] = [];
      for (let i = 0; i < whole.length; i += size)
        for (const got of reader.push(whole.slice(i, i + size)))
          seen.push(got.entries[0]?.key ?? "", String(doubles(got.payload, place)[2]));
      expect(seen).toEqual(["a", "3", "b", "3"]);
      expect(reader.unfinished).toBe(false);
    }
  });
  test("an entry without rows has no arrays, and none is missing", () => {
    const [got] = new FrameReader<{ arrays: object }>().push(frame([{ key: "a", kind: "none" }], payload));
    expect(got?.entries[0]?.arrays).toEqual({});
  });
  test("of another format are refused", () => {
    expect(() => new FrameReader().push(new TextEncoder().encode("<!doctype html>                  "))).toThrow(
      "not in rollbook's frames",
    );
  });
  test("scaled arrays come back at their values", () => {
    const small = new Uint8Array(Uint16Array.of(0, 1, 65535, 0).buffer);
    expect([...floats(small.buffer, { o: 0, n: 3, t: "u2", b: 10, s: 2 })]).toEqual([10, 12, 131080]);
    expect([...counts(small.buffer, { o: 0, n: 2, t: "u2" })]).toEqual([0, 1]);
  });
});

describe("keys", () => {
  const info = (key: string, runs = 1) => ({ key, runs, scope: "", name: key, canonical: null });
  test("what shows how training goes is found whatever the library calls it", () => {
    expect(telling([info("update/kl"), info("train/return"), info("test/return")])).toBe("test/return");
    expect(telling([info("train/loss"), info("rollout/ep_rew_mean")])).toBe("rollout/ep_rew_mean");
    expect(telling([info("a/return_std"), info("b/x")])).toBe("b/x");
    const test = { ...info("evaluator/reward_mean"), canonical: "test/return" };
    const train = { ...info("collector/reward_mean"), canonical: "train/return" };
    expect(telling([train, test])).toBe(test.key);
    expect(telling([])).toBeNull();
    expect(telling([info("eval/reward", 1), info("train/return", 10)])).toBe("train/return");
    expect(pinnedFirst([info("test/return"), info("test/return_best"), info("train/return")], 2)).toEqual([
      "test/return",
      "train/return",
    ]);
  });
  test("sections put the machine last, and search takes a regular expression or plain text", () => {
    const all = [info("host/cpu"), info("update/kl"), info("test/return")];
    expect(sections(all, null).map((s) => s.scope)).toEqual(["test", "update", "host"]);
    expect(sections(all, pattern("kl|cpu")).map((s) => s.scope)).toEqual(["update", "host"]);
    expect(pattern("loss(")?.test("a/loss(x)")).toBe(true);
  });
});

describe("colours", () => {
  const run = (id: string) => ({ id, runs: [id] });
  test("the lowest free one is taken, and what is drawn again has the one it had", () => {
    const colors = new Colors();
    const one = (id: string, beside: Drawn[] = []) => colors.given([run(id)], beside)[0]?.color;
    const drawn = colors.given(["a", "b", "c"].map(run));
    expect(drawn.map(({ color }) => color)).toEqual([1, 2, 3]);
    const without = drawn.filter(({ id }) => id !== "b");
    expect(nextColor(without.map(({ color }) => color))).toBe(2);
    expect(one("d", without)).toBe(4); // 2 is free here, and another run has it
    expect(one("b", without)).toBe(2);
    expect(colors.given(["e", "a"].map(run)).map(({ color }) => color)).toEqual([5, 1]);
  });

  test("a group keeps its colour when its id changes, and what is kept is read again", () => {
    const told: New[] = [];
    const colors = new Colors((one) => told.push(one));
    expect(colors.given([{ id: "g1", runs: ["a", "b"] }], [{ id: "x", color: 1 }])[0]?.color).toBe(2);
    expect(told).toEqual([{ alone: {}, grouped: { a: 2, b: 2 }, chosen: false }]);
    const later = new Colors();
    later.take({ a: [0, 2], b: [0, 2] });
    expect(later.given([{ id: "g2", runs: ["b", "c"] }])[0]?.color).toBe(2);
    expect(later.ofRun("a")).toBe(2);
    expect(later.given([run("a")], [{ id: "g2", color: 2 }])[0]?.color).toBe(1);
    later.offer({ id: "g2", runs: ["b", "c"] }, 5);
    expect(later.of({ id: "g2", runs: ["b", "c"] })).toBe(2);
    later.choose({ id: "g2", runs: ["b", "c"] }, 7);
    expect(later.of({ id: "g3", runs: ["c"] })).toBe(7);
  });

  test("where nothing can be kept a colour follows from the id, as in the library", () => {
    const colors = new Colors(() => {
      throw new Error("nothing is kept");
    });
    colors.take({ old: [4, 0] }, false);
    expect(colors.given([run("old")])[0]?.color).toBe(4);
    expect(colors.given([{ id: "g", runs: ["b7", "a1"] }])[0]?.color).toBe(colorOfName("a1"));
    expect(["a1", "b7", "3f2a91", "ü"].map(colorOfName)).toEqual([2, 3, 6, 5]);
  });

  test("where nothing can be kept, what is drawn together has different colours", () => {
    const colors = new Colors();
    colors.take({}, false);
    const twelve = Array.from({ length: 12 }, (_, i) => run(`0000000${i.toString(16)}`));
    expect(new Set(colors.given(twelve).map(({ color }) => color)).size).toBe(12);
  });

  test("names at line ends are moved apart and stay inside", () => {
    expect(apart([10, 12, 90], 12, 0, 100)).toEqual([10, 22, 90]);
    expect(apart([97, 98, 99], 12, 0, 100)).toEqual([76, 88, 100]);
    expect(apart([5, 5], 12, 0, 4)).toEqual([0, 12]);
  });

  test("a text beside a mark stays inside, at its side where there is room", () => {
    expect(startBeside(20, 60, 0, 200)).toBe(27);
    expect(startBeside(180, 60, 0, 200)).toBe(113);
    expect(startBeside(60, 90, 0, 120)).toBe(30);
    expect(startBeside(110, 90, 0, 120)).toBe(13);
  });
});

test("a drawing for a paper escapes every text", () => {
  const pen = new SvgPen(10, 10, '<script>"&');
  pen.fillText("</text><script>alert(1)</script>", 1, 1);
  const file = pen.file("#fff");
  expect(file).not.toContain("<script");
  expect(file).toContain("&#60;script");
});

test("a curve whose interval is not known has the range of its own values", () => {
  const nan = new Float32Array(3).fill(NaN);
  const range = yRange([{ ...line([1, 2, 3]), low: nan, high: nan }], 0, 3, { robust: true, log: false });
  expect(range?.high).toBeGreaterThanOrEqual(3);
});

test("a line ends at its last value that is one, up to where one looks, with the interval of a group", () => {
  const run = { ...line([1, 2, NaN, 4, NaN]), id: "a", name: "a", color: 1, envelope: true };
  expect(endOf(run, Infinity)).toEqual({ x: 3, value: 4, low: 4, high: 4 });
  expect(endOf(run, 2)).toEqual({ x: 1, value: 2, low: 2, high: 2 });
  const group = {
    ...run,
    envelope: false,
    low: Float32Array.from([0, 1, 2, 3, NaN]),
    high: Float32Array.from([2, 3, 4, NaN, NaN]),
  };
  expect(endOf(group, Infinity)).toEqual({ x: 3, value: 4, low: 3, high: 4 });
  expect(endOf({ ...run, y: Float32Array.from([NaN, NaN, NaN, NaN, NaN]) }, Infinity)).toBeNull();
});

describe("a choice of three smoothings", () => {
  const x = Float64Array.from({ length: 201 }, (_, i) => i);
  const flat = Float32Array.from(x, () => 3);
  const spike = Float32Array.from(x, (v) => (v === 100 ? 1 : 0));
  test("leaves what is flat as it is, keeps gaps, and keeps the sum of a spike", () => {
    for (const gauss of [false, true]) {
      expect([...around(x, flat, 0.9, 200, 201, gauss)].every((v) => Math.abs(v - 3) < 1e-5)).toBe(true);
      const out = around(x, spike, 0.9, 200, 201, gauss);
      expect(out.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 2);
      expect(out[90]).toBeCloseTo(out[110] as number, 6);
      const holed = flat.slice();
      holed[50] = NaN;
      expect(around(x, holed, 0.9, 200, 201, gauss)[50]).toBeNaN();
    }
    expect(around(x, spike, 0.9, 200, 201, false)[100]).toBeCloseTo(1 / 21, 5);
  });
});
