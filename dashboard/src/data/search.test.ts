import { describe, expect, it } from "vitest";
import { askedOf, pattern } from "./search.ts";

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
  const settings = new Set(["lr", "net.width", "name"]);
  it("is words, or a condition where it has a sign of one", () => {
    expect(askedOf(" ppo hopper ", settings)).toEqual({ search: "ppo hopper" });
    expect(askedOf("ppo*", settings)).toEqual({ search: "ppo*" });
    expect(askedOf("status = 'running'", settings)).toEqual({ filter: "status = 'running'" });
    expect(askedOf("tags has 'paper'", settings)).toEqual({ filter: "tags has 'paper'" });
    expect(askedOf('last("test/return") > 400', settings)).toEqual({ filter: 'last("test/return") > 400' });
    expect(askedOf("", settings)).toEqual({});
  });
  it("knows settings by their own names, outside of quotes, and fields before settings", () => {
    expect(askedOf("lr < 3e-4 and net.width > 8", settings)).toEqual({
      filter: "config.lr < 3e-4 and config.net.width > 8",
    });
    expect(askedOf("config.lr < 1 and notes = 'lr'", settings)).toEqual({ filter: "config.lr < 1 and notes = 'lr'" });
    expect(askedOf("name = 'a'", settings)).toEqual({ filter: "name = 'a'" });
    expect(askedOf("unknown = 1", settings)).toEqual({ filter: "unknown = 1" });
  });
  it("knows a setting by its last parts, where one alone has them", () => {
    const nested = new Set(["agent.passes", "agent.net.width", "critic.net.width", "depth", "net.depth"]);
    expect(askedOf("passes = 3", nested)).toEqual({ filter: "config.agent.passes = 3" });
    expect(askedOf("agent.net.width > 8", nested)).toEqual({ filter: "config.agent.net.width > 8" });
    expect(askedOf("depth = 2", nested)).toEqual({ filter: "config.depth = 2" });
    expect(askedOf("width > 8", nested)).toEqual({ filter: "width > 8" });
    expect(askedOf("asses = 3", nested)).toEqual({ filter: "asses = 3" });
  });
  it("is a regular expression between two strokes", () => {
    expect(askedOf("/ppo|it's/", settings).filter).toContain("'ppo|it''s', 'i')");
  });
});
