/** What linked charts share: the part of x they show and the place of the cursor. One hand moves all. */

import { signal } from "@preact/signals";

export interface View {
  x0: number;
  x1: number;
}

/** Whether there is a part of x to show: with a width, and with ends. */
export function isRange({ x0, x1 }: View): boolean {
  return x1 > x0 && Number.isFinite(x1 - x0);
}

/** A chart as the hub sees it. */
export interface Follower {
  /** Shows `view` quickly (`exact` false: its picture is stretched) or exactly. */
  show(view: View, exact: boolean): void;
  /** Shows the cursor at x, or none. */
  point(x: number | null, hovered: boolean): void;
  /** The whole range of its data. */
  span(): View | null;
  visible(): boolean;
  /** What it shows exactly; null: nothing yet. */
  readonly drawn: View | null;
}

const REST = 110;
const ANEW = 6; // frames
const OTHERS = 2; // frames

export class Hub {
  /** What is shown at rest; null is the whole range. Pages read and write it (the address, the server's rows). */
  readonly view = signal<View | null>(null);
  readonly cursor = signal<number | null>(null);
  /** Counts frames of gestures, so that tests and measurements can see them. */
  frames = 0;

  private readonly followers = new Set<Follower>();
  /** The union of what they have; undefined: not computed since one of them changed. */
  private all: View | null | undefined;
  private now: View | null = null;
  private moved: Follower | null = null;
  private frame = 0;
  private rest: ReturnType<typeof setTimeout> | undefined;
  private pointed: { x: number | null; by: Follower | null } | null = null;

  constructor(readonly log: () => boolean = () => false) {}

  add(follower: Follower): () => void {
    this.followers.add(follower);
    this.all = undefined;
    return () => {
      this.followers.delete(follower);
      this.grown();
    };
  }

  /** What is shown in this frame. */
  current(): View | null {
    return this.now ?? this.view.peek() ?? this.whole();
  }

  /** The union of what all charts have; around a single point some width. */
  whole(): View | null {
    const all = this.union();
    if (!all || all.x1 > all.x0) return all;
    const pad = Math.max(0.5, Math.abs(all.x0) * 1e-15);
    return { x0: all.x0 - pad, x1: all.x1 + pad };
  }

  private union(): View | null {
    if (this.all !== undefined) return this.all;
    let all: View | null = null;
    for (const follower of this.followers) {
      const span = follower.span();
      if (!span) continue;
      all = all ? { x0: Math.min(all.x0, span.x0), x1: Math.max(all.x1, span.x1) } : span;
    }
    this.all = all;
    return all;
  }

  /** Whether a hand can go there: to a range, and where the charts have more than one x. */
  private takes(view: View): boolean {
    const all = this.union();
    return isRange(view) && (!all || all.x1 > all.x0);
  }

  /** Moves all charts in the next frame; `by` is drawn exactly every few frames, the others when the hand rests. */
  move(view: View, by: Follower | null): void {
    const whole = this.whole();
    const least = Math.max(Math.abs(view.x0), Math.abs(view.x1)) * 1e-9;
    const to = whole && clamp(view, whole);
    if (!to || !this.takes(to) || to.x1 - to.x0 <= least) return;
    this.now = to;
    this.moved = by;
    this.frame ||= requestAnimationFrame(() => this.step());
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.settle(), REST);
  }

  /** Jumps: all exact at once. To what is no range, or beside the only x there is, it does not. */
  jump(view: View | null): void {
    if (view && !this.takes(view)) return;
    clearTimeout(this.rest);
    this.now = view;
    this.settle();
  }

  /** Zooms by `factor` (below 1: closer) around the share of the width that stays in place. */
  zoom(factor: number, share: number, by: Follower | null): void {
    const view = this.current();
    if (!view) return;
    const at = this.between(view, share);
    if (this.log() && view.x0 > 0) {
      const [a, b, m] = [Math.log(view.x0), Math.log(view.x1), Math.log(at)];
      this.move({ x0: Math.exp(m - (m - a) * factor), x1: Math.exp(m + (b - m) * factor) }, by);
    } else this.move({ x0: at - (at - view.x0) * factor, x1: at + (view.x1 - at) * factor }, by);
  }

  /** Moves the window by a share of its width, from `view` or from where it is; at an end it stops, no narrower. */
  pan(share: number, by: Follower | null, view = this.current()): void {
    const whole = this.whole();
    if (view && whole) this.move(shifted(view, share, whole, this.log()), by);
  }

  between(view: View, share: number): number {
    return this.log() && view.x0 > 0 ? view.x0 * (view.x1 / view.x0) ** share : view.x0 + (view.x1 - view.x0) * share;
  }

  /** Puts the cursor of all charts at x in the next frame. */
  point(x: number | null, by: Follower | null): void {
    this.pointed = { x, by };
    this.frame ||= requestAnimationFrame(() => this.step());
  }

  /** Shows the state at rest again: data or sizes changed. */
  refresh(): void {
    if (this.now === null) this.settle();
  }

  /** One chart has data of another span: where the whole range is shown and became another one, the others follow. */
  grown(): void {
    this.all = undefined;
    if (this.now !== null || this.view.peek() !== null) return;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => {
      const whole = this.whole();
      for (const one of this.followers)
        if (whole && one.drawn && one.visible() && !same(one.drawn, whole)) one.show(whole, true);
    }, REST);
  }

  private step(): void {
    this.frame = 0;
    if (this.pointed) {
      const { x, by } = this.pointed;
      this.pointed = null;
      this.cursor.value = x;
      for (const follower of this.followers) if (follower.visible()) follower.point(x, follower === by);
    }
    if (this.now === null) return;
    this.frames++;
    // The chart in the hand is drawn anew every few frames and stretched like the others in between: drawing ten runs
    // costs more than a frame has. The others follow in every second one: eyes are on the chart in the hand.
    const fresh = this.frames % ANEW === 0;
    const all = this.frames % OTHERS === 0 || this.moved === null;
    for (const follower of this.followers)
      if (follower.visible() && (all || follower === this.moved))
        follower.show(this.now, fresh && follower === this.moved);
  }

  private settle(): void {
    const whole = this.whole();
    const view = this.now ?? this.view.peek();
    this.now = null;
    const isWhole = !view || (whole !== null && view.x0 <= whole.x0 && view.x1 >= whole.x1);
    const next = isWhole ? null : view;
    const old = this.view.peek();
    if (!same(next, old)) this.view.value = next;
    const shown = next ?? whole;
    if (shown) for (const follower of this.followers) if (follower.visible()) follower.show(shown, true);
  }
}

export const same = (a: View | null, b: View | null): boolean => a?.x0 === b?.x0 && a?.x1 === b?.x1;

/** A window moved by a share of its width (on a log axis: of its ratio) within the whole, and no narrower for that. */
export function shifted(view: View, share: number, whole: View, log: boolean): View {
  const isLog = log && view.x0 > 0;
  const [to, from] = isLog ? [Math.log, Math.exp] : [(x: number) => x, (x: number) => x];
  const [x0, x1] = [to(view.x0), to(view.x1)];
  const least = (isLog && whole.x0 <= 0 ? -Infinity : to(whole.x0)) - x0;
  const most = to(whole.x1) - x1;
  if (!(least <= most)) return view; // wider than the whole: there is nowhere to go
  const by = Math.max(least, Math.min(most, share * (x1 - x0)));
  // An end that is reached is that of the curves, digit by digit.
  return { x0: by === least ? whole.x0 : from(x0 + by), x1: by === most ? whole.x1 : from(x1 + by) };
}

function clamp(view: View, whole: View): View {
  return { x0: Math.max(view.x0, whole.x0), x1: Math.min(view.x1, whole.x1) };
}
