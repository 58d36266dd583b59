import { describe, expect, it } from "vitest";
import { askedOf, conditionFor, narrowed, pattern } from "./search.ts";
import { wordsIn } from "./words.ts";

const found = (text: string): string[] =>
  ["update/loss/value", "update/loss/policy", "train/return", "test/return", "update/kl"].filter(
    (key) => pattern(text)?.test(key) ?? true,
  );

describe("a search for keys", () => {
  it("finds all words, wildcards and regular expressions", () => {
    expect(found("")).toHaveLength(5);
    expect(found("LOSS val")).toEqual(["update/loss/value"]);
    expect(found("val loss")).toEqual(["update/loss/value"]);
    expect(found("t*/return")).toEqual(["train/return", "test/return"]);
    expect(found("up*val")).toEqual(["update/loss/value"]);
    expect(found("te?t")).toEqual(["test/return"]);
    expect(found("kl|return")).toHaveLength(3);
    expect(found("^update/(kl|loss/v)")).toEqual(["update/loss/value", "update/kl"]);
    expect(found("/^t.*return$/")).toHaveLength(2);
    expect(found("loss.*icy")).toEqual(["update/loss/policy"]);
    expect(found("train.return")).toEqual([]);
  });
  it("takes what is no regular expression as it stands", () => {
    expect(pattern("loss(")?.test("a/loss(x)")).toBe(true);
    expect(pattern("[")?.test("a[0]")).toBe(true);
  });
});

describe("the text over the table of runs", () => {
  it("is words, or a condition where it has a sign of one", () => {
    expect(askedOf(" ppo hopper ")).toEqual({ search: "ppo hopper" });
    expect(askedOf("ppo*")).toEqual({ search: "ppo*" });
    expect(askedOf("status = 'running'")).toEqual({ filter: "status = 'running'" });
    expect(askedOf("tags has 'paper'")).toEqual({ filter: "tags has 'paper'" });
    expect(askedOf('last("test/return") > 400')).toEqual({ filter: 'last("test/return") > 400' });
    expect(askedOf("")).toEqual({});
  });
  it("is a regular expression between two strokes", () => {
    expect(askedOf("/ppo|it's/").filter).toContain("'ppo|it''s', 'i')");
  });
});

describe("the condition of a cell", () => {
  it("names the setting and its value as the filter reads them", () => {
    expect(conditionFor("config.lr", 0.0003)).toBe("config.lr = 3e-4");
    expect(conditionFor("config.env", "it's")).toBe("config.env = 'it''s'");
    expect(conditionFor("config.net.a-b", true)).toBe('config.net."a-b" = true');
    expect(conditionFor("tags", "paper")).toBe("tags has 'paper'");
    expect(conditionFor("config.lr", { distinct: 2 })).toBeNull();
    expect(conditionFor("config.lr", null)).toBeNull();
    expect(conditionFor("config.prompt", "x".repeat(200))).toBeNull();
  });
  it("narrows what is asked, and leaves words beside it", () => {
    expect(narrowed(askedOf(""), "c = 3").filter).toBe("c = 3");
    expect(narrowed(askedOf("a = 1"), "c = 3").filter).toBe("a = 1 and c = 3");
    expect(narrowed(askedOf("a = 1 or b = 2"), "c = 3").filter).toBe("(a = 1 or b = 2) and c = 3");
    expect(narrowed(askedOf("a = 1 and c = 3"), "c = 3").filter).toBe("a = 1 and c = 3");
    expect(narrowed(askedOf("ppo"), "c = 3")).toEqual({ filter: "c = 3", search: "ppo" });
  });
});

describe("a number in a search for words", () => {
  it("finds what it is, however it is written", () => {
    for (const typed of ["3e-3", "0.003", "3E-03", ".003"])
      for (const name of ["ppo-lr0.003", "ppo lr 3e-3", "ppo lr=3e-03"]) expect(wordsIn(typed)(name)).toBe(true);
    expect(wordsIn("3e-3")("ppo lr 0.3")).toBe(false);
    expect(wordsIn("ppo 0.5")("ppo 0.5")).toBe(true);
    expect(wordsIn("3")("lr 0.3")).toBe(true);
    expect(conditionFor("config.lr", 0.0003)).toBe("config.lr = 3e-4");
  });
});
