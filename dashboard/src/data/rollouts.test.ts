import { expect, test } from "vitest";
import { askedLast, callsOf, conditionOf, headOf } from "./rollouts.ts";
import {
  colorOf,
  parted,
  startsIn,
  stretchWords,
  stripWords,
  together,
  told,
  turnsApart,
  unfoldedLines,
} from "./rollouts.ts";

test("tool calls read as calls, however a server writes them, and anything else stays as it is", () => {
  expect(callsOf('[{"name": "read", "arguments": {"lines": "0-9", "all": true}}]')).toBe('read(lines="0-9", all=true)');
  expect(callsOf('[{"function": {"name": "run", "arguments": "{\\"n\\": 2}"}}, {"name": "stop"}]')).toBe(
    "run(n=2); stop()",
  );
  for (const odd of ["no json", "3", "null", '[{"tool": "x"}]', '[{"name": "f", "arguments": "half {"}]'])
    expect(callsOf(odd)).toBe(odd);
});

test("of a prompt with a system message the question is shown", () => {
  expect(askedLast("system: You are careful.\nuser: 2 + 2?")).toBe("2 + 2?");
  expect(askedLast("user: 2 + 2?")).toBe("2 + 2?");
  expect(askedLast("2 + 2?")).toBe("2 + 2?");
});

test("a stretch of training and a fate are one condition, and apart again", () => {
  const within = { by: "gradient_step", low: 2, high: 3 } as const;
  for (const fate of ["used", "no fate yet", "evaluation", "dropped", "it's odd"])
    expect(parted(together(within, conditionOf(fate)))).toEqual({ within, rest: conditionOf(fate) });
  expect(conditionOf("it's odd")).toBe("reason = 'it''s odd'");
});

test("unfolded groups have their rollouts below them, in any order of unfolding", () => {
  const opened = [
    { at: 3, n: 2 },
    { at: 0, n: 1 },
    { at: -1, n: 9 }, // not among the rows that are here
  ];
  const { total, place } = unfoldedLines(5, opened);
  const lines = Array.from({ length: total }, (_, i) => place(i)).map(({ group, of }) => [group, of]);
  expect(lines).toEqual([
    [0, null],
    [0, 0],
    [1, null],
    [2, null],
    [3, null],
    [3, 0],
    [3, 1],
    [4, null],
  ]);
});

test("a test run is told by its result, other texts by how they begin", () => {
  expect(headOf("F..\n=== FAILURES ===\n1 failed, 34 passed in 4 s\n\n")).toBe("1 failed, 34 passed in 4 s");
  expect(headOf("\n44 def parse(text):\n45     return 3")).toBe("44 def parse(text):");
  expect(headOf("")).toBe("");
});

test("a fate has one colour, and reasons of one's own differ from each other", () => {
  const own = ["no difference in the group", "bad format", "too easy"];
  expect(new Set(own.map(colorOf)).size).toBe(own.length);
  expect([...own, "used", "stale"].map(colorOf)).toEqual([...own, "used", "stale"].map(colorOf));
});

test("a part of training stands in the condition beside whatever else is asked", () => {
  for (const rest of ["", "used is null", "reason = 'a) or (b'", "reward > 1 or turns > 3"])
    for (const within of [null, { by: "policy_version", low: 3, high: 12 } as const])
      expect(parted(together(within, rest))).toEqual({ within, rest });
  expect(parted("reward between 1 and 2")).toEqual({ within: null, rest: "reward between 1 and 2" });
  expect(startsIn({ starts: [0, 10, 20, 30] }, { by: "gradient_step", low: 10, high: 29 })).toEqual([1, 3]);
});

test("a part of training is told by what taught something, and by what grew since before", () => {
  const layers = [
    { reason: "used", n: [9, 9, 5], total: 23, tokens: 0, first: 0 },
    { reason: "stale", n: [1, 0, 4], total: 5, tokens: 0, first: 0 },
    { reason: "error", n: [0, 1, 1], total: 2, tokens: 0, first: 1 },
  ];
  expect(told({ layers }, 2, 3)).toEqual({
    n: 10,
    used: 0.5,
    before: 0.9,
    grew: [
      { fate: "stale", share: 0.4, was: 0.05 },
      { fate: "error", share: 0.1, was: 0.05 },
    ],
  });
  expect(told({ layers }, 0, 3)).toEqual({ n: 30, used: 23 / 30, before: null, grew: [] });
});

test("turns of two rollouts are the same up to where they part", () => {
  expect(turnsApart(["a", "b", "c", "d"], ["a", "b", "x"])).toEqual([
    { from: 0, to: 1, same: true },
    { from: 2, to: 2, same: false },
    { from: 3, to: 3, same: false },
  ]);
  expect(turnsApart(["", "a"], [""])).toEqual([
    { from: 0, to: 0, same: true },
    { from: 1, to: 1, same: false },
  ]);
});

test("a prompt over training is said in words: untried stretches are no failures", () => {
  const [updates, versions] = [
    { begin: 1, width: 500, x: "update" },
    { begin: 0, width: 1, x: "version" },
  ] as const;
  const late = { tried: [8, 0, 4, 8], solved_in: [0, 0, 1, 8] };
  expect(stretchWords(late, 1, updates)).toBe("updates 501 to 1\u202f000: not tried");
  expect(stretchWords(late, 2, versions)).toBe("version 2: 1 of 4 solved");
  expect(stripWords(late, versions)).toBe(
    "at first version 0: 0 of 8 solved; first solved version 2: 1 of 4 solved; at last version 3: 8 of 8 solved",
  );
  expect(stripWords({ tried: [0, 4], solved_in: [0, 0] }, versions)).toBe("never solved, from version 1 on");
  expect(stripWords({ tried: [], solved_in: [] }, versions)).toBe("not tried");
});
