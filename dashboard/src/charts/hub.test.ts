import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Hub, isRange, type View } from "./hub.ts";

const NONE: [number, number][] = [
  [5, 5],
  [9, 2],
  [NaN, 5],
  [5, NaN],
  [-Infinity, 5],
  [5, Infinity],
  [1e17, 1e17 + 1],
];

function hubOf(span: View, at: View | null): Hub {
  const hub = new Hub();
  hub.add({ span: () => span, visible: () => true, show: (view) => expect(isRange(view)).toBe(true), point: () => {} });
  hub.jump(at);
  return hub;
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("requestAnimationFrame", (act: () => void) => setTimeout(act, 16));
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test.each(NONE)("nobody goes to what is no range: %d to %d", (x0, x1) => {
  const hub = hubOf({ x0: 0, x1: 10 }, { x0: 2, x1: 8 });
  hub.jump({ x0, x1 });
  expect(hub.view.value).toEqual({ x0: 2, x1: 8 });
});

test.each([60, -60])("a hand that pans past the end of the curves stays on them: by %d", (by) => {
  const hub = hubOf({ x0: 0, x1: 10 }, { x0: 2, x1: 8 });
  hub.move({ x0: 2 + by, x1: 8 + by }, null);
  vi.runAllTimers();
  expect(hub.view.value).toEqual({ x0: 2, x1: 8 });
});

test.each([0, 5, 1e-300, 1e17])("charts with one point, at x = %d, show it in whatever a hand does", (x) => {
  const hub = hubOf({ x0: x, x1: x }, null);
  const view = hub.current() as View;
  for (const right of [0.5, 0.9]) hub.jump({ x0: hub.between(view, 0.5), x1: hub.between(view, right) });
  for (const factor of [0, 0.5]) hub.zoom(factor, 0.2, null);
  vi.runAllTimers();
  expect(hub.view.value).toBe(null);
});
