/** Hands on a chart: hover, click, drag to zoom, shift drag to pan, double click, ctrl wheel, two fingers. */

import type { Follower, Hub, View } from "./hub.ts";
import type { Box, Line } from "./model.ts";

const STILL = 4;
const SECOND = 220; // ms: until then a click may still become a double click

export interface PlotEvents {
  /** A click that was not a drag: the nearest line and the x of its point. */
  pick?: ((line: Line, x: number) => void) | undefined;
  /** A pointer went up that may become a click: it may still be half of a double click. */
  foresee?: ((line: Line, x: number) => void) | undefined;
  /** Where the names of the lines stand: their places from the top, null for one without; null: at no line's end. */
  ends?: ((places: readonly (number | null)[] | null, left: number) => void) | undefined;
  /** It has another width. */
  sized?: ((width: number) => void) | undefined;
  /** The values under the cursor changed. */
  read?: ((x: number | null, hovered: boolean) => void) | undefined;
}

const inside = (share: number): number => Math.max(0, Math.min(1, share));

/** The part of the width between two places, the left one first; without width where both lie beside the curves. */
const swept = (from: number, to: number): [number, number] => [inside(Math.min(from, to)), inside(Math.max(from, to))];

/** What hands are laid on. */
export interface Held extends Follower {
  readonly root: HTMLElement;
  readonly hub: Hub;
  readonly events: PlotEvents;
  share(clientX: number): number;
  nearest(clientX: number, clientY: number): { line: Line; x: number } | null;
  layout(): { box: Box };
}

/** Listens on the plot's element; returns what stops it. */
export function hold(plot: Held): () => void {
  const { root, hub } = plot;
  const zone = document.createElement("div");
  zone.className = "zone";
  zone.hidden = true;
  root.append(zone);
  const fingers = new Map<number, number>();
  let start: { share: number; x: number; y: number; view: View; pans: boolean } | null = null;
  let pinch: { gap: number; middle: number; view: View } | null = null;
  let tapped = -Infinity;
  let waiting: ReturnType<typeof setTimeout> | undefined;
  /** Where a click waits for whether a second one follows, and whether this press is the second. */
  let first: { x: number; y: number } | null = null;
  let second = false;

  const down = (event: PointerEvent): void => {
    const view = hub.current();
    if (!view || event.button !== 0) return;
    second = first !== null && Math.hypot(event.clientX - first.x, event.clientY - first.y) <= STILL;
    clearTimeout(waiting); // one press decides: of a click and what follows it, only the last acts
    first = null;
    if (event.pointerType === "touch") {
      fingers.set(event.pointerId, event.clientX);
      if (fingers.size === 2) {
        const [a, b] = [...fingers.values()] as [number, number];
        pinch = { gap: Math.max(12, Math.abs(a - b)), middle: plot.share((a + b) / 2), view };
      }
    } else root.setPointerCapture(event.pointerId);
    start = { share: plot.share(event.clientX), x: event.clientX, y: event.clientY, view, pans: event.shiftKey };
  };

  const move = (event: PointerEvent): void => {
    if (pinch && fingers.has(event.pointerId)) {
      fingers.set(event.pointerId, event.clientX);
      const [a, b] = [...fingers.values()] as [number, number];
      const factor = pinch.gap / Math.max(12, Math.abs(a - b));
      const at = hub.between(pinch.view, pinch.middle);
      hub.move({ x0: at - (at - pinch.view.x0) * factor, x1: at + (pinch.view.x1 - at) * factor }, plot);
      return;
    }
    const share = plot.share(event.clientX);
    if (start && event.pointerType !== "touch" && Math.abs(event.clientX - start.x) > STILL) {
      if (start.pans) hub.pan(start.share - share, plot, start.view);
      else {
        const { box } = plot.layout();
        const width = box.right - box.left;
        const [a, b] = swept(start.share, share);
        zone.hidden = false;
        zone.style.left = `${box.left + a * width}px`;
        zone.style.width = `${(b - a) * width}px`;
      }
    }
    const view = start?.pans === true ? null : hub.current(); // what lies under a hand that pans stays what it is
    hub.point(view && share >= -0.01 && share <= 1.01 ? hub.between(view, inside(share)) : null, plot);
  };

  const up = (event: PointerEvent): void => {
    fingers.delete(event.pointerId);
    zone.hidden = true;
    if (pinch) {
      if (fingers.size === 0) pinch = null;
      start = null;
      return;
    }
    if (!start) return;
    const moved = Math.abs(event.clientX - start.x) > STILL;
    const share = plot.share(event.clientX);
    const { view, pans } = start;
    const from = start.share;
    start = null;
    if (moved && event.pointerType !== "touch") {
      if (pans) return;
      const [a, b] = swept(from, share);
      hub.jump({ x0: hub.between(view, a), x1: hub.between(view, b) });
    } else if (!moved) tap(event);
  };

  // With a finger the first tap is the hover and the second the click.
  const tap = (event: PointerEvent): void => {
    if (event.pointerType === "touch" && event.timeStamp - tapped > 2500) {
      tapped = event.timeStamp;
      move(event);
      return;
    }
    const hit = plot.nearest(event.clientX, event.clientY);
    if (hit) plot.events.foresee?.(hit.line, hit.x);
    if (!hit || !plot.events.pick || second) return;
    first = { x: event.clientX, y: event.clientY };
    waiting = setTimeout(() => {
      first = null;
      plot.events.pick?.(hit.line, hit.x);
    }, SECOND);
  };

  const whole = (): void => {
    clearTimeout(waiting);
    first = null;
    hub.view.value = null;
    hub.jump(null);
  };
  const leave = (event: PointerEvent): void => {
    if (!start && event.pointerType !== "touch") hub.point(null, null);
  };
  const cancel = (event: PointerEvent): void => {
    fingers.delete(event.pointerId);
    start = pinch = null;
    zone.hidden = true;
  };
  const wheel = (event: WheelEvent): void => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    hub.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), inside(plot.share(event.clientX)), plot);
  };

  const listeners: [string, (event: never) => void, AddEventListenerOptions?][] = [
    ["pointerdown", down],
    ["pointermove", move],
    ["pointerup", up],
    ["pointercancel", cancel],
    ["pointerleave", leave],
    ["dblclick", whole],
    ["wheel", wheel, { passive: false }],
  ];
  for (const [name, on, options] of listeners) root.addEventListener(name, on as EventListener, options);
  return () => {
    clearTimeout(waiting);
    for (const [name, on] of listeners) root.removeEventListener(name, on as EventListener);
  };
}
