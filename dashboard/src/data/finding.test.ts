import { describe, expect, test } from "vitest";
import { fit, found } from "./finding.ts";

const thing = (kind: string, name: string, also = "") => ({ kind, name, soft: "", also });

describe("finding", () => {
  test.each([
    ["update/approx_kl", "kl", true],
    ["update/approx_kl", "KL update", true],
    ["update/approx_kl", "klx", false],
    ["update/loss/value", "los val", true],
    ["anything", "", true],
  ])("%s by %s: %s", (name, text, fits) => {
    expect(fit(name, text) !== null).toBe(fits);
  });
  test("what begins a word comes before what is in the middle of one, the shorter before the longer", () => {
    const names = ["tackle", "update/kl_reference", "update/kl"].map((name) => thing("Keys", name));
    expect(found(names, "kl", ["Keys"], 9).map(({ name }) => name)).toEqual([
      "update/kl",
      "update/kl_reference",
      "tackle",
    ]);
  });
  test("kinds stand in their order, each with at most so many", () => {
    const all = [thing("Pages", "loss page"), ...["loss/a", "loss/b", "loss/c"].map((name) => thing("Keys", name))];
    expect(found(all, "loss", ["Keys", "Pages"], 2).map(({ name }) => name)).toEqual(["loss/a", "loss/b", "loss page"]);
    expect(found(all, "nothing", ["Keys", "Pages"], 2)).toEqual([]);
  });
  test("a run is found by its id, and by what the server found it by", () => {
    const run = thing("Runs", "ppo", "x7");
    expect(found([run], "x7", ["Runs"], 9)).toHaveLength(1);
    expect(found([run], "a tag", ["Runs"], 9)).toHaveLength(0);
    expect(found([{ ...run, sure: true }], "a tag", ["Runs"], 9)).toHaveLength(1);
  });
});
