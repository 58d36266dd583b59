/** What a chart draws. Charts know nothing of runs, servers or pages: arrays come in, pixels go out. */

/** One curve. Arrays have one length; NaN in `y` is a gap. */
export interface Line {
  id: string;
  name: string;
  /** Place in the series colours, 1 to 12; 0 is the grey of what stands back. */
  color: number;
  x: Float64Array;
  y: Float32Array;
  /** The smallest and largest value behind each point, or the interval of a group. */
  low?: Float32Array | undefined;
  high?: Float32Array | undefined;
  /** Drawn above `y`, which then becomes the raw line under it. */
  smooth?: Float32Array | undefined;
  /** How many seeds stand behind each point of a group, and of how many. */
  seeds?: { n: Uint32Array; of: number } | undefined;
  /** Where NaN or infinities were logged: positions, and how many at each. */
  bad?: { x: Float64Array; n: Uint32Array } | undefined;
  /** An attempt that was abandoned: dashed and grey. */
  ghost?: boolean | undefined;
  dash?: number[] | undefined;
  /** Stands back behind the line that one looks at. */
  dim?: boolean | undefined;
  /** True when `low` and `high` are min and max of rows (drawn to the pixel), false when they are an interval. */
  envelope: boolean;
}

/** Whether a line has a name and a value of its own: no ghost, and not one that stands back. */
export const isNamed = (line: Line): boolean => line.ghost !== true && line.dim !== true;

/** Something that happened at one x. */
export interface Mark {
  kind: "checkpoint" | "alert" | "note";
  x: number;
  text: string;
  color: number;
}

/** A moment that stays marked: a line at x, and a dot on the line whose id is this. */
export interface Pin {
  x: number;
  line: string;
}

/** "count": of what is counted, such as steps; between two of them there is nothing. */
export type AxisKind = "number" | "count" | "wall" | "duration";

export interface Axes {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
  xLog: boolean;
  yLog: boolean;
  xKind: AxisKind;
}

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** The colours of the ground a chart stands on, read from the page's tokens. */
export interface Palette {
  ink: string;
  ink2: string;
  ink3: string;
  grid: string;
  axis: string;
  panel: string;
  warn: string;
  bad: string;
  accent: string;
  series: readonly string[];
  font: string;
}

/** From values to pixels and back. */
export interface Projection {
  px(x: number): number;
  py(y: number): number;
  x(px: number): number;
  y(py: number): number;
}

export function project(axes: Axes, box: Box): Projection {
  const forward = (log: boolean) => (log ? (v: number): number => Math.log10(v) : (v: number): number => v);
  const back = (log: boolean) => (log ? (v: number): number => 10 ** v : (v: number): number => v);
  const [fx, fy, bx, by] = [forward(axes.xLog), forward(axes.yLog), back(axes.xLog), back(axes.yLog)];
  const [x0, x1, y0, y1] = [fx(axes.x0), fx(axes.x1), fy(axes.y0), fy(axes.y1)];
  const kx = (box.right - box.left) / (x1 - x0 || 1);
  const ky = (box.bottom - box.top) / (y1 - y0 || 1);
  return {
    px: (x) => box.left + (fx(x) - x0) * kx,
    py: (y) => box.bottom - (fy(y) - y0) * ky,
    x: (px) => bx(x0 + (px - box.left) / kx),
    y: (py) => by(y0 + (box.bottom - py) / ky),
  };
}
