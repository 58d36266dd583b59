/** A chart of something that a desk's feed has: drawn when it comes on the screen, as the desk looks. */

import { useComputed, useSignal, type ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { kindNamed } from "../charts/registry.ts";
import type { Line, Mark } from "../charts/model.ts";
import type { Plot } from "../charts/plot.ts";
import { split } from "../data/keys.ts";
import { smoothed } from "../data/lines.ts";
import { writeOf } from "../data/numbers.ts";
import { kindOf, type Desk } from "../state/desk.ts";
import type { KeyState } from "../state/feed.ts";
import { ChartMenu } from "./ChartMenu.tsx";
import { Failure, isInBanner } from "./Say.tsx";

const NO_MARKS: readonly Mark[] = [];
/** How far beside the screen, and beside the pane that scrolls. */
const NEAR: IntersectionObserverInit & { scrollMargin: string } = { rootMargin: "200px", scrollMargin: "200px" };

const toMake: (() => boolean)[] = [];

/** One chart a frame: a row of them that comes on the screen at once would hold up the scroll. */
function next(): void {
  while (toMake.length > 0 && toMake.shift()?.() !== true);
  if (toMake.length > 0) requestAnimationFrame(next);
}

const isWhole = ({ x }: Line): boolean => x.subarray(0, 8).every(Number.isInteger);

export interface KeyChartProps {
  name: string;
  big?: boolean;
  soft?: ComponentChildren;
  /** Buttons before the one that saves. */
  tools?: ComponentChildren;
  /** One of very many: it is made when it first comes near the screen. */
  later?: boolean;
}

/** Where the curves come from, and what says that they are wanted. */
export interface Drawn {
  state: ReadonlySignal<KeyState>;
  want: () => () => void;
  /** What stands as its title, where the name is none to read. */
  title?: string;
}

export function OnDesk({ desk, name, big, soft, tools, later, of }: KeyChartProps & { desk: Desk; of: Drawn }) {
  const { feed, hub, entities, marks } = desk;
  const look = useComputed(() => ({ ...desk.look.value, ...desk.looks?.value.get(name) }));
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const near = useSignal(false);
  const isMade = useSignal(later !== true);
  const { state } = of;
  useEffect(() => {
    const sees = new IntersectionObserver((entries) => {
      near.value = entries.at(-1)?.isIntersecting ?? false;
      if (!near.value || isMade.value) return;
      const make = (): boolean => {
        isMade.value ||= near.value;
        return near.value;
      };
      if (toMake.push(make) === 1) requestAnimationFrame(next);
    }, NEAR);
    if (holder.current) sees.observe(holder.current);
    return () => sees.disconnect();
  }, []);
  useEffect(() => (near.value ? of.want() : undefined), [near.value, of]);
  const lines = useComputed(() => {
    const { lines: raw, span, rows } = state.value;
    const { smoothing, smoother } = look.value;
    const width = span ? span.x1 - span.x0 : 0;
    return smoothing > 0 ? raw.map((line) => smoothed(line, smoothing, width, rows, smoother)) : raw;
  });
  const shownMarks = useComputed(() => {
    if (marks.value.size === 0) return NO_MARKS;
    const shown = new Set(lines.value.map((line) => line.id));
    const here = entities.value.filter(
      (entity) => shown.has(entity.id) || entity.runs.some((member) => shown.has(member.run)),
    );
    return here.flatMap((entity) => entity.runs.flatMap((member) => marks.value.get(member.run) ?? []));
  });
  const { scope, name: short } = of.title === undefined ? split(name) : { scope: "", name: of.title };
  if (!isMade.value)
    return (
      <div ref={holder} class="slot" data-key={name}>
        <figure class="chart">
          <figcaption>
            <span class="title">
              <span class="scope">{scope}</span>
              {short}
            </span>
          </figcaption>
        </figure>
      </div>
    );
  const { waiting, span, preliminary } = state.value;
  const all = state.value.errors.filter(({ error }) => !isInBanner(error));
  // Beside lines that are drawn it is no failure that others have no reading of the axis: a word says it.
  const isElse = ({ error }: { error: { code: string } }): boolean =>
    error.code === "unknown_axis" && lines.value.length > 0;
  const [errors, elsewhere] = [all.filter((one) => !isElse(one)), all.filter(isElse)];
  const { xLog, yLog, robust, range, draw } = look.value;
  const { Draw } = kindNamed(draw);
  const tag = desk.tags?.value.get(name);
  const clock = kindOf(desk.axis.value);
  // A key may be an axis, too, and has any values.
  const kind = clock === "count" && !lines.value.every(isWhole) ? "number" : clock;
  const note =
    errors.length > 0 ? (
      <div class="chartnote">
        {errors.slice(0, 2).map(({ name: who, error }) => (
          <Failure key={who} error={error} again={() => feed.again()} />
        ))}
      </div>
    ) : lines.value.length === 0 && !waiting ? (
      <p class="chartnote soft">none of the drawn runs has rows here</p>
    ) : null;
  return (
    <div ref={holder} class={`slot${big === true ? " big" : ""}`} data-key={name}>
      <Draw
        hub={hub}
        title={short}
        scope={scope}
        soft={
          preliminary ? (
            "first answer, a finer one is on its way"
          ) : tag !== undefined ? (
            <span class="tag warn">{tag}</span>
          ) : waiting && lines.value.length === 0 ? (
            <span class="late">reading…</span>
          ) : elsewhere.length > 0 ? (
            <span class="tag" title={elsewhere.map(({ name: who }) => who).join(", ")}>
              {elsewhere.length} not along {desk.axisName.value}
            </span>
          ) : (
            soft
          )
        }
        pin={desk.pin?.value ?? null}
        lines={lines.value}
        marks={shownMarks.value}
        span={span}
        xLog={xLog}
        yLog={yLog}
        robust={robust}
        range={range}
        xKind={kind}
        xName={desk.axisName.value}
        write={writeOf(name)}
        big={big ?? false}
        note={note}
        onForesee={(line: Line, x: number) => desk.foresee?.(line, x, name)}
        onPick={(line: Line, x: number) => desk.pick?.(line, x, name)}
        onPlot={(made) => {
          plot.current = made;
        }}
        tools={
          <>
            {tools}
            <ChartMenu name={name} plot={plot} desk={desk} />
          </>
        }
      />
    </div>
  );
}
