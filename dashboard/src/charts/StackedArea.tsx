/** Layers on top of each other over x, as seconds or as shares of the whole. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Num } from "../api/names.ts";
import { percent, seconds } from "../data/numbers.ts";
import { ground } from "../state/theme.ts";
import { drawAxes } from "./draw.ts";
import { project, type Axes, type AxisKind } from "./model.ts";
import { palette } from "./palette.ts";
import { fit } from "./canvas.ts";
import { place } from "./place.ts";

export interface Layer {
  name: string;
  color: number;
  y: readonly Num[];
}

const HEIGHT = 190;
const at = (layer: Layer, i: number): number =>
  typeof layer.y[i] === "number" && Number.isFinite(layer.y[i]) ? (layer.y[i] as number) : 0;

export function StackedArea({
  label,
  x,
  layers,
  share,
  xKind,
}: {
  label: string;
  x: readonly number[];
  layers: readonly Layer[];
  share: boolean;
  xKind: AxisKind;
}) {
  const root = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState<number | null>(null);
  const look = palette(ground.value);
  const sums = x.map((_, i) => layers.reduce((sum, layer) => sum + at(layer, i), 0));
  const draw = (): void => {
    const size = root.current?.getBoundingClientRect();
    if (!size || !canvas.current || size.width < 80 || x.length === 0) return;
    const pen = fit(canvas.current, size.width, size.height);
    const top = share ? 1 : Math.max(...sums, 1e-9) * 1.06;
    const [x0, x1] = [x[0] as number, x[x.length - 1] as number];
    const axes: Axes = { x0, x1: x1 > x0 ? x1 : x0 + 1, y0: 0, y1: top, xLog: false, yLog: false, xKind };
    const box = { left: 44, top: 8, right: size.width - 12, bottom: size.height - 18 };
    drawAxes(pen, axes, box, look);
    const scale = project(axes, box);
    const base = x.map(() => 0);
    for (const layer of layers) {
      pen.beginPath();
      const tops = x.map((_, i) => (base[i] as number) + at(layer, i) / (share ? (sums[i] as number) || 1 : 1));
      x.forEach((v, i) => pen.lineTo(scale.px(v), scale.py(tops[i] as number)));
      for (let i = x.length - 1; i >= 0; i--) pen.lineTo(scale.px(x[i] as number), scale.py(base[i] as number));
      pen.closePath();
      pen.fillStyle = pen.strokeStyle = look.series[layer.color] ?? look.ink2;
      pen.globalAlpha = 0.5;
      pen.fill();
      pen.globalAlpha = 1;
      pen.beginPath();
      x.forEach((v, i) => pen.lineTo(scale.px(v), scale.py(tops[i] as number)));
      pen.lineWidth = 1;
      pen.stroke();
      tops.forEach((v, i) => {
        base[i] = v;
      });
    }
    if (hover !== null) {
      pen.fillStyle = look.ink2;
      pen.fillRect(Math.round(scale.px(x[hover] as number)), box.top, 1, box.bottom - box.top);
    }
  };
  useLayoutEffect(draw);
  useEffect(() => {
    const sizes = new ResizeObserver(draw);
    if (root.current) sizes.observe(root.current);
    return () => sizes.disconnect();
  });
  const move = (event: PointerEvent): void => {
    const rect = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const part = (event.clientX - rect.left - 44) / (rect.width - 56);
    setHover(part < 0 || part > 1 || x.length === 0 ? null : Math.round(part * (x.length - 1)));
  };
  return (
    <div
      ref={root}
      class="plotarea"
      role="img"
      tabIndex={0}
      aria-label={label}
      style={{ height: `${HEIGHT}px` }}
      onPointerMove={move}
      onPointerLeave={() => setHover(null)}
    >
      <canvas ref={canvas} />
      {hover !== null && (
        <p class="legend reads" aria-hidden="true">
          <span>{place(x[hover] as number, xKind)}</span>
          {layers.map((layer) => (
            <span key={layer.name}>
              <i class={`dot s${layer.color}`} />
              {layer.name}{" "}
              {share ? percent(at(layer, hover) / ((sums[hover] as number) || 1)) : seconds(at(layer, hover))}
            </span>
          ))}
        </p>
      )}
    </div>
  );
}
