/** The curves of the compared groups, as the statistic that decides and its interval. */

import { amount, count, sentence } from "../../data/numbers.ts";
import { signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { CompareAnswer } from "../../api/names.ts";
import { KeyChart } from "../../parts/KeyChart.tsx";
import { deskOf, DeskContext, PLAIN, type Look } from "../../state/desk.ts";
import { hear } from "../../state/live.ts";
import { compared } from "./groups.ts";

/** A verdict hides nothing: no value is cut off. */
const EVERYTHING: Look = { ...PLAIN, robust: false };

export function Curves({
  of,
  axis,
  statistic,
  parted,
}: {
  of: string;
  axis: string;
  statistic: string;
  parted: NonNullable<CompareAnswer["parted"]>;
}) {
  const chosen = compared.value;
  // Asked for as the verdict asks: one reckoning for both.
  const shown = useMemo(() => chosen.map((entity) => ({ ...entity, id: entity.name })), [chosen]);
  const desk = useMemo(
    () => ({ ...deskOf("", "", axis, axis), entities: signal(shown), look: signal(EVERYTHING) }),
    [axis, shown],
  );
  useEffect(() => {
    desk.feed.choose({
      entities: shown,
      x: axis,
      statistic: statistic === "mean" || statistic === "median" ? statistic : "iqm",
      ghosts: false,
    });
    const stops = [
      desk.hub.view.subscribe((view) => desk.feed.zoom(view)),
      hear("run", (push) => desk.feed.touch(push.run)),
    ];
    return () => stops.forEach((stop) => stop());
  }, [desk, statistic]);
  const apart = parted.filter((pair) => pair.x !== null).length;
  const said = desk.feed.of(of).value.sentences;
  return (
    <section class="card c6">
      <header>
        <h2>{parted.length > 0 ? "When did they part?" : "Over training"}</h2>
        <span class="soft" title={said[0]}>
          {/^.*?[^.\d]\.(?= |$)/.exec(said[0] ?? "")?.[0].slice(0, -1) ?? said[0]}
        </span>
      </header>
      <div class="in tall">
        <DeskContext.Provider value={desk}>
          <KeyChart key={of} name={of} />
        </DeskContext.Provider>
      </div>
      {parted.length > 0 && (
        <details class="in said2 small" open={parted.length === 1}>
          <summary>
            {parted.length === 1
              ? `They ${apart === 1 ? "" : "do not "}stay apart`
              : `${count(apart)} of ${amount(parted.length, "pair")} stay apart`}
          </summary>
          {parted.map((pair) => (
            <p key={`${pair.a} ${pair.b}`} class={pair.x === null ? "small soft" : "small"}>
              {sentence(pair.sentence)}
            </p>
          ))}
        </details>
      )}
    </section>
  );
}
