import { describe, expect, it } from "vitest";
import cases from "./names.cases.json";
import { fullName, shortNames, withIds } from "./names.ts";

describe("runs", () => {
  it("are called by name, by what is theirs alone, and by seed; by their ids where that is all the same", () => {
    expect(fullName({ name: "ppo", own: "lr 3e-4", seed: 1 })).toBe("ppo lr 3e-4, seed 1");
    expect(fullName({ name: "ppo", own: "", seed: 1 })).toBe("ppo, seed 1");
    expect(fullName({ name: "ppo", seed: null })).toBe("ppo");
    expect(withIds(["seed 0", "seed 1", "seed 0"], ["a", "b", "c"])).toEqual(["seed 0 a", "seed 1", "seed 0 c"]);
  });
});

describe("names beside each other", () => {
  it("leave out what they share and keep what differs, whatever stands between their words", () => {
    expect(shortNames(["CartPole-v1__ppo__1__1700000001, seed 1", "CartPole-v1__a2c__1__1700000002, seed 1"])).toEqual([
      "ppo",
      "a2c",
    ]);
    expect(shortNames(["sac-lr0.003-g0.99, seed 1", "sac-lr0.001-g0.99, seed 1"])).toEqual(["lr0.003", "lr0.001"]);
    expect(shortNames(["ppo lr 3e-4", "ppo lr 1e-3"])).toEqual(["lr 3e-4", "lr 1e-3"]);
    expect(shortNames(["dqn, seed 0", "dqn, seed 1"])).toEqual(["seed 0", "seed 1"]);
    expect(shortNames(["ppo 1 seed 1", "ppo 2 seed 1"])).toEqual(["ppo 1", "ppo 2"]);
  });
  it("keep a name whole that has nothing of its own, and one that stands alone", () => {
    expect(shortNames(["ppo", "ppo lr 1e-3"])).toEqual(["ppo", "lr 1e-3"]);
    expect(shortNames(["CartPole-v1 ppo"])).toEqual(["CartPole-v1 ppo"]);
    expect(shortNames(["ppo", "dqn"], 20, true)).toEqual(["ppo", "dqn"]);
    expect(shortNames(["a/ppo 1", "a/ppo 2"], 20, true)).toEqual(["a/ppo 1", "a/ppo 2"]);
  });
  it("drop a time or a hash where the rest tells them apart, and keep it where it alone does", () => {
    expect(shortNames(["ppo 1700000001", "a2c 1700000002"])).toEqual(["ppo", "a2c"]);
    expect(shortNames(["ppo 1700000001", "ppo 1700000002"])).toEqual(["1700000001", "1700000002"]);
  });
  it("are never alike where they differ, however little room there is", () => {
    const long = Array.from({ length: 40 }, (_, i) => `walker_run_with_${i}_layers_and_${40 - i}_heads_of_${i % 7}`);
    for (const most of [4, 6, 8, 12, 20, 60]) {
      const short = shortNames(long, most);
      if (most >= 6) expect(new Set(short).size).toBe(40);
      expect(Math.max(...short.map((name) => name.length))).toBeLessThanOrEqual(Math.max(most, 6));
    }
    const tails = ["an_experiment_of_the_year_a", "an_experiment_of_the_year_b"];
    expect(shortNames(tails, 8)).toEqual(["a", "b"]);
  });
  it("are told apart in a large sweep beside runs of other names, by their values and first letters", () => {
    const sweep = [6, 12, 24].flatMap((depth) =>
      ["cosine", "linear"].flatMap((schedule) =>
        ["1e-4", "3e-4", "0.001", "0.003"].flatMap((lr) =>
          [0, 100, 500, 1000].map((warmup) => `depth ${depth} schedule ${schedule} lr ${lr} warmup ${warmup}`),
        ),
      ),
    );
    for (const names of [sweep, [...sweep, "live-a, seed 1", "live-b, seed 2"]])
      for (const most of [15, 20, 24, 30, 44]) {
        const short = shortNames(names, most, true);
        expect(new Set(short).size).toBe(names.length);
        expect(Math.max(...short.map((name) => name.length))).toBeLessThanOrEqual(most);
      }
    expect(shortNames([...sweep, "live-a, seed 1"], 20, true)[1]).toBe("6 cosine 1e-4 100");
    const seeds = sweep.flatMap((name) =>
      [0, 1, 2].map((seed) => `${name.replace("linear", "constant")}, seed ${seed}`),
    );
    expect(shortNames(seeds, 16, true).slice(0, 4)).toEqual([
      "6 cos 1e-4 0 0",
      "6 cos 1e-4 0 1",
      "6 cos 1e-4 0 2",
      "6 cos 1e-4 100 0",
    ]);
    expect(new Set(shortNames(seeds, 16, true)).size).toBe(seeds.length);
    const three = ["live-a, seed 1", "xl lr 3e-4 warmup 0 depth 6", "xl lr 0.003 warmup 0 depth 6"];
    expect(shortNames(three)).toEqual(["live-a, seed 1", "xl lr 3e-4", "xl lr 0.003"]);
  });
  it("keep only the settings that tell them apart where there is no room for all", () => {
    const sweep = [1, 2, 3].map((i) => `ppo lr=${i}e-4 width=${64 * i}`);
    expect(shortNames(sweep, 10)).toEqual(["lr=1e-4", "lr=2e-4", "lr=3e-4"]);
    expect(shortNames(sweep, 40)[0]).toBe("lr=1e-4 width=64");
  });
  it("are their numbers alone where there is room for no more, and they differ in nothing else", () => {
    const sweep = ["lr0.01-g0.99 seed 1", "lr0.01-g0.99 seed 0", "lr0.003-g0.9 seed 1"];
    expect(shortNames(sweep, 12)).toEqual(["lr0.01 s 1", "lr0.01 s 0", "lr0.003 s 1"]);
    expect(shortNames(sweep, 9)).toEqual(["lr0.01 1", "lr0.01 0", "lr0.003 1"]);
    expect(shortNames(["lr 3e-4 passes 10", "lr 3e-4 passes 3", "lr 0.03 passes 3"], 8)).toEqual([
      "3e-4 10",
      "3e-4 3",
      "0.03 3",
    ]);
    expect(shortNames(["ppo2 tuned long", "a2c tuned longer"], 6).every((name) => /ppo2|a2c/.test(name))).toBe(true);
  });
  it("say a run and a key of it each by itself, and leave out the side that all share", () => {
    const both = ["ppo, seed 0", "ppo, seed 1"].flatMap((run) =>
      ["return", "length"].map((key) => `${run} · train/${key}`),
    );
    expect(shortNames(both)).toEqual(["seed 0 · return", "seed 0 · length", "seed 1 · return", "seed 1 · length"]);
    expect(shortNames(both.slice(0, 2))).toEqual(["return", "length"]);
    expect(shortNames(["ppo · loss", "dqn · loss"])).toEqual(["ppo", "dqn"]);
    expect(new Set(shortNames(both, 6)).size).toBe(4);
  });
  it("are shortened as Python does", () => {
    for (const { names, most, short } of cases) expect(shortNames(names, most, true)).toEqual(short);
  });
  it("are never alike where they differ, whatever their shape and the room for them", () => {
    // Shapes of names and widths from a fixed row of numbers that looks like chance.
    let state = 7;
    const below = (n: number): number => (state = (state * 48_271) % 2_147_483_647) % n;
    const of = (some: readonly string[]): string => some[below(some.length)] as string;
    const values = ["0.99", "0.995", "0.999", "3e-4", "0.001", "1000", "10000", "1e-8", "relu", "tanh", "true", "none"];
    const labels = ["lr", "gamma", "ent_coef", "net.width", "layers", "total_timesteps", "activation", "a", "l"];
    const shapes: (() => string)[] = [
      () => Array.from({ length: 1 + below(5) }, () => `${of(labels)} ${of(values)}`).join(" "),
      () => `ppo ${Array.from({ length: 4 }, (_, i) => `${labels[i]}=${of(values)}`).join(",")}, seed ${below(9)}`,
      () => `CartPole-v1__${of(["ppo", "a2c", "sac_discrete"])}__${below(4)}__${1_700_000_000 + below(99)}`,
      () => `${of(["long", "longer"])}_${"x".repeat(below(40))}${of(values)}`,
      () => "ab…#-_ ,".repeat(4).slice(below(9), 9 + below(20)),
      () => `${below(1e9).toString(16)} ${of(labels)}`,
    ];
    for (let round = 0; round < 120; round++) {
      const some = [shapes[below(6)], shapes[below(6)]] as (() => string)[];
      const names = Array.from({ length: 2 + below(60) }, () => (some[below(2)] as () => string)());
      for (const most of [3, 6, 9, 12, 16, 24, 26, 30, 60])
        for (const whole of [true, false]) {
          const told = new Map<string, string>();
          shortNames(names, most, whole).forEach((short, i) => {
            expect(told.get(short) ?? names[i]).toBe(names[i]);
            told.set(short, names[i] as string);
            expect(short.length).toBeGreaterThan(0);
            expect(short.length).toBeLessThanOrEqual(Math.max(most, 4));
          });
        }
    }
  });
  it("keep a word of their own rather than a seed alone", () => {
    const names = ["crash, seed 9", "ppo lr 0.001, seed 2", "ppo lr 0.001, seed 1", "ppo lr 3e-4, seed 1"];
    expect(shortNames(names, 12)[0]).toContain("crash");
  });
  it("stay equal where they are equal", () => {
    expect(shortNames(["ppo", "ppo"])).toEqual(["ppo", "ppo"]);
    expect(shortNames([])).toEqual([]);
  });
});
