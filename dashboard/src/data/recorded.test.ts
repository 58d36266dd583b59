import { expect, test } from "vitest";
import { inOrder, isInside } from "./recorded.ts";

const order = (cells: unknown[], descending = false) => inOrder(cells, (cell) => cell, descending);

test("rows without a value come last, NaN is above all numbers, equal ones stay as they were", () => {
  expect(order([2, null, "NaN", -1, "Infinity"])).toEqual([-1, 2, "Infinity", "NaN", null]);
  expect(order([2, null, "NaN", -1, "Infinity"], true)).toEqual(["NaN", "Infinity", 2, -1, null]);
  expect(order(["b", "B", "a", "ä"])).toEqual(["B", "a", "b", "ä"]);
  expect(order([true, false])).toEqual([false, true]);
  const rows = [
    { id: 1, n: 5 },
    { id: 2, n: 5 },
  ];
  expect(inOrder(rows, ({ n }) => n, true)?.map(({ id }) => id)).toEqual([1, 2]);
});

test("cells that may be cut, are nested or of several kinds tell no order", () => {
  expect(order(["a".repeat(300), "b"])).toBeNull();
  expect(order([{ a: 1 }, { a: 2 }])).toBeNull();
  expect(order([1, "two"])).toBeNull();
});

test("a cell without a number is inside nothing", () => {
  expect([3, null, "NaN", 9].map((cell) => isInside(cell, 0, 5))).toEqual([true, false, false, false]);
});
