/** Many numbers of one kind over steps, a row of colours each: blue below the middle, orange above. */

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { amount, value } from "../data/numbers.ts";
import { valueAt } from "../data/lines.ts";
import { ground } from "../state/theme.ts";
import { drawXTexts } from "./draw.ts";
import type { Hub } from "./hub.ts";
import type { Line } from "./model.ts";
import { palette } from "./palette.ts";
import { fit } from "./canvas.ts";

const ROW = 14;
const LEFT = 90;
const AXIS = 18;
const STEPS = ["n3", "n2", "n1", "p1", "p2", "p3"];

export function HeatRows({ title, lines, hub }: { title: string; lines: readonly Line[]; hub: Hub }) {
  const root = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const shown = lines.slice(0, 40);
  const look = palette(ground.value);
  const view = hub.view.value ?? spanOf(shown);
  const cursor = hub.cursor.value;
  const draw = (): void => {
    const box = root.current?.getBoundingClientRect();
    if (!box || !canvas.current || !view || box.width < LEFT + 20) return;
    const pen = fit(canvas.current, box.width, box.height);
    const colors = STEPS.map((name) => tokenColor(root.current as HTMLElement, `--heat-${name}`));
    pen.font = `10px ${look.font}`;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    shown.forEach((line, row) => {
      pen.fillStyle = look.ink3;
      pen.fillText(line.name, LEFT - 6, row * ROW + ROW / 2, LEFT - 8);
      paintRow(pen, line, view, colors, row * ROW, box.width - LEFT - 8);
    });
    const edge = { left: LEFT, right: box.width - 8, top: 0, bottom: shown.length * ROW };
    drawXTexts(pen, { x0: view.x0, x1: view.x1, y0: 0, y1: 1, xLog: false, yLog: false, xKind: "count" }, edge, look);
  };
  useLayoutEffect(draw, [lines, look, view?.x0, view?.x1]);
  useEffect(() => {
    const sizes = new ResizeObserver(draw);
    if (root.current) sizes.observe(root.current);
    return () => sizes.disconnect();
  }, [lines, look, view?.x0, view?.x1]);
  const width = (root.current?.clientWidth ?? 0) - LEFT - 8;
  const move = (event: PointerEvent): void => {
    const rect = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const share = (event.clientX - rect.left - LEFT) / Math.max(1, rect.width - LEFT - 8);
    hub.point(view && share >= 0 && share <= 1 ? view.x0 + share * (view.x1 - view.x0) : null, null);
  };
  return (
    <figure class="chart bare">
      <figcaption>
        <span class="title">
          {title} <span class="soft">blue low, orange high, each row by its own range</span>
        </span>
        <span class="read">
          {cursor !== null &&
            shown.slice(0, 8).map((line) => (
              <span key={line.id}>
                {line.name} <b>{value(valueAt(line, cursor)?.value)}</b>
              </span>
            ))}
        </span>
      </figcaption>
      <div
        ref={root}
        class="plotarea heatrows"
        role="img"
        tabIndex={0}
        aria-label={`${title}: ${amount(lines.length, "row")} of colours over steps`}
        style={{ height: `${shown.length * ROW + AXIS}px` }}
        onPointerMove={move}
        onPointerLeave={() => hub.point(null, null)}
      >
        <canvas ref={canvas} />
        {cursor !== null && view && width > 0 && (
          <div
            class="cursorline"
            style={{
              transform: `translateX(${Math.round(LEFT + ((cursor - view.x0) / (view.x1 - view.x0 || 1)) * width)}px)`,
            }}
          />
        )}
      </div>
    </figure>
  );
}

function spanOf(lines: readonly Line[]): { x0: number; x1: number } | null {
  const x = lines[0]?.x;
  return x && x.length > 0 ? { x0: x[0] as number, x1: x[x.length - 1] as number } : null;
}

function tokenColor(within: HTMLElement, token: string): string {
  const probe = within.appendChild(document.createElement("i"));
  probe.style.color = `var(${token})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function paintRow(
  pen: CanvasRenderingContext2D,
  line: Line,
  view: { x0: number; x1: number },
  colors: readonly string[],
  top: number,
  width: number,
): void {
  let [low, high] = [Infinity, -Infinity];
  for (const v of line.y) if (Number.isFinite(v)) [low, high] = [Math.min(low, v), Math.max(high, v)];
  const half = (high - low) / 2 || 1;
  const k = width / (view.x1 - view.x0 || 1);
  for (let i = 0; i < line.x.length; i++) {
    const x = line.x[i] as number;
    const v = line.y[i] as number;
    if (x < view.x0 || x > view.x1 || !Number.isFinite(v)) continue;
    const share = (v - low - half) / half;
    pen.fillStyle = colors[Math.max(0, Math.min(5, Math.floor((share + 1) * 3)))] as string;
    pen.fillRect(
      LEFT + (x - view.x0) * k,
      top,
      Math.min(Math.max(1, k) + 0.5, LEFT + width - (LEFT + (x - view.x0) * k)),
      ROW - 1,
    );
  }
}
