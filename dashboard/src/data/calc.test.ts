import { describe, expect, it } from "vitest";
import type { Line } from "../charts/model.ts";
import { calculated, keysOf, read } from "./calc.ts";

const KEYS = ["train/return", "test/return", "loss/policy", "loss/value", "loss"];
const line = (x: number[], y: number[]): Line => ({
  id: "a",
  name: "a",
  color: 1,
  x: Float64Array.from(x),
  y: Float32Array.from(y),
  envelope: false,
});
const of = (text: string, lines: Record<string, Line>): number[] => {
  const found = read(text, Object.keys(lines));
  if ("error" in found) throw new Error(found.error);
  return [...(calculated(found.nodes[0] as never, new Map(Object.entries(lines)))?.y ?? [])];
};

describe("expressions over keys", () => {
  it("tell the stroke of a key from a division", () => {
    const name = (text: string): string => {
      const found = read(text, KEYS);
      return "error" in found ? found.error : found.name;
    };
    expect(name("train/return - test/return")).toBe('="train/return" - "test/return"');
    expect(name("loss/policy/loss/value")).toBe('="loss/policy" / "loss/value"');
    expect(name("loss / 2, train/return")).toBe('="loss" / 2, "train/return"');
    expect(name("(loss + 1) * abs(loss/value - 2)")).toBe('=("loss" + 1) * abs("loss/value" - 2)');
    expect(name("1 - (2 - loss)")).toBe('=1 - (2 - "loss")');
    expect(name("loss * ")).toBe("A key is missing at the end.");
    expect(name("lost + 1")).toBe("No drawn run has a key “lost”.");
    expect(name("loss loss")).toContain("expected");
    expect(name("(loss")).toContain("not closed");
    expect(name("1 + 2")).toContain("no key");
    expect(name("(".repeat(200) + "loss")).toContain("deep");
  });
  it("are read again from their own name, without knowing any key", () => {
    for (const text of ["train/return - test/return", "-loss ^ 2 / (1 + loss)", "log(loss), loss/value"]) {
      const first = read(text, KEYS);
      if ("error" in first) throw new Error(first.error);
      expect(read(first.name)).toEqual(first);
    }
    const found = read("loss + loss/value * loss", KEYS);
    expect("nodes" in found && keysOf(found.nodes[0] as never)).toEqual(["loss", "loss/value"]);
  });
  it("are evaluated at the points of the finer key, between two points of the other on a straight line", () => {
    const [fine, rare] = [line([0, 1, 2, 3, 4], [1, 1, 1, 1, 1]), line([0, 4], [0, 8])];
    expect(of("rare - fine", { fine, rare })).toEqual([-1, 1, 3, 5, 7]);
    expect(of("fine / rare", { fine, rare })[0]).toBeNaN();
    expect(of("rare", { rare })).toEqual([0, 8]);
    expect(of("fine * rare", { fine, rare: line([1, 3], [2, 4]) })).toEqual([NaN, 2, 3, 4, NaN]);
    expect(of("fine + rare", { fine: line([0, 1, 2], [1, NaN, 1]), rare: line([0, 2], [1, 1]) })).toEqual([2, NaN, 2]);
  });
});
