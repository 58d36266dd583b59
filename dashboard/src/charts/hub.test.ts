import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Hub, isRange, shifted, type View } from "./hub.ts";

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
  hub.add({
    drawn: null,
    span: () => span,
    visible: () => true,
    show: (view) => expect(isRange(view)).toBe(true),
    point: () => {},
  });
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

test.each([
  [0.5, 5, 11],
  [9, 14, 20],
  [-0.1, 1.4, 7.4],
  [-9, 0, 6],
])("a hand that pans moves the window and never narrows it: by %d of its width to %d … %d", (share, x0, x1) => {
  const hub = hubOf({ x0: 0, x1: 20 }, { x0: 2, x1: 8 });
  hub.pan(share, null, { x0: 2, x1: 8 });
  vi.runAllTimers();
  expect(hub.view.value?.x0).toBeCloseTo(x0, 12);
  expect(hub.view.value?.x1).toBeCloseTo(x1, 12);
});

test("however one pans there and back at an end, the window has its width; on a log axis its ratio", () => {
  for (const [whole, view, log] of [
    [{ x0: 0, x1: 10 }, { x0: 7, x1: 9 }, false],
    [{ x0: -3e9, x1: 5e9 }, { x0: 1e9, x1: 4.9e9 }, false],
    [{ x0: 1, x1: 1e6 }, { x0: 10, x1: 1e5 }, true],
    [{ x0: 0, x1: 1e6 }, { x0: 10, x1: 1e5 }, true],
  ] as const) {
    const size = ({ x0, x1 }: View): number => (log ? x1 / x0 : x1 - x0);
    let now: View = view;
    for (const share of [0.3, 5, -0.01, -7, 0.2, -0.2, 1e6]) {
      now = shifted(now, share, whole, log);
      expect(size(now) / size(view)).toBeCloseTo(1, 9);
      expect(now.x0).toBeGreaterThanOrEqual(whole.x0);
      expect(now.x1).toBeLessThanOrEqual(whole.x1);
    }
  }
  const wide = { x0: -5, x1: 15 };
  expect(shifted(wide, 0.5, { x0: 0, x1: 10 }, false)).toEqual(wide);
});

test.each([0, 5, 1e-300, 1e17])("charts with one point, at x = %d, show it in whatever a hand does", (x) => {
  const hub = hubOf({ x0: x, x1: x }, null);
  const view = hub.current() as View;
  for (const right of [0.5, 0.9]) hub.jump({ x0: hub.between(view, 0.5), x1: hub.between(view, right) });
  for (const factor of [0, 0.5]) hub.zoom(factor, 0.2, null);
  vi.runAllTimers();
  expect(hub.view.value).toBe(null);
});

test("whichever chart gets its data first, in the end all show the same range; a zoom stays", () => {
  const hub = new Hub();
  const charts = [null, { x0: 10, x1: 40 }, { x0: 0, x1: 40 }, { x0: 0, x1: 41 }].map((span) => {
    const chart = { drawn: null as View | null, own: span as View | null };
    hub.add({
      get drawn() {
        return chart.drawn;
      },
      span: () => chart.own,
      visible: () => true,
      show: (view) => {
        chart.drawn = view;
      },
      point: () => {},
    });
    return chart;
  });
  const [late, ...others] = charts as [(typeof charts)[0], ...typeof charts];
  for (const chart of others) chart.drawn = chart.own;
  hub.grown();
  vi.runAllTimers();
  expect(others.map((chart) => chart.drawn)).toEqual(others.map(() => ({ x0: 0, x1: 41 })));
  expect(late.drawn).toBe(null);
  hub.jump({ x0: 5, x1: 9 });
  late.own = { x0: -3, x1: 50 };
  hub.grown();
  vi.runAllTimers();
  expect(others.map((chart) => chart.drawn)).toEqual(others.map(() => ({ x0: 5, x1: 9 })));
});
