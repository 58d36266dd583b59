import { describe, expect, test } from "vitest";
import {
  axisOf,
  fits,
  keyedRange,
  quarter,
  readRanges,
  readScales,
  namesOfSettings,
  thread,
  writeRanges,
  writeScales,
} from "./sweep.ts";

describe("an axis of a setting", () => {
  test("numbers stand by their size", () => {
    const axis = axisOf([1, 3, 2]);
    expect([1, 2, 3].map(axis.at)).toEqual([0, 0.5, 1]);
    expect(axis.log).toBe(false);
  });
  test("numbers far apart stand on a log axis", () => {
    const axis = axisOf([1e-4, 1e-2, 1e-3]);
    expect(axis.log).toBe(true);
    expect(axis.at(1e-3)).toBeCloseTo(0.5);
  });
  test("numbers that are spread by factors stand on a log axis, however far apart the ends are", () => {
    expect(axisOf([1e-4, 3e-4, 1e-3]).log).toBe(true);
    expect(axisOf([32, 64, 128, 256]).log).toBe(true);
    expect(axisOf([1, 20, 40, 60, 80, 100]).log).toBe(false);
    expect(axisOf([0.9, 0.99, 0.999]).log).toBe(false);
  });
  test("zero stands at the foot of a log axis, apart from the others", () => {
    const axis = axisOf([0, 1e-4, 1e-3, 1e-2]);
    expect(axis.log).toBe(true);
    expect(axis.at(0)).toBe(0);
    expect(axis.at(1e-4)).toBeGreaterThan(0.1);
    expect(axis.at(1e-2)).toBe(1);
    expect(axis.ticks[0]?.text).toBe("0");
  });
  test("a hand has the last word, where there is a choice", () => {
    expect(axisOf([1e-4, 1e-3, 1e-2], true, false).log).toBe(false);
    expect(axisOf([1, 2, 3], true, true).log).toBe(true);
    expect(axisOf([-1, 2, 3], true, true)).toMatchObject({ log: false, either: false });
    expect(axisOf(["a", "b"], true, true).either).toBe(false);
    expect(writeScales(readScales("config.lr:log~a:b:linear~x"))).toBe("config.lr:log~a:b:linear");
  });
  test("a few values are all named", () => {
    expect(axisOf([0.1, 0.2, 0.3, 0.2]).ticks.map(({ text }) => text)).toEqual(["0.1", "0.2", "0.3"]);
  });
  test("ticks whose texts would lie over each other lose some", () => {
    const { ticks } = axisOf([1, 1.01, 100]);
    expect(ticks.length).toBe(2);
  });
  test("words stand by the alphabet, and numbers among them as words", () => {
    const axis = axisOf(["rmsprop", "adam", 3]);
    expect(axis.words).toEqual(["3", "adam", "rmsprop"]);
    expect(axis.at("rmsprop")).toBe(1);
  });
  test("booleans are no numbers", () => {
    expect(axisOf([true, false]).words).toHaveLength(2);
  });
  test("what is not set has no place", () => {
    expect(axisOf([1, null, 2]).at(null)).toBeNull();
    expect(axisOf(["a", null]).at(null)).toBeNull();
  });
  test("one value stands in the middle", () => {
    expect(axisOf([5]).at(5)).toBe(0.5);
    expect(axisOf(["x"]).at("x")).toBe(0.5);
  });
  test("no value at all is an axis without ticks", () => {
    expect(axisOf([null, null]).ticks).toEqual([]);
  });
});

describe("ranges", () => {
  test("come back from the address as they were written", () => {
    const ranges = readRanges("config.lr:0.25_0.5~config.a:b:0_0");
    expect([...ranges]).toEqual([
      ["config.lr", [0.25, 0.5]],
      ["config.a:b", [0, 0]],
    ]);
    expect(writeRanges(ranges)).toBe("config.lr:0.25_0.5~config.a:b:0_0");
  });
  test("what is no range is left out", () => {
    expect(readRanges("nothing~lr:2_1~lr:a_b").size).toBe(0);
    expect(readRanges("").size).toBe(0);
  });
  test("a configuration has to lie in each", () => {
    const ranges = readRanges("lr:0.2_0.6~clip:1_1");
    const of = (lr: number | null, clip: number | null): boolean =>
      fits(
        new Map([
          ["lr", lr],
          ["clip", clip],
        ]),
        ranges,
      );
    expect(of(0.2, 1)).toBe(true);
    expect(of(0.7, 1)).toBe(false);
    expect(of(0.3, 0)).toBe(false);
  });
  test("what is not set lies in none", () => {
    expect(fits(new Map([["lr", null]]), readRanges("lr:0_1"))).toBe(false);
  });
  test("a range of a setting that no longer varies keeps nobody out", () => {
    expect(fits(new Map([["lr", 0.1]]), readRanges("gone:0_0.1"))).toBe(true);
  });
});

test("quarters go from the best to the last", () => {
  expect([0, 1, 2, 3].map((place) => quarter(place, 4))).toEqual([1, 2, 3, 4]);
  expect(quarter(0, 1)).toBe(1);
  expect(quarter(9, 10)).toBe(4);
});

test("a thread is broken where a value is missing", () => {
  expect(thread([[0, 1], null, [10, 3]])).toBe("M0 1M10 3");
  expect(
    thread([
      [0, 0],
      [10, 4],
    ]),
  ).toBe("M0 0C5 0 5 4 10 4");
});

test("settings are called by what tells them apart", () => {
  const nested = ["config.agent.optim.lr", "config.critic.optim.lr", "config.agent.gamma", "config.env.id", "name"];
  const called = namesOfSettings(nested);
  expect(nested.map(called)).toEqual(["agent.optim.lr", "critic.optim.lr", "gamma", "env.id", "name"]);
  expect(namesOfSettings(["config.optim.lr", "config.layers"])("config.optim.lr")).toBe("lr");
  expect(namesOfSettings(["config.lr", "config.critic.lr"])("config.lr")).toBe("lr");
});

test("the range of an axis is set, moved, widened and taken away by keys", () => {
  const after = (keys: string[], words = 0): unknown =>
    keys.reduce<readonly [number, number] | undefined>(
      (range, key) => keyedRange(range, key.replace("shift ", ""), key.startsWith("shift"), words) ?? undefined,
      undefined,
    );
  expect(after(["ArrowUp"])).toEqual([0.75, 1]);
  expect(after(["ArrowUp", "ArrowUp"])).toEqual([0.75, 1]);
  expect(after(["ArrowUp", "ArrowDown", "shift ArrowUp"])).toEqual([0.7, 1]);
  expect(after(["ArrowDown", "shift ArrowDown"])).toEqual([0, 0.2]);
  expect(after(["ArrowUp", "ArrowUp"], 3)).toEqual([0.5, 0.5]);
  expect(after(["ArrowDown", "Delete"])).toBeUndefined();
  expect(keyedRange([0, 1], "x", false, 0)).toBeUndefined();
});
