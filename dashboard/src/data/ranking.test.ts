import { describe, expect, test } from "vitest";
import type { CompareAnswer } from "../api/names.ts";
import { decidedPairs, isLowerBetter, pairOf, ranked, rankings, runNext, whyNone } from "./ranking.ts";

type Pair = CompareAnswer["pairs"][number];

const pair = (a: string, b: string, verdict: Pair["verdict"], difference: number, better: number): Pair => ({
  a,
  b,
  verdict,
  difference,
  better,
  outcome: verdict,
  sentence: "",
});
const group = (name: string, centre: number | null) => ({ name, centre });
const seeds = (group: string, more: number) => ({ group, n: 5, sd: 1, more, todo: "" });

describe("the ranking", () => {
  const pairs = [
    pair("low", "high", "worse", -10, 0.1),
    pair("low", "middle", "undecided", -4, 0.3),
    pair("middle", "high", "undecided", -6, 0.3),
  ];
  test("has the best first, and says between which the seeds decide", () => {
    const order = ranked([group("low", 0), group("middle", 4), group("high", 10)], pairs);
    expect(order.map(({ group, sign }) => sign + group.name)).toEqual(["high", "?middle", "?low"]);
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
  test("is one for each environment whose groups were compared with each other alone", () => {
    const apart = [pair("x1", "x2", "better", 5, 0.9), pair("y1", "y2", "undecided", -90, 0.4)];
    const groups = [group("x1", 9), group("y1", 300), group("alone", 1), group("x2", 4), group("y2", 390)];
    const told = rankings(groups, apart).map((each) => each.map(({ group, sign }) => sign + group.name).join(" "));
    expect(told).toEqual(["x1 >x2", "y2 ?y1", "alone"]);
    expect(rankings(groups.slice(0, 2), [])).toHaveLength(1);
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
  const open = [pair("a", "b", "undecided", 1, 0.6)];
  test("is the seeds that would decide, of each group that needs some", () => {
    const plan = [seeds("a", 3), seeds("b", 3), seeds("c", 1), seeds("d", 0)];
    expect(runNext({ plan, pairs: open })).toBe("3 more seeds of a and b; 1 more seed of c.");
  });
  test("names no group where all of them need the same", () => {
    expect(runNext({ plan: [seeds("a", 3), seeds("b", 3)], pairs: open })).toBe("3 more seeds of each.");
  });
  test("is nothing where all is decided, and no promise where no number is known", () => {
    const plan = [seeds("a", 0), seeds("b", 0)];
    expect(runNext({ plan, pairs: [pair("a", "b", "better", 1, 1)] })).toMatch(/^Nothing/);
    expect(runNext({ plan, pairs: open })).toMatch(/^No number/);
  });
  test("of one group is another to compare it with", () => {
    expect(runNext({ plan: [seeds("a", 0)], pairs: [] })).toMatch(/second group/);
  });
});
