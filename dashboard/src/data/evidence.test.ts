import { expect, test } from "vitest";
import { evidence, unitOf } from "./evidence.ts";
import { sparkPath } from "./spark.ts";

test("evidence is said as values with units, its parts each for itself, and never as JSON", () => {
  expect(
    evidence({
      key: "update/kl",
      value: 0.0942,
      usual: 0.01,
      rows_seen: 12000,
      silent_seconds: 273,
      row: { writer: "a", n: 3 },
      clocks: { env_step: 4096 },
    }),
  ).toEqual([
    ["key", "update/kl"],
    ["value", "0.0942 nats"],
    ["usual", "0.0100 nats"],
    ["rows seen", "12\u202f000"],
    ["silent", "4 m 33 s"],
    ["at env step", "4\u202f096"],
  ]);
  const began = (at: number) => evidence({ from: { env_step: at }, clocks: { env_step: 9 } }).map(([name]) => name);
  expect([began(9), began(3)]).toEqual([["at env step"], ["from env step", "at env step"]]);
  expect(["update/approx_kl", "train/entropy_loss", "test/return"].map(unitOf)).toEqual(["nats", "nats", ""]);
});

test("a small curve keeps its gaps and fits its box", () => {
  expect(sparkPath([0, 1, 2, 3], [0, 1, NaN, 0], 30, 10)).toBe("M0.0 8.0L10.0 2.0M30.0 8.0");
  expect(sparkPath([0, 1], [NaN, NaN], 30, 10)).toBe("");
});
