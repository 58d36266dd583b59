import { describe, expect, test } from "vitest";
import type { CompareAnswer } from "../api/names.ts";
import { decidedPairs, isLowerBetter, pairOf, ranked, runNext, whyNone } from "./ranking.ts";

type Pair = CompareAnswer["pairs"][number];

const pair = (a: string, b: string, verdict: Pair["verdict"], difference: number, better: number): Pair => ({
  a,
  b,
  verdict,
  difference,
  better,
  sentence: "",
  low: null,
  high: null,
  evidence: 1,
  decides: 200,
});
const group = (name: string, centre: number | null) => ({ name, centre });
const seeds = (group: string, n: number) => ({ group, n, sd: 1, todo: "" });

describe("the ranking", () => {
  const pairs = [
    pair("low", "high", "worse", -10, 0.1),
    pair("low", "middle", "undecided", -4, 0.3),
    pair("middle", "high", "undecided", -6, 0.3),
  ];
  test("has the best first, and says between which the seeds decide", () => {
    const order = ranked([group("low", 0), group("middle", 4), group("high", 10)], pairs);
    expect(order.map(({ group, sign }) => sign + group.name)).toEqual(["high", "≈middle", "≈low"]);
  });
  test("says > where two neighbours are decided, whichever of them the server named first", () => {
    const order = ranked([group("low", 0), group("high", 10)], pairs);
    expect(order.map(({ group, sign }) => sign + group.name)).toEqual(["high", ">low"]);
  });
  test("turns where less is better", () => {
    const losses = [pair("a", "b", "better", -1, 0.9)];
    expect(isLowerBetter(losses)).toBe(true);
    expect(ranked([group("b", 2), group("a", 1)], losses).map(({ group, sign }) => sign + group.name)).toEqual([
      "a",
      ">b",
    ]);
  });
  test("has a group without a value last, and never ahead of one", () => {
    const order = ranked([group("none", null), group("low", 0), group("high", 10)], pairs);
    expect(order.map(({ group }) => group.name)).toEqual(["high", "low", "none"]);
    expect(order.map(({ sign, scored }) => [sign, scored])).toEqual([
      ["", true],
      [">", true],
      ["", false],
    ]);
  });
  test("of one group is that group", () => {
    expect(ranked([group("a", 1)], [])).toEqual([{ group: group("a", 1), sign: "", scored: true }]);
  });
  test("counts why a group has no score", () => {
    const missing = ["still running", "did not finish", "still running"].map((why) => ({ why }));
    expect(whyNone(missing)).toBe("2 still running, 1 did not finish");
  });
});

describe("a pair", () => {
  const pairs = [pair("a", "b", "better", 5, 0.9)];
  test("is the same from either side", () => {
    expect(pairOf(pairs, "a", "b")).toEqual({ difference: 5, better: 0.9, verdict: "better" });
    expect(pairOf(pairs, "b", "a")?.difference).toBe(-5);
    expect(pairOf(pairs, "b", "a")?.verdict).toBe("worse");
  });
  test("that was not compared is none", () => {
    expect(pairOf(pairs, "a", "c")).toBeNull();
  });
  test("counts as decided either way, and not where nothing can be said", () => {
    const all = [pair("a", "b", "better", 1, 1), pair("a", "c", "worse", -1, 0), pair("b", "c", "cannot say", 0, 0.5)];
    expect(decidedPairs(all)).toBe(2);
  });
});

describe("what to run next", () => {
  test("is seeds up to five for each group that has fewer", () => {
    const plan = [seeds("a", 3), seeds("b", 3), seeds("c", 4), seeds("d", 9)];
    expect(runNext({ plan, pairs: [] })).toMatch(/^2 more seeds of a and b; 1 more seed of c: /);
  });
  test("names no group where all of them need the same", () => {
    expect(runNext({ plan: [seeds("a", 3), seeds("b", 3), seeds("c", 3)], pairs: [] })).toMatch(
      /^2 more seeds of each: /,
    );
  });
  test("is one seed more of the groups that are not decided", () => {
    const pairs = [pair("a", "b", "undecided", 1, 0.6), pair("a", "c", "better", 9, 1), pair("b", "c", "better", 8, 1)];
    expect(runNext({ plan: [seeds("a", 5), seeds("b", 6), seeds("c", 5)], pairs })).toMatch(
      /^One more seed of a and b,/,
    );
  });
  test("is nothing where all is decided", () => {
    expect(runNext({ plan: [seeds("a", 5), seeds("b", 5)], pairs: [pair("a", "b", "better", 1, 1)] })).toMatch(
      /^Nothing/,
    );
  });
  test("of one group is another to compare it with", () => {
    expect(runNext({ plan: [seeds("a", 5)], pairs: [] })).toMatch(/second group/);
  });
});
