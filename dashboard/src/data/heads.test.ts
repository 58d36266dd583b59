import { describe, expect, test } from "vitest";
import { headsOf, lastParts } from "./heads.ts";

describe("the last parts of keys", () => {
  test("are as few as tell them apart", () => {
    expect(lastParts(["train/return", "update/loss"])).toEqual(["return", "loss"]);
    expect(lastParts(["train/return", "test/return", "loss"])).toEqual(["train/return", "test/return", "loss"]);
    expect(lastParts(["a/b/c", "d/b/c", "lr", "train/lr"])).toEqual(["a/b/c", "d/b/c", "lr", "train/lr"]);
    expect(lastParts(["train/return", "train/return"])).toEqual(["return", "return"]); // the last and the largest of one
  });
});

describe("the heads of columns", () => {
  test("are all different, and a curve is called one where its key has another column", () => {
    expect(headsOf(["spark", "return", "last:train/return", "max:train/return"], "train/return")).toEqual([
      "curve",
      "return",
      "train/return",
      "max return",
    ]);
    expect(headsOf(["status", "spark", "config.lr"], "train/return")).toEqual(["status", "return", "lr"]);
    const deep = [
      "config.algorithm.kl_coef",
      "config.actor.optim.lr",
      "config.critic.optim.lr",
      "seed",
      "config.a.seed",
    ];
    expect(headsOf(deep, "")).toEqual(["kl_coef", "actor.optim.lr", "critic.optim.lr", "seed", "a.seed"]);
  });
});
