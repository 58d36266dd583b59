/** Points over x and y: hover names one, a click opens it, a drag draws a box. */

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { ground } from "../state/theme.ts";
import { drawAxes } from "./draw.ts";
import { project, type Axes, type AxisKind, type Box } from "./model.ts";
import { palette } from "./palette.ts";
import { fit } from "./canvas.ts";

export interface ScatterProps {
  label: string;
  x: Float64Array;
  y: Float64Array;
  /** The colour of each point, 0 to 10; all 1 where none is given. */
  colors?: Uint8Array | undefined;
  xKind?: AxisKind;
  chosen?: number | null;
  onPick?: (index: number) => void;
  onBox?: (box: { x0: number; x1: number; y0: number; y1: number } | null) => void;
  onHover?: (index: number | null) => void;
  height?: number;
}

interface Frame {
  axes: Axes;
  box: Box;
}

export function Scatter(props: ScatterProps) {
  const root = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const zone = useRef<HTMLDivElement>(null);
  const frame = useRef<Frame | null>(null);
  const now = useRef(props);
  now.current = props;
  const look = palette(ground.value);
  const draw = (): void => {
    if (!root.current || !canvas.current) return;
    const { width, height } = root.current.getBoundingClientRect();
    if (width > 0) frame.current = paint(canvas.current, width, height, now.current, look);
  };
  useLayoutEffect(draw);
  useEffect(() => {
    const sizes = new ResizeObserver(draw);
    if (root.current) sizes.observe(root.current);
    return () => sizes.disconnect();
  }, [look]);
  const start = useRef<{ x: number; y: number } | null>(null);
  const at = (event: PointerEvent): { x: number; y: number } => {
    const rect = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return { x: event.clientX - rect.left, y: event.clientY - rect.top };
  };
  const move = (event: PointerEvent): void => {
    const place = at(event);
    if (start.current && zone.current) {
      const { style } = zone.current;
      zone.current.hidden = false;
      style.left = `${Math.min(start.current.x, place.x)}px`;
      style.top = `${Math.min(start.current.y, place.y)}px`;
      style.width = `${Math.abs(place.x - start.current.x)}px`;
      style.height = `${Math.abs(place.y - start.current.y)}px`;
      style.bottom = "auto";
    } else props.onHover?.(nearest(props, frame.current, place.x, place.y));
  };
  const up = (event: PointerEvent): void => {
    const place = at(event);
    const from = start.current;
    start.current = null;
    if (zone.current) zone.current.hidden = true;
    if (!from || !frame.current) return;
    if (Math.hypot(place.x - from.x, place.y - from.y) < 5) {
      const index = nearest(props, frame.current, place.x, place.y);
      if (index !== null) props.onPick?.(index);
      return;
    }
    const scale = project(frame.current.axes, frame.current.box);
    const [xs, ys] = [
      [scale.x(from.x), scale.x(place.x)].sort((a, b) => a - b),
      [scale.y(from.y), scale.y(place.y)].sort((a, b) => a - b),
    ] as [number[], number[]];
    props.onBox?.({ x0: xs[0] as number, x1: xs[1] as number, y0: ys[0] as number, y1: ys[1] as number });
  };
  return (
    <div
      ref={root}
      class="plotarea scatter"
      role="img"
      aria-label={props.label}
      tabIndex={0}
      style={{ height: `${props.height ?? 170}px` }}
      onPointerDown={(event) => {
        if (event.pointerType !== "touch") (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
        start.current = at(event);
      }}
      onPointerMove={move}
      onPointerUp={up}
      onPointerCancel={() => {
        start.current = null;
      }}
      onPointerLeave={() => props.onHover?.(null)}
      onDblClick={() => props.onBox?.(null)}
    >
      <canvas ref={canvas} />
      <div ref={zone} class="zone" hidden />
    </div>
  );
}

function extent(values: Float64Array): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const v of values) if (Number.isFinite(v)) [low, high] = [Math.min(low, v), Math.max(high, v)];
  if (low > high) return [0, 1];
  const room = high > low ? (high - low) * 0.04 : Math.abs(high) || 1;
  return [low - room, high + room];
}

function paint(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
  props: ScatterProps,
  look: ReturnType<typeof palette>,
): Frame {
  const [x0, x1] = extent(props.x);
  const [y0, y1] = extent(props.y);
  const axes: Axes = { x0, x1, y0, y1, xLog: false, yLog: false, xKind: props.xKind ?? "number" };
  const box = { left: 40, top: 8, right: width - 8, bottom: height - 18 };
  const pen = fit(canvas, width, height);
  drawAxes(pen, axes, box, look);
  const at = project(axes, box);
  const size = props.x.length > 5000 ? 1 : props.x.length > 800 ? 1.5 : 2.2;
  pen.globalAlpha = props.x.length > 5000 ? 0.5 : 0.75;
  for (let color = 0; color <= 10; color++) {
    pen.fillStyle = look.series[color] ?? look.ink2;
    pen.beginPath();
    for (let i = 0; i < props.x.length; i++) {
      if ((props.colors?.[i] ?? 1) !== color) continue;
      const [px, py] = [at.px(props.x[i] as number), at.py(props.y[i] as number)];
      pen.moveTo(px + size, py);
      pen.arc(px, py, size, 0, Math.PI * 2);
    }
    pen.fill();
  }
  pen.globalAlpha = 1;
  if (props.chosen != null && props.chosen >= 0) {
    pen.beginPath();
    pen.arc(at.px(props.x[props.chosen] as number), at.py(props.y[props.chosen] as number), 4.5, 0, Math.PI * 2);
    pen.fillStyle = look.accent;
    pen.strokeStyle = look.panel;
    pen.lineWidth = 1.5;
    pen.fill();
    pen.stroke();
  }
  return { axes, box };
}

const NEAR = 14;

function nearest(props: ScatterProps, frame: Frame | null, x: number, y: number): number | null {
  if (!frame) return null;
  const at = project(frame.axes, frame.box);
  let best: number | null = null;
  let far = NEAR;
  for (let i = 0; i < props.x.length; i++) {
    const d = Math.hypot(at.px(props.x[i] as number) - x, at.py(props.y[i] as number) - y);
    if (d < far) [best, far] = [i, d];
  }
  return best;
}
