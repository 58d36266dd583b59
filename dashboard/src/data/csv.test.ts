import { describe, expect, it } from "vitest";
import { csvOf } from "./csv.ts";

describe("a table for other programs", () => {
  it("has each cell whole, whatever stands in it", () => {
    expect(
      csvOf([
        ["a", 'say "hi", twice', null],
        [1.5, "two\nlines", [1, 2]],
      ]),
    ).toBe('a,"say ""hi"", twice",\r\n1.5,"two\nlines","[1,2]"\r\n');
  });
  it("holds no formula, and each number as one", () => {
    expect(csvOf([["=1+1", "-Infinity", -2, "@x", "-3e-4"]])).toBe("'=1+1,-Infinity,-2,'@x,-3e-4\r\n");
  });
});
