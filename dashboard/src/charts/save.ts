/** A chart as a file: the same strokes on another paper, or its numbers. */

import { csvOf } from "../data/csv.ts";
import { shortNames } from "../data/names.ts";
import { rounded } from "../data/numbers.ts";
import { drawAxes, drawLines } from "./draw.ts";
import { SvgPen, type Pen } from "./pen.ts";
import type { Line } from "./model.ts";
import type { Plot } from "./plot.ts";

const TITLE = 22;

function paint(pen: Pen, plot: Plot, title: string): { width: number; height: number } | null {
  const { width, height, box } = plot.layout();
  const picture = plot.picture();
  if (!picture) return null;
  const { axes, lines, marks, look } = picture;
  const moved = { left: box.left, right: box.right, top: box.top + TITLE, bottom: box.bottom + TITLE };
  pen.fillStyle = look.ink;
  pen.font = `600 12px ${look.font}`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.fillText(title, 8, 12);
  drawAxes(pen, axes, moved, look);
  drawLines(pen, lines, marks, axes, moved, look);
  let x = box.left;
  let y = height + TITLE + 10;
  pen.font = `10px ${look.font}`;
  const shown = lines.filter((line) => line.ghost !== true);
  const names = shortNames(
    shown.map(({ name }) => name),
    60,
  );
  for (const [i, line] of shown.entries()) {
    const name = names[i] as string;
    const wide = name.length * 5.6 + 22;
    if (x + wide > width) [x, y] = [box.left, y + 14];
    pen.fillStyle = look.series[line.color] ?? look.ink2;
    pen.fillRect(x, y - 3, 8, 6);
    pen.fillStyle = look.ink2;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    pen.fillText(name, x + 12, y);
    x += wide;
  }
  return { width, height: y + 12 };
}

export function saveSvg(plot: Plot, title: string): void {
  const size = measure(plot, title);
  const look = plot.picture()?.look;
  if (!size || !look) return;
  const pen = new SvgPen(size.width, size.height, title);
  paint(pen, plot, title);
  download(new Blob([pen.file(look.panel)], { type: "image/svg+xml" }), `${fileName(title)}.svg`);
}

export function savePng(plot: Plot, title: string): void {
  const size = measure(plot, title);
  const look = plot.picture()?.look;
  if (!size || !look) return;
  const canvas = document.createElement("canvas");
  const scale = 2;
  canvas.width = size.width * scale;
  canvas.height = size.height * scale;
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.scale(scale, scale);
  pen.fillStyle = look.panel;
  pen.fillRect(0, 0, size.width, size.height);
  paint(pen, plot, title);
  canvas.toBlob((blob) => blob && download(blob, `${fileName(title)}.png`));
}

/** A number of four bytes as it was before it became one; nothing for a gap. */
const written = (v = NaN): number | null => (Number.isNaN(v) ? null : rounded(v, 7));

/** The points of the lines: of a group its centre and interval, of a reduced curve what lies behind each point. */
export function saveCsv(plot: Plot, title: string, axis: string): void {
  const lines = plot.picture()?.lines ?? [];
  const any = (has: (line: Line) => unknown): boolean => lines.some((line) => has(line) !== undefined);
  const columns: [head: string, cell: (line: Line, i: number) => unknown][] = [
    ["line", ({ name }) => name],
    [axis, ({ x }, i) => x[i]],
    ["value", ({ y }, i) => written(y[i])],
  ];
  if (any(({ low }) => low))
    columns.push(["low", ({ low }, i) => written(low?.[i])], ["high", ({ high }, i) => written(high?.[i])]);
  if (any(({ smooth }) => smooth)) columns.push(["smoothed", ({ smooth }, i) => written(smooth?.[i])]);
  if (any(({ seeds }) => seeds)) columns.push(["seeds", ({ seeds }, i) => seeds?.n[i]]);
  const rows = lines.flatMap((line) => Array.from(line.x, (_, i) => columns.map(([, cell]) => cell(line, i))));
  const text = csvOf([columns.map(([head]) => head), ...rows]);
  download(new Blob([text], { type: "text/csv" }), `${fileName(title)}.csv`);
}

function measure(plot: Plot, title: string): { width: number; height: number } | null {
  return paint(new SvgPen(1, 1, title), plot, title);
}

const fileName = (title: string): string => title.replace(/[^\w.-]+/g, "_").slice(0, 80) || "chart";

export function download(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
