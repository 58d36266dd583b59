import { describe, expect, test } from "vitest";
import settings from "./settings.cases.json";
import {
  ago,
  amount,
  bytes,
  count,
  ends,
  percent,
  plain,
  rounded,
  seconds,
  sentence,
  short,
  value,
  shorts,
  writeOf,
} from "./numbers.ts";

describe("numbers are written in one way", () => {
  test("three figures, and whole numbers from a thousand on", () => {
    expect([1.23456, 0.012345, 1234.56].map((x) => value(x))).toEqual(["1.23", "0.0123", "1\u202f235"]);
    expect([9.996, 999.7, -99.96, 0.9996].map((x) => value(x))).toEqual(["10.0", "1\u202f000", "\u2212100", "1.00"]);
  });
  test("a share is all only if it is, and little is not nothing", () => {
    expect([1, 0.9999, 0.992, 0.98, 0.005, 0].map(percent)).toEqual([
      "100 %",
      "99.9 %",
      "99.2 %",
      "98 %",
      "0.5 %",
      "0 %",
    ]);
  });

  test("what is no number says so", () => {
    expect([null, undefined, NaN, Infinity, -Infinity].map((x) => value(x))).toEqual(["–", "–", "NaN", "∞", "\u2212∞"]);
  });
  test("no number of figures throws, and what asks for too many, or for no number of them, keeps the value", () => {
    for (const figures of [NaN, Infinity, -Infinity, -5, 0, 0.5, 1, 17, 101])
      for (const x of [0, 0.1 + 0.2, -1e-300, 123.456, NaN, -Infinity]) {
        value(x, figures);
        if (!(figures < 17)) expect(rounded(x, figures)).toBe(x);
        expect(rounded(x, figures)).toBe(rounded(x, !(figures < 17) ? 17 : Math.max(1, Math.floor(figures))));
      }
  });
  const RANGES = [
    [0, 0],
    [5, 5],
    [0, NaN],
    [NaN, 1],
    [0, Infinity],
    [-Infinity, 3],
    [-Infinity, Infinity],
    [9, 2],
    [1e-300, 2e-300],
    [0, 5e-324],
    [1e300, 1e300 + 1],
    [1, 1 + Number.EPSILON],
    [1e17, 1e17 + 16],
    [1_700_000_000.25, 1_700_000_000.5],
    [-1e308, 1e308],
    [200, 900],
  ] as const;
  test.each(RANGES)("the ends of %d to %d are written, and stay apart where they are", (a, b) => {
    const [left, right] = ends(a, b).map(Number) as [number, number];
    expect([left < right, left > right]).toEqual([a < b, a > b]);
    if (Number.isFinite(b - a) && a !== b) expect(Math.abs(left - a)).toBeLessThanOrEqual(Math.abs(b - a) * 1e-4);
  });
  test("a setting that differs inside a group is its values, or how many there are", () => {
    expect(plain({ distinct: 3, values: [0, 1, "a"] })).toBe("0, 1, a");
    expect(plain({ distinct: 40, values: [0, 1, 2, 3, 4] })).toBe("40 values");
    expect(plain({ values: [1] })).toBe('{"values":[1]}');
  });
  test("what is counted stands in the singular once", () => {
    expect([0, 1, 2, 1000].map((n) => amount(n, "run"))).toEqual(["0 runs", "1 run", "2 runs", "1\u202f000 runs"]);
  });
  test("a count is exact, with thin spaces and a true minus", () => {
    expect([1234567, -1000, 999].map(count)).toEqual(["1\u202f234\u202f567", "\u22121\u202f000", "999"]);
  });
  test("ticks are short from ten thousand on", () => {
    expect([0, 2500, 250_000, 1_500_000].map(short)).toEqual(["0", "2\u202f500", "250k", "1.5M"]);
  });
  test("thousands in sentences are written as those of numbers; lists and decimals stay", () => {
    expect(sentence("6,000 rows of 1,234,567, from 0.1,200 to 12,3 and [1,2,300]")).toBe(
      "6\u202f000 rows of 1\u202f234\u202f567, from 0.1,200 to 12,3 and [1,2,300]",
    );
  });
  test("a minus in a sentence is a true one; names, dates and exponents stay", () => {
    expect(sentence("-41.42 on average, from -1 (-.5) to lr-0.05, 2026-01-02, 1e-5, a -b")).toBe(
      "\u221241.42 on average, from \u22121 (\u2212.5) to lr-0.05, 2026-01-02, 1e-5, a -b",
    );
  });
  test("NaN, infinity and per cent in a sentence are written as those of numbers", () => {
    expect(sentence("update/loss became nan, the last 10% was -inf of inf; nan_guard and info stay")).toBe(
      "update/loss became NaN, the last 10 % was \u2212∞ of ∞; nan_guard and info stay",
    );
  });
  test("a length of time has at most two units", () => {
    expect([0.04, 12.4, 273, 7500, 273_600].map((s) => seconds(s))).toEqual([
      "40 ms",
      "12.4 s",
      "4 m 33 s",
      "2 h 05 m",
      "3 d 4 h",
    ]);
  });
  test("sizes are decimal", () => {
    expect([12, 1500, 2_000_000, -59_032_727_552, 2.5e12].map((n) => bytes(n))).toEqual([
      "12 B",
      "1.50 kB",
      "2 MB",
      "−59.0 GB",
      "2.50 TB",
    ]);
  });
  test("values of a key that counts bytes have their unit, those of others none", () => {
    const said = (key: string) => [59_032_727_552, null, NaN].map((x) => writeOf(key)(x));
    expect(said("host/memory_used_bytes")).toEqual(["59.0 GB", "–", "NaN"]);
    expect(said("last:host/process/rss_bytes")).toEqual(["59.0 GB", "–", "NaN"]);
    expect(said("host/bytes_lost")).toEqual(["59\u202f032\u202f727\u202f552", "–", "NaN"]);
  });
  test("how long ago is said in one unit, and never less than nothing", () => {
    expect([1000, 900, 0, 2000].map((at) => ago(at, 1000))).toEqual(["0 s ago", "1 min ago", "16 min ago", "0 s ago"]);
  });
  test("a setting is written as people write it", () => {
    expect([3e-4, 0.05, 10, true, null, "adam"].map(plain)).toEqual(["3e-4", "0.05", "10", "true", "–", "adam"]);
  });
});

test("ticks beside each other are never written alike, however close one looks", () => {
  expect(shorts([10000, 20000])).toEqual(["10k", "20k"]);
  expect(shorts([15359.5, 15360, 15360.5])).toEqual(["15\u202f359.5", "15\u202f360", "15\u202f360.5"]);
  expect(shorts([-0.99991, -0.99992])).toEqual(["−0.99991", "−0.99992"]);
  for (const size of [1e-7, 1, 5e3, 2e5, 3e9])
    for (const step of [1e-3, 1e-5, 1e-7])
      expect(new Set(shorts([1, 2, 3].map((i) => size * (1 + i * step)))).size).toBe(3);
});

test("the value of a setting is written as Python writes it", () => {
  for (const [value, text] of settings) expect(plain(value)).toBe(text);
});
