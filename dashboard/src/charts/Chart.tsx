/** A chart in its frame: title, values under the cursor, the plot, and what can be done with it. */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { value } from "../data/numbers.ts";
import { valueAt } from "../data/lines.ts";
import { ground } from "../state/theme.ts";
import type { Hub, View } from "./hub.ts";
import type { AxisKind, Line, Mark } from "./model.ts";
import { palette } from "./palette.ts";
import { Plot } from "./plot.ts";
import { Tip } from "./Tip.tsx";

export interface ChartProps {
  hub: Hub;
  title: string;
  /** What stands grey before the title. */
  scope?: string;
  soft?: ComponentChildren;
  lines: readonly Line[];
  marks?: readonly Mark[];
  span: View | null;
  xLog?: boolean;
  yLog?: boolean;
  robust?: boolean;
  xKind?: AxisKind;
  xName: string;
  big?: boolean;
  bare?: boolean;
  /** Names beside the values under the cursor: for charts whose lines no table names. */
  named?: boolean;
  /** Whether the last values say something while no cursor is there; true if not given. */
  lasts?: boolean;
  onPick?: (line: Line, x: number) => void;
  onForesee?: (line: Line, x: number) => void;
  onPlot?: (plot: Plot | null) => void;
  tools?: ComponentChildren;
  note?: ComponentChildren;
}

const READS = 10;
const OTHERS = 100; // ms

export function Chart(props: ChartProps) {
  const root = useRef<HTMLDivElement>(null);
  const figure = useRef<HTMLElement>(null);
  const reads = useRef<HTMLSpanElement>(null);
  const plot = useRef<Plot | null>(null);
  const now = useRef(props);
  now.current = props;
  const look = palette(ground.value);
  useLayoutEffect(() => {
    let last: number | null = null;
    let later: ReturnType<typeof setTimeout> | undefined;
    const made = new Plot(root.current as HTMLElement, props.hub, look, {
      pick: (line, x) => now.current.onPick?.(line, x),
      foresee: (line, x) => now.current.onForesee?.(line, x),
      read: (x, hovered) => {
        figure.current?.classList.toggle("here", hovered && x !== null);
        // The chart under the pointer says its values at once, the others ten times a second: texts cost layout.
        last = x;
        if (hovered) write(reads.current, now.current, x);
        else
          later ??= setTimeout(() => {
            later = undefined;
            write(reads.current, now.current, last);
          }, OTHERS);
      },
    });
    plot.current = made;
    props.onPlot?.(made);
    return () => {
      clearTimeout(later);
      made.destroy();
      props.onPlot?.(null);
    };
  }, [props.hub]);
  const { lines, marks = [], span, xLog = false, yLog = false, robust = true, xKind = "number", big = false } = props;
  useEffect(() => {
    plot.current?.set({ lines, marks, span, xLog, yLog, robust, xKind, ends: big }, look);
    write(reads.current, props, props.hub.cursor.peek());
  }, [lines, marks, span, xLog, yLog, robust, xKind, big, look, props.hub]);
  const key = (event: KeyboardEvent): void => {
    const { hub } = props;
    if (event.key === "Enter") {
      const view = hub.current();
      const x = hub.cursor.peek() ?? view?.x1;
      const line = lines.find((one) => one.ghost !== true);
      if (line && x != null) props.onPick?.(line, x);
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const view = hub.current();
      const sign = event.key === "ArrowLeft" ? -1 : 1;
      if (event.shiftKey) hub.pan(sign * 0.2, plot.current);
      else if (view)
        hub.point(
          Math.max(view.x0, Math.min(view.x1, (hub.cursor.peek() ?? view.x0) + (sign * (view.x1 - view.x0)) / 100)),
          plot.current,
        );
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <figure ref={figure} class={`chart${big ? " big" : ""}${props.bare ? " bare" : ""}`}>
      <figcaption>
        <span class="title" title={(props.scope ?? "") + props.title}>
          {props.scope !== undefined && <span class="scope">{props.scope}</span>}
          {props.title}
          {props.soft !== undefined && <span class="soft"> {props.soft}</span>}
        </span>
        <span class="read" ref={reads} aria-hidden="true">
          {lines
            .filter((line) => line.ghost !== true)
            .slice(0, READS)
            .map((line) => (
              <span key={line.id} class={`s${line.color}`}>
                <i />
                {props.named === true && <em>{line.name}</em>}
                <b />
              </span>
            ))}
        </span>
        {props.tools !== undefined && <span class="tools">{props.tools}</span>}
      </figcaption>
      <div ref={root} class="plotarea" role="img" tabIndex={0} aria-label={sentence(props)} onKeyDown={key} />
      {(big || lines.length > 3) && <Tip hub={props.hub} lines={lines} xName={props.xName} xKind={xKind} plot={plot} />}
      {props.note}
    </figure>
  );
}

/** Values under the cursor, or the last ones where there is none. */
function write(into: HTMLElement | null, { lines, lasts = true }: ChartProps, x: number | null): void {
  if (!into) return;
  let i = 0;
  for (const line of lines) {
    if (line.ghost === true) continue;
    const text = into.children[i++]?.lastElementChild;
    if (!text) return;
    const hit = x === null ? null : valueAt(line, x);
    const said = x === null ? (lasts ? value(lastOf(line)) : "") : hit ? value(hit.value) : "–";
    if (text.textContent !== said) text.textContent = said;
  }
}

/** The last value that is one. */
function lastOf(line: Line): number | null {
  const y = line.smooth ?? line.y;
  for (let i = y.length - 1; i >= 0; i--) if (Number.isFinite(y[i] as number)) return y[i] as number;
  return null;
}

/** The chart as a sentence, for those who hear it. */
function sentence({ title, scope = "", xName, lines }: ChartProps): string {
  const curves = lines.filter((line) => line.ghost !== true);
  const each = curves.slice(0, 6).map((line) => {
    return `${line.name} ends at ${value(lastOf(line))}`;
  });
  const many = `${curves.length} ${curves.length === 1 ? "curve" : "curves"}`;
  return `${scope}${title} over ${xName}, ${many}. ${each.join("; ")}`;
}
