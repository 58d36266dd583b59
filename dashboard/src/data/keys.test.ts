import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { KeyInfo } from "../api/names.ts";
import { asOne, heroSpan, packed, pinnedFirst, sections, split, telling } from "./keys.ts";
import { pattern } from "./search.ts";
import { shortNames } from "./names.ts";

const info = (key: string, runs = 1, canonical: string | null = null): KeyInfo => {
  return { key, runs, scope: key.split("/")[0] ?? "", name: key, canonical };
};
const keys = (...names: string[]): KeyInfo[] => names.map((key) => info(key));

/** The clocks of every run, and what the canonical names call a time or a counter, in every framework. */
function clocksAndCounters(): string[] {
  const schema = new URL("../../../src/rollbook/schema/", import.meta.url);
  const text = (name: string): string => readFileSync(new URL(name, schema), "utf8");
  const words = (part: string): string[] => [...part.matchAll(/"([^"]+)"/g)].map(([, word = ""]) => word);
  const standard = words(/^STANDARD = \((.*)\)$/m.exec(text("clocks.py"))?.[1] ?? "");
  const entries = text("aliases.py")
    .split("    Canonical(")
    .filter((entry) => /^\s*"(time\/|update\/count")/.test(entry));
  const natives = entries.flatMap((entry) => [
    ...words(entry).slice(0, 1),
    ...[...entry.matchAll(/^ {8}\("\w+", "([^"]+)"/gm)].map(([, key = ""]) => key),
  ]);
  expect(standard.length).toBeGreaterThan(4);
  expect(natives.length).toBeGreaterThan(40);
  return [...new Set([...standard, "train_iter", ...natives])];
}

describe("what is pinned when nobody chose", () => {
  test("is return, length, loss, entropy, KL and value loss, by canonical names", () => {
    const all = keys("host/cpu_percent", "rollbook/refused", "time/env_steps_per_second", "update/approx_kl");
    all.push(...keys("update/loss/policy", "update/loss/value", "update/entropy", "train/length", "test/return"));
    all.push(...keys("update/clip_fraction", "train/return"));
    expect(pinnedFirst(all)).toEqual([
      "test/return",
      "train/length",
      "update/loss/policy",
      "update/entropy",
      "update/approx_kl",
      "update/loss/value",
    ]);
  });
  test("finds them under the names of other libraries", () => {
    const sb3 = [
      info("rollout/ep_rew_mean", 1, "train/return"),
      info("rollout/ep_len_mean", 1, "train/length"),
      info("train/policy_gradient_loss", 1, "update/loss/policy"),
      info("train/value_loss", 1, "update/loss/value"),
      info("train/entropy_loss", 1, "update/loss/entropy"),
      info("train/approx_kl", 1, "update/approx_kl"),
      info("time/fps"),
    ];
    expect(pinnedFirst(sb3)).toEqual([
      "rollout/ep_rew_mean",
      "rollout/ep_len_mean",
      "train/policy_gradient_loss",
      "train/entropy_loss",
      "train/approx_kl",
      "train/value_loss",
    ]);
  });
  test("has the length of answers of a language model, and no extreme of what stands there", () => {
    const verl = [
      info("critic/rewards/mean", 1, "train/reward"),
      info("response_length/mean", 1, "train/completion_length"),
      ...keys(
        "critic/rewards/max",
        "critic/rewards/min",
        "actor/pg_loss",
        "actor/entropy",
        "actor/ppo_kl",
        "actor/grad_norm",
      ),
    ];
    expect(pinnedFirst(verl).slice(0, 2)).toEqual(["critic/rewards/mean", "response_length/mean"]);
    expect(pinnedFirst(verl)).not.toContain("critic/rewards/max");
  });
  test.each(["host/cpu_percent", "rollbook/refused", "time/fps", "system/gpu", "samples/new"])("is never %s", (key) => {
    expect(pinnedFirst(keys(key))).toEqual([]);
    expect(pinnedFirst(keys(key, "own/number"))).toEqual(["own/number"]);
  });
  test.each(clocksAndCounters())("is never the clock or counter %s", (name) => {
    expect(pinnedFirst([info(name, 9), info(`train/${name}`, 9), info("own/number")])).toEqual(["own/number"]);
  });
  test("is no counter that has a canonical name, whatever its own", () => {
    const all = [info("loop/done_so_far", 1, "time/env_steps"), info("loop/n", 1, "update/count"), info("own/number")];
    expect(pinnedFirst(all)).toEqual(["own/number"]);
  });
  test("never holds one quantity twice, under its own name and the one that runs share", () => {
    const all = [info("rollout/ep_rew_mean", 2, "train/return"), info("train/return", 3)];
    expect(pinnedFirst(all)).toHaveLength(1);
  });
  test("is at most as many as there are, and leaves spreads out", () => {
    expect(pinnedFirst(keys("a/x", "a/x_std", "a/return_min"))).toEqual(["a/x"]);
    expect(pinnedFirst([])).toEqual([]);
    expect(pinnedFirst(keys("a/1", "a/2", "a/3", "a/4"), 2)).toHaveLength(2);
  });
});

describe("sections", () => {
  test("do not repeat what stands above, and a search finds it again", () => {
    const all = keys("test/return", "update/kl", "update/loss");
    expect(sections(all, null, ["update/kl"]).map((one) => one.keys.map(({ key }) => key))).toEqual([
      ["test/return"],
      ["update/loss"],
    ]);
    expect(sections(all, pattern("kl"), ["update/kl"])).toHaveLength(1);
    expect(sections(all, null, ["test/return"]).map(({ scope }) => scope)).toEqual(["update"]);
  });
  const section = (scope: string, many: number) => ({ scope, keys: Array.from({ length: many }, (_, i) => i) });
  test("that are small share a row", () => {
    const rows = packed([section("a", 2), section("b", 5), section("c", 1)], 3);
    expect(rows.map(({ scope, span }) => `${scope}${span}`)).toEqual(["a2", "c1", "b3"]);
  });
  test("keep their order where each fits, and all are there once", () => {
    const all = [1, 1, 1, 3, 2, 9, 1, 2].map((many, i) => section(String(i), many));
    for (const columns of [1, 2, 3, 4, 7]) {
      const rows = packed(all, columns);
      expect(rows.map(({ scope }) => scope).sort()).toEqual(all.map(({ scope }) => scope));
      expect(rows.every(({ span }) => span >= 1 && span <= columns)).toBe(true);
    }
    expect(packed([section("a", 1), section("b", 1)], 3).map(({ scope }) => scope)).toEqual(["a", "b"]);
    expect(packed([], 3)).toEqual([]);
  });
  test.each([
    [6, 3, 1],
    [5, 3, 2],
    [4, 3, 3],
    [1, 3, 3],
    [6, 4, 3],
    [6, 1, 1],
    [0, 2, 2],
  ])("the first of %i charts in %i columns takes %i, so that no row has a hole", (many, columns, span) => {
    expect(heroSpan(many, columns)).toBe(span);
    if (many > 0) expect((many - 1 + span) % columns).toBe(0);
  });
  test("a key is its grey scope and its bold name", () => {
    expect(split("update/loss/value")).toEqual({ scope: "update/", name: "loss/value" });
    expect(split("loss")).toEqual({ scope: "", name: "loss" });
  });
});

describe("names at the ends of lines", () => {
  test("leave out what all share", () => {
    expect(shortNames(["ppo, seed 1", "ppo, seed 2"])).toEqual(["seed 1", "seed 2"]);
    expect(shortNames(["ppo lr 0.001", "ppo lr 0.003"])).toEqual(["lr 0.001", "lr 0.003"]);
  });
  test("never vanish, and are cut in the middle", () => {
    expect(shortNames(["ppo"])).toEqual(["ppo"]);
    expect(shortNames(["ppo", "ppo"])).toEqual(["ppo", "ppo"]);
    expect(shortNames([""])).toEqual([""]);
    const [long = ""] = shortNames(["a".repeat(20) + "b".repeat(20)], 10);
    expect(long).toBe("aaaa…bbbbb");
    expect(shortNames([])).toEqual([]);
  });
});

test("a return is the table's key, too, where some runs have the test's and others that of training", () => {
  const mixed = [info("test/return", 2), info("train/return", 2), info("train/reward", 2), info("loss/policy", 6)];
  expect(telling(asOne(mixed))).toBe("test/return");
  expect(telling(asOne([info("train/reward", 1), info("loss/policy", 6)]))).toBe("loss/policy");
});
