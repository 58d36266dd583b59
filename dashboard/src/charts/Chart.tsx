/** A chart in its frame: title, values under the cursor, the plot, and what can be done with it. */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { amount, value, type Write } from "../data/numbers.ts";
import { valueAt } from "../data/lines.ts";
import { shortNames, sidesOf } from "../data/names.ts";
import type { Range } from "../data/range.ts";
import { lazy } from "../parts/lazy.tsx";
import { ground } from "../state/theme.ts";
import type { Hub, View } from "./hub.ts";
import { isNamed, type AxisKind, type Line, type Mark, type Pin } from "./model.ts";
import { palette } from "./palette.ts";
import { Plot } from "./plot.ts";

export interface ChartProps {
  hub: Hub;
  title: string;
  /** What stands grey before the title. */
  scope?: string;
  soft?: ComponentChildren;
  lines: readonly Line[];
  marks?: readonly Mark[];
  pin?: Pin | null;
  span: View | null;
  xLog?: boolean;
  yLog?: boolean;
  robust?: boolean;
  /** The part of y that is shown; null: what the values say. */
  range?: Range | null;
  xKind?: AxisKind;
  xName: string;
  big?: boolean;
  bare?: boolean;
  /** Whether the last values say something while no cursor is there; true if not given. */
  lasts?: boolean;
  /** How values are written; as numbers, if not given. */
  write?: Write;
  onPick?: (line: Line, x: number) => void;
  onForesee?: (line: Line, x: number) => void;
  onPlot?: (plot: Plot | null) => void;
  tools?: ComponentChildren;
  note?: ComponentChildren;
}

const READS = 24;
const LEAD = 11; // px from the plot to a name
const LETTER = 5.7; // px of one
const VALUE = 42; // px of the value behind it
const LEGEND = 26; // letters of a name below the title, at most
const ROWS = 1.7; // lines of a legend, less what is left at their ends

/** How the names of lines are written: how long they may be, the room beside the plot (0: below the title), values. */
export interface Labels {
  most: number;
  room: number;
  values: boolean;
}

/** Whether there was no room for what tells names apart. */
const isCut = (names: readonly string[]): boolean => names.some((name) => name.includes("…"));

/** Names beside the ends of lines where the curves keep seven tenths of their card, else in a row below the title. */
export function labelsOf(names: readonly string[], width: number, big: boolean): Labels {
  const free = 0.3 * width - 54 - LEAD; // the axis, and the sides of the card
  const beside = shortNames(names, big ? 30 : 16);
  const longest = isCut(beside) ? Infinity : Math.max(...beside.map((name) => name.length));
  for (const values of [true, false]) {
    const letters = Math.floor((free - (values ? VALUE : 0)) / LETTER);
    if (longest <= letters) return { most: longest, room: LEAD + longest * LETTER + (values ? VALUE : 0), values };
  }
  const values = width > 420;
  const lettersIn = (rows: number): number => {
    const letters = Math.floor(((rows * width) / Math.max(1, names.length) - (values ? VALUE : 0) - 17) / LETTER);
    return Math.max(6, Math.min(LEGEND, letters));
  };
  const rows = [ROWS, ROWS + 1].find((some) => !isCut(shortNames(names, lettersIn(some)))) ?? ROWS + 1;
  return { most: lettersIn(rows), room: 0, values };
}
const NO_MARKS: readonly Mark[] = [];
const OTHERS = 100; // ms

const Tip = lazy(() => import("./Tip.tsx").then((m) => m.Tip));

export function Chart(props: ChartProps) {
  const root = useRef<HTMLDivElement>(null);
  const figure = useRef<HTMLElement>(null);
  const reads = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const now = useRef(props);
  now.current = props;
  const look = palette(ground.value);
  const curves = props.lines.filter(isNamed);
  const [width, setWidth] = useState(0);
  /** The cursor is this chart's own. */
  const here = useSignal(false);
  const full = curves.map((line) => line.name);
  const big = props.big === true;
  const wanted = labelsOf(full, width, big);
  // Of several keys of several runs, where there is no room for both: each run once, and each key once, by its dashes.
  const sides = wanted.room === 0 ? sidesOf(full) : null;
  const labels = sides ? { ...labelsOf([...new Set(sides[0])], width, big), room: 0, values: false } : wanted;
  const names = shortNames(sides?.[0] ?? full, labels.most);
  const keys = [...new Set(sides?.[1])];
  const room = props.bare === true || curves.length < 2 ? 0 : labels.room;
  const named = useRef(false);
  named.current = room > 0;
  useLayoutEffect(() => {
    let last: number | null = null;
    let later: ReturnType<typeof setTimeout> | undefined;
    const made = new Plot(root.current as HTMLElement, props.hub, look, {
      pick: (line, x) => now.current.onPick?.(line, x),
      foresee: (line, x) => now.current.onForesee?.(line, x),
      sized: (now) => setWidth(Math.round(now / 8) * 8),
      ends: (places, left) => settle(reads.current, root.current, places, left, named.current),
      read: (x, hovered) => {
        here.value = hovered && x !== null;
        figure.current?.classList.toggle("here", here.peek());
        // The chart under the pointer says its values at once, the others ten times a second: texts cost layout.
        last = x;
        if (hovered) tell(reads.current, now.current, x);
        else
          later ??= setTimeout(() => {
            later = undefined;
            tell(reads.current, now.current, last);
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
  const {
    lines,
    marks = NO_MARKS,
    pin = null,
    span,
    xLog = false,
    yLog = false,
    robust = true,
    range = null,
    xKind = "number",
  } = props;
  useEffect(() => {
    plot.current?.set({ lines, marks, span, xLog, yLog, robust, range, xKind, ends: room, pin }, look);
    tell(reads.current, props, props.hub.cursor.peek());
  }, [lines, marks, pin, span, xLog, yLog, robust, range, xKind, room, look, props.hub, names.join()]);
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
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const charts = [...document.querySelectorAll<HTMLElement>(".plotarea[tabindex]")];
      charts[charts.indexOf(root.current as HTMLElement) + (event.key === "ArrowUp" ? -1 : 1)]?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const listed = curves.length > 1 && room === 0;
  const told = (
    <div class={`read${labels.values || curves.length < 2 ? "" : " short"}`} ref={reads} aria-hidden="true">
      {curves.slice(0, READS).map((line, i) => (
        <span
          key={line.id}
          title={line.name}
          class={`s${line.color}${sides && sides[1][i] !== keys[0] ? " twin" : ""}`}
        >
          <i />
          <em>{names[i]}</em>
          <b />
        </span>
      ))}
    </div>
  );
  return (
    <figure ref={figure} class={`chart${big ? " big" : ""}${props.bare ? " bare" : ""}${listed ? " listed" : ""}`}>
      <figcaption>
        <span class="title" title={(props.scope ?? "") + props.title}>
          {props.scope !== undefined && <span class="scope">{props.scope}</span>}
          {props.title}
          {props.soft !== undefined && <span class="soft"> {props.soft}</span>}
        </span>
        {curves.length < 2 && told}
        {props.tools !== undefined && <span class="tools">{props.tools}</span>}
      </figcaption>
      {curves.length > 1 && told}
      {sides && (
        <div class="read short" aria-hidden="true">
          {shortNames(keys, LEGEND).map((key, i) => (
            <span key={key}>
              <svg width="18" height="6">
                <path d="M0 3H18" stroke-dasharray={curves[sides[1].indexOf(keys[i] ?? "")]?.dash?.join(" ")} />
              </svg>
              <em>{key}</em>
            </span>
          ))}
        </div>
      )}
      <div ref={root} class="plotarea" role="img" tabIndex={0} aria-label={sentence(props)} onKeyDown={key} />
      {(big || lines.length > 3 || !labels.values) && (
        <OfCursor here={here}>
          <Tip
            hub={props.hub}
            lines={lines}
            xName={props.xName}
            xKind={xKind}
            plot={plot}
            write={props.write ?? value}
          />
        </OfCursor>
      )}
      {props.note}
    </figure>
  );
}

/** What the chart under the cursor has: of all others it would be made anew with every move of a hand, for nobody. */
const OfCursor = ({ here, children }: { here: ReadonlySignal<boolean>; children: ComponentChildren }) => (
  <>{here.value && children}</>
);

/** Puts the names to the ends of their lines, or in a row below the title. */
function settle(
  into: HTMLElement | null,
  root: HTMLElement | null,
  places: readonly (number | null)[] | null,
  left: number,
  wanted: boolean,
): void {
  if (!into || !root) return;
  into.classList.toggle("ends", places !== null);
  into.hidden = places === null && wanted;
  into.style.left = places === null ? "" : `${root.offsetLeft + left}px`;
  into.style.top = places === null ? "" : `${root.offsetTop}px`;
  [...into.children].forEach((child, i) => {
    const place = places?.[i];
    (child as HTMLElement).style.transform = typeof place === "number" ? `translateY(${Math.round(place) - 7}px)` : "";
    (child as HTMLElement).hidden = places !== null && typeof place !== "number";
  });
}

/** Values under the cursor, or the last ones where there is none. */
function tell(into: HTMLElement | null, { lines, lasts = true, write }: ChartProps, x: number | null): void {
  if (!into) return;
  let i = 0;
  for (const line of lines) {
    if (!isNamed(line)) continue;
    const text = into.children[i++]?.lastElementChild;
    if (!text) return;
    const hit = x === null ? null : valueAt(line, x);
    const said = x === null ? (lasts ? short(lastOf(line), write) : "") : hit ? short(hit.value, write) : "–";
    if (text.textContent !== said) text.textContent = said;
  }
}

/** A value beside a name: below 0.1 two figures tell lines apart. */
const short = (v: number | null, write: Write = value): string => write(v, v !== null && Math.abs(v) < 0.1 ? 2 : 3);

/** The last value that is one. */
function lastOf(line: Line): number | null {
  const y = line.smooth ?? line.y;
  for (let i = y.length - 1; i >= 0; i--) if (Number.isFinite(y[i] as number)) return y[i] as number;
  return null;
}

/** The chart as a sentence, for those who hear it. */
function sentence({ title, scope = "", xName, lines, write = value }: ChartProps): string {
  const curves = lines.filter(isNamed);
  const each = curves.slice(0, 6).map((line) => {
    return `${line.name} ends at ${write(lastOf(line))}`;
  });
  const many = amount(curves.length, "curve");
  return `${scope}${title} over ${xName}, ${many}. ${each.join("; ")}`;
}
