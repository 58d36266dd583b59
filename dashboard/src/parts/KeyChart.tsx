/** One key of the runs on a desk as a chart, or an expression over keys. */

import { useSignalEffect } from "@preact/signals";
import { useContext, useEffect, useMemo } from "preact/hooks";
import { besides, DeskContext, kindOf, type Desk } from "../state/desk.ts";
import { source } from "../state/here.ts";
import { hear } from "../state/live.ts";
import { lazy } from "./lazy.tsx";
import { OnDesk, type Drawn, type KeyChartProps } from "./OnDesk.tsx";

const Calculated = lazy(() => import("./Calculated.tsx").then((m) => m.Calculated));

export function KeyChart(props: KeyChartProps) {
  const desk = useContext(DeskContext);
  if (desk && props.name.startsWith("=")) return <Calculated key={desk.id} desk={desk} {...props} />;
  return desk && <OfKey desk={desk} {...props} />;
}

/** The curves of one key. */
function useKey({ feed }: Desk, name: string): Drawn {
  return useMemo(() => ({ state: feed.of(name), want: () => feed.want(name) }), [feed, name]);
}

const Keyed = (props: KeyChartProps & { desk: Desk }) => <OnDesk {...props} of={useKey(props.desk, props.name)} />;

function OfKey({ desk, ...props }: KeyChartProps & { desk: Desk }) {
  const state = desk.feed.of(props.name).value;
  // Rows without a reading of the axis have a time, and an x-axis of their own: theirs would stretch all the others.
  const elsewhere =
    kindOf(desk.axis.value) === "count" &&
    !state.waiting &&
    state.lines.length === 0 &&
    desk.entities.value.length > 0 &&
    state.errors.every(({ error }) => error.code === "unknown_key" || error.code === "unknown_axis");
  return elsewhere ? <OverTime desk={desk} {...props} /> : <Keyed key={desk.id} desk={desk} {...props} />;
}

/** A key that has no reading of the desk's axis, over the time since its runs began; in a copy along what it has. */
function OverTime({ desk, ...props }: KeyChartProps & { desk: Desk }) {
  const own = useMemo(
    () => (source.live ? besides(desk, "relative", "time since the run began") : besides(desk, "", "its own axis")),
    [desk.id],
  );
  useSignalEffect(() => {
    void desk.entities.value;
    own.feed.choose({ ...desk.feed.chosen.value, x: own.axis.value });
  });
  useSignalEffect(() => own.feed.zoom(own.hub.view.value));
  useEffect(() => hear("run", (push) => own.feed.touch(push.run)), [own]);
  return <Keyed desk={own} {...props} soft={<span class="tag">{source.live ? "over time" : "own axis"}</span>} />;
}
