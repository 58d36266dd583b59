import { useMemo } from "preact/hooks";
import type { RunDetail } from "../../api/names.ts";
import { pinnedFirst } from "../../data/keys.ts";
import { KeyChart } from "../../parts/KeyChart.tsx";
import { useAnswer } from "../../state/answer.ts";
import { deskOf, DeskContext } from "../../state/desk.ts";
import { colorOfRun } from "../../state/colors.ts";
import { go } from "../../state/address.ts";
import { source } from "../../state/here.ts";
import { hear, watch } from "../../state/live.ts";
import { useEffect } from "preact/hooks";

/** The few curves that say most about one run. */
export function RunCharts({ run, detail }: { run: string; detail: RunDetail }) {
  const keys = useAnswer(`${run} keys`, () => source.keys([run]));
  const desk = useMemo(
    () =>
      deskOf(run, detail.name, detail.x, detail.x, {
        pick: (_, x, key) =>
          go(
            `#/runs?g=none&show=${encodeURIComponent(run)}.${colorOfRun(run)}` +
              `&cause=${encodeURIComponent(`${run},${detail.x},${x},${key}`)}`,
          ),
      }),
    [run, detail.x],
  );
  useEffect(() => {
    const stops = [
      watch(`run:${run}`),
      hear("run", (push) => desk.feed.touch(push.run)),
      desk.hub.view.subscribe((view) => desk.feed.zoom(view)),
    ];
    return () => stops.forEach((stop) => stop());
  }, [desk]);
  const few = pinnedFirst(keys.value?.keys ?? []);
  if (keys.value === null && keys.error === null) return <section class="later" />;
  if (few.length === 0) return null;
  return (
    <section class="c12">
      <DeskContext.Provider value={desk}>
        <div class="charts fit">
          {few.map((key) => (
            <KeyChart key={key} name={key} />
          ))}
        </div>
      </DeskContext.Provider>
    </section>
  );
}
