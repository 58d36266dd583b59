import { describe, expect, test } from "vitest";
import { diff, shown } from "./diff.ts";

describe("two texts", () => {
  test("have the same parts and those that only one has, in order", () => {
    expect(diff("the day is added", "the day was added")).toEqual([
      { kind: "same", text: "the day " },
      { kind: "only a", text: "is " },
      { kind: "only b", text: "was " },
      { kind: "same", text: "added" },
    ]);
  });
  test.each([
    ["", ""],
    ["a", ""],
    ["", "b"],
    ["x y z", "x y z"],
    ["word ".repeat(5000), "word ".repeat(4999)],
  ])("can be put together again from their parts", (a, b) => {
    const parts = diff(a, b);
    const left = parts.filter(({ kind }) => kind !== "only b").map(({ text }) => text);
    expect(a.startsWith(left.join("").replace(/…$/, ""))).toBe(true);
  });
});

test("signs that reorder or hide text are shown by their code", () => {
  expect(shown("a\u202egnp.exe\u001b[31m\n\tb")).toBe("a⟨U+202E⟩gnp.exe⟨U+001B⟩[31m\n\tb");
});
