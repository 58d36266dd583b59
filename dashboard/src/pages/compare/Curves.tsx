/** The curves of the compared groups, as the statistic that decides and its interval. */

import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { KeyChart } from "../../parts/KeyChart.tsx";
import { deskOf, DeskContext, type Look } from "../../state/desk.ts";
import { hear } from "../../state/live.ts";
import { entities } from "../runs/table.ts";

/** A verdict hides nothing: no value is cut off. */
const EVERYTHING: Look = { smoothing: 0, xLog: false, yLog: false, robust: false };

export function Curves({ of, axis, statistic }: { of: string; axis: string; statistic: string }) {
  const shown = entities.value;
  const desk = useMemo(() => ({ ...deskOf("", "", axis, axis), entities: signal(shown), look: signal(EVERYTHING) }), [axis, shown]);
  useEffect(() => {
    desk.feed.choose({ entities: shown, x: axis, statistic: statistic === "mean" || statistic === "median" ? statistic : "iqm", ghosts: false });
    const stops = [desk.hub.view.subscribe((view) => desk.feed.zoom(view)), hear("run", (push) => desk.feed.touch(push.run))];
    return () => stops.forEach((stop) => stop());
  }, [desk, statistic]);
  const said = desk.feed.of(of).value.sentences;
  return (
    <section class="card c7">
      <header><h2>Over training</h2><span class="soft">{said[0] ?? ""}</span></header>
      <div class="in tall"><DeskContext.Provider value={desk}><KeyChart key={of} name={of} /></DeskContext.Provider></div>
    </section>
  );
}
