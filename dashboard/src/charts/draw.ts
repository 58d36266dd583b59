/** One chart drawn with a pen: frame and ticks (`drawAxes`), curves and marks (`drawLines`). No DOM, no state. */

import { cuts, startBeside } from "../data/range.ts";
import { shorts, value, wallTexts } from "../data/numbers.ts";
import { valueAt } from "../data/lines.ts";
import * as ticks from "../data/ticks.ts";
import {
  project,
  type Axes,
  type AxisKind,
  type Box,
  type Line,
  type Mark,
  type Palette,
  type Pin,
  type Projection,
} from "./model.ts";
import type { Pen } from "./pen.ts";

const TICK = 10;
/** How dark an envelope is: its area, and its strokes over it. */
const [FILL, STROKE] = [0.22, 0.38];
const DIM = 0.32;

export function xTicks(axes: Axes, width: number): number[] {
  const room = Math.max(2, Math.floor(width / 72));
  if (axes.xLog) return ticks.log(axes.x0, axes.x1, room);
  if (axes.xKind === "wall") return ticks.wall(axes.x0, axes.x1, room);
  if (axes.xKind === "duration") return ticks.duration(axes.x0, axes.x1, room);
  return (axes.xKind === "count" ? ticks.whole : ticks.linear)(axes.x0, axes.x1, room);
}

/** The texts of ticks beside each other, of which no two are alike; `span` decides the unit of a length of time. */
export function tickTexts(xs: readonly number[], kind: AxisKind, span: number): string[] {
  if (kind === "wall") return wallTexts(xs);
  const [unit, size] = kind === "duration" ? unitOf(span) : ["", 1];
  return shorts(xs.map((x) => x / size)).map((text) => text + unit);
}

function unitOf(span: number): [string, number] {
  if (span >= 2 * DAY) return [" d", DAY];
  if (span >= 2 * 3600) return [" h", 3600];
  return span >= 120 ? [" m", 60] : [" s", 1];
}

const DAY = 86400;

/** Grid lines and the texts at both axes. */
export function drawAxes(pen: Pen, axes: Axes, box: Box, look: Palette): void {
  drawGrid(pen, axes, box, look);
  drawXTexts(pen, axes, box, look);
}

/** Grid lines and the texts at the y-axis: what stays as it is while a hand moves x. */
export function drawGrid(pen: Pen, axes: Axes, box: Box, look: Palette): void {
  const at = project(axes, box);
  const rows = Math.max(2, Math.floor((box.bottom - box.top) / 36));
  const ys = axes.yLog ? ticks.log(axes.y0, axes.y1, rows) : ticks.linear(axes.y0, axes.y1, rows);
  pen.save();
  pen.lineWidth = 1;
  pen.strokeStyle = look.grid;
  pen.beginPath();
  for (const y of ys) {
    const py = Math.round(at.py(y)) + 0.5;
    pen.moveTo(box.left, py);
    pen.lineTo(box.right, py);
  }
  pen.stroke();
  pen.font = `${TICK}px ${look.font}`;
  pen.fillStyle = look.ink3;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  shorts(ys).forEach((text, i) => pen.fillText(text, box.left - 5, at.py(ys[i] as number)));
  pen.strokeStyle = look.axis;
  pen.lineWidth = 0.75;
  pen.beginPath();
  pen.moveTo(box.left, box.bottom + 0.5);
  pen.lineTo(box.right, box.bottom + 0.5);
  pen.stroke();
  pen.restore();
}

/** The texts under the x-axis alone: the only part that has to be new in every frame of a gesture. */
export function drawXTexts(pen: Pen, axes: Axes, box: Box, look: Palette): void {
  const at = project(axes, box);
  const span = axes.x1 - axes.x0;
  pen.save();
  pen.font = `${TICK}px ${look.font}`;
  pen.fillStyle = look.ink3;
  pen.textBaseline = "top";
  const xs = xTicks(axes, box.right - box.left);
  const texts = tickTexts(xs, axes.xKind, span);
  for (const [i, x] of xs.entries()) {
    const px = at.px(x);
    pen.textAlign = px > box.right - 12 ? "right" : px < box.left + 8 ? "left" : "center";
    pen.fillText(texts[i] as string, Math.min(px, box.right), box.bottom + 4);
  }
  pen.restore();
}

/** All curves, then what happened: bands below, then raw lines, then the lines one reads, then marks. */
export function drawLines(
  pen: Pen,
  lines: readonly Line[],
  marks: readonly Mark[],
  axes: Axes,
  box: Box,
  look: Palette,
): void {
  const at = project(axes, box);
  pen.save();
  pen.beginPath();
  pen.rect(box.left, box.top - 1, box.right - box.left, box.bottom - box.top + 2);
  pen.clip();
  pen.lineCap = "butt";
  const inFront = [...lines].sort((a, b) => Number(b.dim ?? false) - Number(a.dim ?? false));
  for (const line of inFront) if (line.dim !== true) drawBand(pen, line, at, axes, look);
  for (const line of inFront) drawCurve(pen, line, at, axes, look);
  pen.restore();
  drawSeeds(pen, lines, at, box, look);
  drawMarks(pen, marks, at, box, look);
  const flagged = marks.some(({ kind }) => kind === "alert");
  drawLost(pen, lines, at, axes, box, look, box.top + (flagged ? 15 : 3)); // below the flags
}

/** The moment that one looks into. */
export function drawPin(pen: Pen, pin: Pin, lines: readonly Line[], axes: Axes, box: Box, look: Palette): void {
  const at = project(axes, box);
  const px = at.px(pin.x);
  if (px < box.left - 1 || px > box.right + 1) return;
  pen.strokeStyle = look.ink;
  pen.globalAlpha = 0.6;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(Math.round(px) + 0.5, box.top);
  pen.lineTo(Math.round(px) + 0.5, box.bottom);
  pen.stroke();
  pen.globalAlpha = 1;
  for (const line of lines) {
    const hit = line.id === pin.line ? valueAt(line, pin.x) : null;
    if (!hit || !Number.isFinite(hit.value)) continue;
    const py = Math.max(box.top, Math.min(box.bottom, at.py(hit.value)));
    pen.beginPath();
    pen.moveTo(px + 4, py);
    pen.arc(px, py, 4, 0, Math.PI * 2);
    pen.fillStyle = color(line, look);
    pen.strokeStyle = look.panel;
    pen.lineWidth = 1.5;
    pen.fill();
    pen.stroke();
  }
}

/** First and last index whose x may touch [x0, x1]: one beyond on each side, so that lines run to the edge. */
export function window(x: Float64Array, x0: number, x1: number): [number, number] {
  return [Math.max(0, lowerBound(x, x0) - 1), Math.min(x.length - 1, lowerBound(x, x1) + 1)];
}

export function lowerBound(x: Float64Array, v: number): number {
  let [a, b] = [0, x.length];
  while (a < b) {
    const m = (a + b) >> 1;
    if ((x[m] as number) < v) a = m + 1;
    else b = m;
  }
  return a;
}

const color = (line: { color: number; ghost?: boolean | undefined }, look: Palette): string =>
  (line.ghost === true ? look.series[0] : look.series[line.color]) ?? look.ink2;

function drawBand(pen: Pen, line: Line, at: Projection, axes: Axes, look: Palette): void {
  const { x, low, high } = line;
  if (!low || !high) return;
  const floor = axes.yLog ? axes.y0 : -Infinity;
  const [first, last] = window(x, axes.x0, axes.x1);
  pen.fillStyle = pen.strokeStyle = color(line, look);
  pen.lineWidth = 1;
  const apart = (at.px(x[last] as number) - at.px(x[first] as number)) / Math.max(1, last - first);
  // Then strokes alone fill the band, as dark, for a fifth of the work.
  const dense = line.envelope === true && apart <= 1;
  let start = first;
  while (start <= last) {
    while (start <= last && !Number.isFinite(low[start] as number)) start++;
    let end = start;
    while (end + 1 <= last && Number.isFinite(low[end + 1] as number)) end++;
    if (start > last) break;
    if (!dense) {
      pen.beginPath();
      for (let i = start; i <= end; i++) pen.lineTo(at.px(x[i] as number), at.py(Math.max(high[i] as number, floor)));
      for (let i = end; i >= start; i--) pen.lineTo(at.px(x[i] as number), at.py(Math.max(low[i] as number, floor)));
      pen.closePath();
      pen.globalAlpha = line.envelope ? FILL : 0.16;
      pen.fill();
    }
    if (line.envelope) {
      // Every extreme reaches the screen: a stroke from min to max at each point, however thin the band is there.
      pen.beginPath();
      for (let i = start; i <= end; i++) {
        const px = at.px(x[i] as number);
        const top = at.py(Math.max(high[i] as number, floor));
        const bottom = at.py(Math.max(low[i] as number, floor));
        if (dense || bottom - top > 1) {
          pen.moveTo(px, top);
          pen.lineTo(px, bottom);
        }
      }
      pen.globalAlpha = dense ? 1 - (1 - STROKE) * (1 - FILL) ** apart : STROKE;
      pen.stroke();
    }
    start = end + 1;
  }
  pen.globalAlpha = 1;
}

function drawCurve(pen: Pen, line: Line, at: Projection, axes: Axes, look: Palette): void {
  const [first, last] = window(line.x, axes.x0, axes.x1);
  const width = at.px(axes.x1) - at.px(axes.x0);
  // Where points lie dense nobody sees it, and it is half the work.
  pen.lineJoin = (last - first) * 2 > width ? "bevel" : "round";
  pen.strokeStyle = pen.fillStyle = color(line, look);
  if (line.dim === true) {
    pen.globalAlpha = DIM;
    pen.lineWidth = 1.5;
    stroke(pen, line.x, line.smooth ?? line.y, first, last, at, axes.yLog);
    pen.globalAlpha = 1;
    return;
  }
  if (line.ghost === true) {
    pen.setLineDash([3, 3]);
    pen.lineWidth = 1.25;
    stroke(pen, line.x, line.y, first, last, at, axes.yLog);
    pen.setLineDash([]);
    return;
  }
  if (line.smooth) {
    pen.lineWidth = 1;
    pen.globalAlpha = 0.38;
    stroke(pen, line.x, line.y, first, last, at, axes.yLog);
    pen.globalAlpha = 1;
  }
  pen.lineWidth = 1.75;
  if (line.dash) pen.setLineDash(line.dash);
  stroke(pen, line.x, line.smooth ?? line.y, first, last, at, axes.yLog);
  pen.setLineDash([]);
  if ((last - first + 1) * 9 < width) dots(pen, line.x, line.y, first, last, at, axes.yLog);
}

function stroke(
  pen: Pen,
  x: Float64Array,
  y: Float32Array,
  first: number,
  last: number,
  at: Projection,
  log: boolean,
): void {
  let down = false;
  let alone = -1;
  pen.beginPath();
  for (let i = first; i <= last; i++) {
    const v = y[i] as number;
    if (!Number.isFinite(v) || (log && v <= 0)) {
      if (alone >= 0) tick(pen, at.px(x[alone] as number), at.py(y[alone] as number));
      down = false;
      alone = -1;
      continue;
    }
    if (down) {
      pen.lineTo(at.px(x[i] as number), at.py(v));
      alone = -1;
    } else {
      pen.moveTo(at.px(x[i] as number), at.py(v));
      down = true;
      alone = i;
    }
  }
  if (alone >= 0) tick(pen, at.px(x[alone] as number), at.py(y[alone] as number));
  pen.stroke();
}

/** A point between two gaps has no neighbour to draw a line to; it still has to be seen. */
function tick(pen: Pen, px: number, py: number): void {
  pen.moveTo(px - 1, py);
  pen.lineTo(px + 1, py);
}

function dots(
  pen: Pen,
  x: Float64Array,
  y: Float32Array,
  first: number,
  last: number,
  at: Projection,
  log: boolean,
): void {
  pen.beginPath();
  for (let i = first; i <= last; i++) {
    const v = y[i] as number;
    if (!Number.isFinite(v) || (log && v <= 0)) continue;
    const [px, py] = [at.px(x[i] as number), at.py(v)];
    pen.moveTo(px + 1.8, py);
    pen.arc(px, py, 1.8, 0, Math.PI * 2);
  }
  pen.fill();
}

/** The strip above a group: its thickness is the share of seeds that reached this point. */
function drawSeeds(pen: Pen, lines: readonly Line[], at: Projection, box: Box, look: Palette): void {
  let row = 0;
  for (const line of lines) {
    if (!line.seeds || line.seeds.of < 2 || row > 5) continue;
    const { n, of } = line.seeds;
    const base = box.top - 3 - row * 4;
    pen.fillStyle = color(line, look);
    pen.globalAlpha = 0.55;
    let start = 0;
    for (let i = 1; i <= n.length; i++) {
      if (i < n.length && n[i] === n[start]) continue;
      const [a, b] = [at.px(line.x[start] as number), at.px(line.x[Math.min(i, n.length - 1)] as number)];
      const height = (3 * (n[start] as number)) / of;
      const [left, right] = [Math.max(box.left, a), Math.min(box.right, b)];
      if (right > left) pen.fillRect(left, base - height, right - left, height);
      start = i;
    }
    pen.globalAlpha = 1;
    row++;
  }
}

function drawMarks(pen: Pen, marks: readonly Mark[], at: Projection, box: Box, look: Palette): void {
  for (const mark of marks) {
    const px = at.px(mark.x);
    if (px < box.left - 0.5 || px > box.right + 0.5) continue;
    pen.beginPath();
    if (mark.kind === "checkpoint") {
      diamond(pen, px, box.bottom, 3.2);
      pen.fillStyle = look.panel;
      pen.strokeStyle = look.ink2;
      pen.lineWidth = 1;
      pen.fill();
      pen.stroke();
    } else if (mark.kind === "alert") {
      pen.moveTo(px, box.top + 9);
      pen.lineTo(px, box.top);
      pen.lineTo(px + 7, box.top + 2.5);
      pen.lineTo(px, box.top + 5);
      pen.fillStyle = pen.strokeStyle = look.warn;
      pen.lineWidth = 1;
      pen.fill();
      pen.stroke();
    } else {
      pen.moveTo(px, box.bottom);
      pen.lineTo(px, box.bottom - 7);
      pen.strokeStyle = look.ink2;
      pen.lineWidth = 1.5;
      pen.stroke();
    }
  }
}

function diamond(pen: Pen, x: number, y: number, r: number): void {
  pen.moveTo(x, y - r);
  pen.lineTo(x + r, y);
  pen.lineTo(x, y + r);
  pen.lineTo(x - r, y);
  pen.closePath();
}

/** What the frame does not hold: values beyond the range at its edges, NaN and infinities at the foot. */
function drawLost(
  pen: Pen,
  lines: readonly Line[],
  at: Projection,
  axes: Axes,
  box: Box,
  look: Palette,
  yOfAbove: number,
): void {
  const near = ((axes.x1 - axes.x0) / Math.max(1, box.right - box.left)) * 10;
  const range = { low: axes.y0, high: axes.y1 };
  let [above, most, mostX, mostN] = [0, 0, 0, 0];
  for (const line of lines) {
    if (line.ghost === true) continue;
    for (const cut of cuts(line, range, axes.x0, axes.x1, near)) {
      if (axes.yLog && !cut.above && cut.furthest <= 0) continue;
      triangle(pen, at.px(cut.x), cut.above ? box.top : box.bottom - 5, cut.above ? -4.5 : 4.5, color(line, look));
      if (cut.above) {
        above += cut.count;
        if (mostN === 0 || cut.furthest > most) [most, mostX] = [cut.furthest, cut.x];
        mostN++;
      }
    }
  }
  pen.font = `10px ${look.font}`;
  pen.fillStyle = look.ink2;
  pen.textBaseline = "middle";
  if (above > 0) beside(pen, `${above} above, to ${value(most)}`, at.px(mostX), yOfAbove, box, look);
  let [bad, badX] = [0, 0];
  for (const line of lines) {
    if (!line.bad) continue;
    let last = -Infinity;
    for (let i = 0; i < line.bad.x.length; i++) {
      const x = line.bad.x[i] as number;
      if (x < axes.x0 || x > axes.x1) continue;
      if (bad === 0) badX = x;
      bad += line.bad.n[i] as number;
      const px = at.px(x);
      if (px - last < 6) continue;
      triangle(pen, px, box.bottom - 2, -4.5, look.bad);
      last = px;
    }
  }
  pen.fillStyle = look.ink2;
  if (bad > 0) beside(pen, `${bad} NaN or ∞`, at.px(badX), box.bottom - 6, box, look);
}

function triangle(pen: Pen, x: number, y: number, height: number, fill: string): void {
  pen.beginPath();
  pen.moveTo(x - 4, y - Math.min(0, height) * 0.5);
  pen.lineTo(x + 4, y - Math.min(0, height) * 0.5);
  pen.lineTo(x, y + height);
  pen.closePath();
  pen.fillStyle = fill;
  pen.fill();
}

/** A short text, of 10 px, beside a mark, on a ground of its own: lines and other marks would cross it. */
function beside(pen: Pen, text: string, x: number, y: number, box: Box, look: Palette): void {
  const width = text.length * 5.5;
  const left = startBeside(x, width, box.left, box.right);
  pen.fillStyle = look.panel;
  pen.fillRect(left - 1, y - 6, width, 12);
  pen.fillStyle = look.ink2;
  pen.textAlign = "left";
  pen.fillText(text, left, y);
}
