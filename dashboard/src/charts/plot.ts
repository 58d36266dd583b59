/** One chart on the screen: three canvases (frame; texts under x; curves), a cursor, and the hands on it. */

import { apart, yRange, type Range } from "../data/range.ts";
import { endOf, valueAt } from "../data/lines.ts";
import { copyOf, fit } from "./canvas.ts";
import { drawAxes, drawGrid, drawLines, drawPin, drawXTexts } from "./draw.ts";
import { hold, type Held, type PlotEvents } from "./gestures.ts";
import { same, type Hub, type View } from "./hub.ts";
import {
  isNamed,
  project,
  type Axes,
  type AxisKind,
  type Box,
  type Line,
  type Mark,
  type Palette,
  type Pin,
} from "./model.ts";

export interface PlotData {
  lines: readonly Line[];
  marks: readonly Mark[];
  span: View | null;
  xLog: boolean;
  yLog: boolean;
  robust: boolean;
  range: Range | null;
  xKind: AxisKind;
  /** How much room names at the ends of lines have, in px; 0: none is written there. */
  ends: number;
  pin: Pin | null;
}

const AXIS = 17;
const GAP = 12; // px between names at the ends of lines
const LEAD = 9; // px from the plot to a name
const EMPTY_AFTER = 250; // ms: an empty frame is drawn where curves do not come at once

export class Plot implements Held {
  /** What the y axis shows at rest. */
  range: Range = { low: 0, high: 1 };
  private readonly frame = document.createElement("canvas");
  /** The texts under the x-axis: alone on a small canvas, because they alone are new in every frame of a gesture. */
  private readonly texts = document.createElement("canvas");
  private readonly clip = document.createElement("div");
  private readonly curves = document.createElement("canvas");
  private readonly line = document.createElement("div");
  private readonly dots: HTMLElement[] = [];
  private data: PlotData = {
    lines: [],
    marks: [],
    span: null,
    xLog: false,
    yLog: false,
    robust: true,
    range: null,
    xKind: "number",
    ends: 0,
    pin: null,
  };
  drawn: View | null = null;
  private size = { width: 0, height: 0 };
  private box: Box = { left: 36, top: 8, right: 0, bottom: 0 };
  /** Near the screen: worth drawing. In sight: worth moving with every frame of a hand. */
  private onScreen = true;
  private inSight = true;
  private stale = false;
  /** A copy of the exact drawing, as long as a hand moves. */
  private still: OffscreenCanvas | null = null;
  private emptied: ReturnType<typeof setTimeout> | undefined;
  private readonly drop: (() => void)[] = [];

  constructor(
    readonly root: HTMLElement,
    readonly hub: Hub,
    private look: Palette,
    readonly events: PlotEvents,
  ) {
    this.clip.className = "clip";
    this.line.className = "cursorline";
    this.line.hidden = true;
    this.clip.append(this.curves);
    this.texts.className = "xtexts";
    for (const canvas of [this.texts, this.curves]) canvas.width = canvas.height = 1;
    root.append(this.frame, this.texts, this.clip, this.line);
    const sizes = new ResizeObserver(() => this.resize());
    sizes.observe(root);
    const sees = new IntersectionObserver((entries) => this.see(entries.at(-1)?.isIntersecting ?? true), {
      rootMargin: "120px",
    });
    sees.observe(root);
    const sights = new IntersectionObserver((entries) => {
      this.inSight = entries.at(-1)?.isIntersecting ?? true;
    });
    sights.observe(root);
    this.drop.push(
      () => sizes.disconnect(),
      () => sees.disconnect(),
      () => sights.disconnect(),
      hub.add(this),
      hold(this),
    );
  }

  destroy(): void {
    clearTimeout(this.emptied);
    for (const drop of this.drop) drop();
    this.root.replaceChildren();
  }

  set(data: PlotData, look: Palette): void {
    const grown = !same(data.span, this.data.span);
    this.data = data;
    this.look = look;
    if (grown) this.hub.grown();
    this.redraw();
  }

  span(): View | null {
    return this.data.span;
  }

  visible(): boolean {
    return this.onScreen;
  }

  /** The share of the plot's width at a page coordinate, 0 to 1 inside. */
  share(clientX: number): number {
    const left = this.root.getBoundingClientRect().left + this.box.left;
    return (clientX - left) / Math.max(1, this.box.right - this.box.left);
  }

  redraw(): void {
    const view = this.hub.current() ?? this.data.span;
    if (view) this.show(view, true);
    else if (this.drawn) this.blank();
    else
      this.emptied ??= setTimeout(() => {
        if (!this.drawn && this.size.width > 0) this.blank();
        this.emptied = undefined;
      }, EMPTY_AFTER);
  }

  show(view: View, exact: boolean): void {
    if (!this.onScreen || this.size.width === 0) {
      this.stale = true;
      return;
    }
    if (exact || !this.drawn) this.exact(view);
    else if (this.inSight) this.stretch(view);
    else this.stale = true;
    this.point(this.hub.cursor.peek(), this.line.dataset["here"] === "1");
  }

  point(x: number | null, hovered: boolean): void {
    this.line.dataset["here"] = hovered ? "1" : "0";
    const inside = x !== null && this.drawn !== null;
    const px = inside ? project(this.axes(this.hub.current() ?? this.drawn!), this.box).px(x) : -1;
    const shown = inside && px >= this.box.left - 0.5 && px <= this.box.right + 0.5;
    this.line.hidden = !shown;
    if (shown) this.line.style.transform = `translateX(${Math.round(px)}px)`;
    this.spot(shown && hovered ? x : null);
    this.events.read?.(shown ? x : null, hovered);
  }

  /** The line nearest to a place on the chart. */
  nearest(clientX: number, clientY: number): { line: Line; x: number } | null {
    const view = this.hub.current();
    if (!view) return null;
    const rect = this.root.getBoundingClientRect();
    const at = project(this.axes(view), this.box);
    const x = at.x(clientX - rect.left);
    let best: { line: Line; x: number; far: number } | null = null;
    for (const line of this.data.lines) {
      const hit = valueAt(line, x);
      if (!hit || !Number.isFinite(hit.value)) continue;
      const far = Math.abs(at.py(hit.value) - (clientY - rect.top));
      if (!best || far < best.far) best = { line, x: line.x[hit.index] as number, far };
    }
    return best;
  }

  axes(view: View): Axes {
    const { xLog, yLog, xKind } = this.data;
    const x0 = xLog ? Math.max(view.x0, view.x1 * 1e-6, Number.MIN_VALUE) : view.x0;
    return { x0, x1: view.x1, y0: this.range.low, y1: this.range.high, xLog, yLog, xKind };
  }

  /** Size of the drawing in CSS pixels, and where the plot lies in it. */
  layout(): { width: number; height: number; box: Box } {
    return { ...this.size, box: this.box };
  }

  /** What is drawn at rest, for another paper; null while there is nothing. */
  picture(): { axes: Axes; lines: readonly Line[]; marks: readonly Mark[]; look: Palette } | null {
    return (
      this.drawn && { axes: this.axes(this.drawn), lines: this.data.lines, marks: this.data.marks, look: this.look }
    );
  }

  private see(now: boolean): void {
    this.onScreen = now;
    this.root.classList.toggle("away", !now); // every canvas on the page costs in every frame, seen or not
    if (!now) return;
    if (this.stale || (this.drawn && !same(this.drawn, this.hub.current()))) this.redraw();
    else this.point(this.hub.cursor.peek(), this.line.dataset["here"] === "1"); // out of sight it followed no hand
  }

  private resize(): void {
    const { width, height } = this.root.getBoundingClientRect();
    if (Math.round(width) === this.size.width && Math.round(height) === this.size.height) return;
    this.size = { width: Math.round(width), height: Math.round(height) };
    this.events.sized?.(this.size.width);
    this.redraw();
  }

  private place(): void {
    const groups = this.data.lines.filter((line) => line.seeds && line.seeds.of > 1).length;
    const strips = Math.min(6, groups) * 4;
    const ends = this.named() ? this.data.ends : 8;
    this.box = {
      left: 38,
      top: 8 + strips,
      right: Math.max(60, Math.round(this.size.width - ends)),
      bottom: Math.max(30, this.size.height - AXIS),
    };
  }

  private exact(view: View): void {
    this.stale = false;
    this.place();
    const { lines, yLog, robust } = this.data;
    const all = yRange(lines, view.x0, view.x1, { robust, log: yLog });
    const said = this.data.range;
    const range = said && all && (!yLog || said.low > 0) ? said : all;
    this.range = range ?? (yLog ? { low: 0.1, high: 10 } : { low: 0, high: 1 });
    this.drawn = view;
    const axes = this.axes(view);
    // Without a value there is no scale: numbers beside an empty grid would be made up.
    const look = range === null ? { ...this.look, ink3: "transparent" } : this.look;
    drawGrid(fit(this.frame, this.size.width, this.size.height), axes, this.box, look);
    this.drawTexts(axes);
    const width = this.box.right - this.box.left;
    this.clip.style.left = `${this.box.left}px`;
    this.clip.style.width = `${width}px`;
    this.still = null;
    const pen = fit(this.curves, width, this.size.height);
    pen.translate(-this.box.left, 0);
    drawLines(pen, lines, this.data.marks, axes, this.box, this.look);
    if (this.data.pin) drawPin(pen, this.data.pin, lines, axes, this.box, this.look);
    this.drawEnds(axes);
    this.tell(axes);
  }

  /** What is drawn where, for measurements and tests from outside. */
  private tell({ x0, x1, y0, y1 }: Axes): void {
    const { left, right, top, bottom } = this.box;
    this.root.dataset["drawn"] = [x0, x1, y0, y1, left, right, top, bottom].join(" ");
  }

  /** The last exact drawing, stretched: painted, since to move a canvas has the browser order its layers anew. */
  private stretch(view: View): void {
    const old = this.drawn as View;
    const box = { left: 0, right: this.box.right - this.box.left, top: 0, bottom: 1 };
    const at = project(this.axes(view), box);
    const [a, b] = [at.px(this.data.xLog ? Math.max(old.x0, old.x1 * 1e-6) : old.x0), at.px(old.x1)];
    const { curves } = this;
    this.still ??= copyOf(curves);
    const pen = curves.getContext("2d") as CanvasRenderingContext2D;
    const ratio = curves.width / box.right;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.clearRect(0, 0, curves.width, curves.height);
    pen.drawImage(this.still, a * ratio, 0, (b - a) * ratio, curves.height);
    this.drawTexts(this.axes(view));
  }

  private drawTexts(axes: Axes): void {
    const pen = fit(this.texts, this.size.width, AXIS);
    drawXTexts(pen, axes, { ...this.box, bottom: 0 }, this.look);
  }

  private blank(): void {
    if (!this.onScreen) {
      this.stale = true;
      return;
    }
    this.place();
    this.events.ends?.(null, 0);
    if (this.drawn) for (const canvas of [this.curves, this.texts]) fit(canvas, 1, 1);
    this.drawn = null;
    const axes = { x0: 0, x1: 1, y0: 0, y1: 1, xLog: false, yLog: false, xKind: "number" as const };
    const pen = fit(this.frame, this.size.width, this.size.height);
    pen.globalAlpha = 0.5;
    drawAxes(pen, axes, this.box, { ...this.look, ink3: "transparent" });
  }

  private named(): boolean {
    return this.data.ends > 0;
  }

  /** Says where names stand beside the ends of their lines, and draws what leads to each. */
  private drawEnds(axes: Axes): void {
    const pen = this.frame.getContext("2d");
    if (!pen || !this.named()) {
      this.events.ends?.(null, 0);
      return;
    }
    const at = project(axes, this.box);
    const curves = this.data.lines.filter(isNamed);
    const known = curves
      .map((line, i) => ({ line, i, end: endOf(line, axes.x1) }))
      .filter((one) => one.end !== null && one.end.x >= axes.x0)
      .map(({ line, i, end }) => ({ line, i, px: at.px(end?.x ?? 0), py: at.py(end?.value ?? 0) }))
      .sort((a, b) => a.py - b.py)
      .slice(0, Math.max(1, Math.floor((this.box.bottom - this.box.top) / GAP) + 1));
    const places = apart(
      known.map((end) => Math.max(this.box.top, Math.min(this.box.bottom, end.py))),
      GAP,
      this.box.top,
      this.box.bottom,
    );
    pen.lineWidth = 1;
    for (const [k, { line, px, py }] of known.entries()) {
      pen.strokeStyle = this.look.series[line.color] ?? this.look.ink2;
      pen.globalAlpha = 0.6;
      pen.beginPath();
      const from = Math.min(px, this.box.right);
      // A line that ends early is led to its name by dots.
      pen.setLineDash(from < this.box.right - 4 ? [1, 3] : []);
      pen.moveTo(from + 1, Math.max(this.box.top, Math.min(this.box.bottom, py)));
      pen.lineTo(this.box.right + 2, Math.max(this.box.top, Math.min(this.box.bottom, py)));
      pen.lineTo(this.box.right + LEAD, places[k] as number);
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    const where: (number | null)[] = curves.map(() => null);
    for (const [k, { i }] of known.entries()) where[i] = places[k] as number;
    this.events.ends?.(where, this.box.right + LEAD + 2);
  }

  private spot(x: number | null): void {
    const lines = x === null ? [] : this.data.lines;
    const view = this.hub.current();
    const at = view && project(this.axes(view), this.box);
    let used = 0;
    for (const line of lines.filter((one) => one.dim !== true).slice(0, 12)) {
      const hit = x === null ? null : valueAt(line, x);
      if (!hit || !at || !Number.isFinite(hit.value) || line.ghost === true) continue;
      const py = at.py(hit.value);
      const px = at.px(line.x[hit.index] as number); // where it was logged: between few points the cursor is beside it
      if (px < this.box.left - 2 || px > this.box.right + 2) continue;
      if (py < this.box.top - 2 || py > this.box.bottom + 2) continue;
      const dot = (this.dots[used] ??= this.root.appendChild(
        Object.assign(document.createElement("i"), { className: "spot" }),
      ));
      dot.hidden = false;
      dot.style.color = this.look.series[line.color] ?? this.look.ink2;
      dot.style.transform = `translate(${px}px, ${py}px)`;
      used++;
    }
    for (const dot of this.dots.slice(used)) dot.hidden = true;
  }
}
