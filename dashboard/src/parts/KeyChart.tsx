/** One key of the runs on a desk as a chart: fetched when it comes on the screen. */

import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useContext, useEffect, useMemo, useRef } from "preact/hooks";
import { kindNamed } from "../charts/registry.ts";
import type { Line, Mark } from "../charts/model.ts";
import type { Plot } from "../charts/plot.ts";
import { split } from "../data/keys.ts";
import { smoothed } from "../data/lines.ts";
import { besides, DeskContext, kindOf, type Desk } from "../state/desk.ts";
import { hear } from "../state/live.ts";
import { ChartMenu } from "./ChartMenu.tsx";
import { Failure, isInBanner } from "./Say.tsx";

const NO_MARKS: readonly Mark[] = [];

export interface KeyChartProps {
  name: string;
  big?: boolean;
  soft?: ComponentChildren;
  /** Buttons before the one that saves. */
  tools?: ComponentChildren;
}

export function KeyChart(props: KeyChartProps) {
  const desk = useContext(DeskContext);
  const state = desk?.feed.of(props.name).value;
  if (!desk || !state) return null;
  // Rows without a reading of the axis have a time, and an x-axis of their own: theirs would stretch all the others.
  const elsewhere =
    kindOf(desk.axis.value) === "number" &&
    !state.waiting &&
    state.lines.length === 0 &&
    desk.entities.value.length > 0 &&
    state.errors.every(({ error }) => error.code === "unknown_key");
  return elsewhere ? <OverTime desk={desk} {...props} /> : <OnDesk key={desk.id} desk={desk} {...props} />;
}

/** A key that has no reading of the desk's axis, over the time since its runs began. */
function OverTime({ desk, ...props }: KeyChartProps & { desk: Desk }) {
  const own = useMemo(() => besides(desk, "relative", "time since the run began"), [desk.id]);
  useSignalEffect(() => {
    void desk.entities.value;
    own.feed.choose({ ...desk.feed.chosen.value, x: "relative" });
  });
  useSignalEffect(() => own.feed.zoom(own.hub.view.value));
  useEffect(() => hear("run", (push) => own.feed.touch(push.run)), [own]);
  return <OnDesk desk={own} {...props} soft={<span class="tag">over time</span>} />;
}

function OnDesk({ desk, name, big, soft, tools }: KeyChartProps & { desk: Desk }) {
  const { feed, hub, entities, marks, look } = desk;
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | null>(null);
  const near = useSignal(false);
  const state = feed.of(name);
  useEffect(() => {
    const sees = new IntersectionObserver(
      (entries) => {
        near.value = entries.at(-1)?.isIntersecting ?? false;
      },
      { rootMargin: "200px" },
    );
    if (holder.current) sees.observe(holder.current);
    return () => sees.disconnect();
  }, []);
  useEffect(() => (near.value ? feed.want(name) : undefined), [near.value, name, feed]);
  const lines = useComputed(() => {
    const { lines: raw, span, rows } = feed.of(name).value;
    const { smoothing } = look.value;
    const width = span ? span.x1 - span.x0 : 0;
    return smoothing > 0 ? raw.map((line) => smoothed(line, smoothing, width, rows)) : raw;
  });
  const shownMarks = useComputed(() => {
    if (marks.value.size === 0) return NO_MARKS;
    const shown = new Set(lines.value.map((line) => line.id));
    const here = entities.value.filter(
      (entity) => shown.has(entity.id) || entity.runs.some((member) => shown.has(member.run)),
    );
    return here.flatMap((entity) => entity.runs.flatMap((member) => marks.value.get(member.run) ?? []));
  });
  const { scope, name: short } = split(name);
  const { waiting, span, preliminary } = state.value;
  const errors = state.value.errors.filter(({ error }) => !isInBanner(error));
  const { xLog, yLog, robust, draw } = look.value;
  const { Draw } = kindNamed(draw);
  const tag = desk.tags?.value.get(name);
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
        xKind={kindOf(desk.axis.value)}
        xName={desk.axisName.value}
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
