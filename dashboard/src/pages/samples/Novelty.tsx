/** New samples and repeated ones over training, and what was not trained on. */

import { useMemo } from "preact/hooks";
import { Chart } from "../../charts/Chart.tsx";
import { Hub } from "../../charts/hub.ts";
import type { Line } from "../../charts/model.ts";
import { amount, count, percent } from "../../data/numbers.ts";
import { Answered, Empty } from "../../parts/Say.tsx";
import { useAnswer } from "../../state/answer.ts";
import { kindOf } from "../../state/desk.ts";
import { source } from "../../state/here.ts";
import { say } from "../../state/address.ts";

export function Novelty({ run }: { run: string }) {
  const novelty = useAnswer(`${run} novelty`, () => source.novelty(run));
  const unused = useAnswer(`${run} unused`, () => source.unused(run, null));
  const hub = useMemo(() => new Hub(), []);
  const found = novelty.value;
  const lines = useMemo<Line[]>(() => {
    const points = found?.points.filter((point) => typeof point.x === "number") ?? [];
    const x = Float64Array.from(points, (point) => Number(point.x));
    const line = (id: string, color: number, y: (point: (typeof points)[number]) => number): Line => ({
      id,
      name: id,
      color,
      x,
      y: Float32Array.from(points, y),
      envelope: false,
    });
    return [line("new", 1, (point) => point.new), line("repeated", 2, (point) => point.repeated)];
  }, [found]);
  const span =
    lines[0] && lines[0].x.length > 0
      ? { x0: lines[0].x[0] as number, x1: lines[0].x[lines[0].x.length - 1] as number }
      : null;
  const total = found?.points.reduce((sum, point) => sum + point.rows, 0) ?? 0;
  const fresh = found?.points.reduce((sum, point) => sum + point.new, 0) ?? 0;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Novelty">
      <div class="cols one">
        <Answered of={novelty} what="novelty">
          {(said) =>
            said.points.length === 0 ? (
              <Empty title="Nothing is known of new and repeated samples" />
            ) : (
              <section class="card">
                <header>
                  <h2>
                    {total > 0
                      ? `${percent(fresh / total)} of ${amount(total, "sample")} were new`
                      : "New and repeated samples"}
                  </h2>
                  <span class="soft">the others had been seen before in this run</span>
                </header>
                <div class="in tall">
                  <Chart
                    bare
                    hub={hub}
                    title="samples"
                    soft="a stretch of training each"
                    lines={lines}
                    span={span}
                    robust={false}
                    xKind={kindOf(said.x)}
                    xName={said.x}
                  />
                </div>
              </section>
            )
          }
        </Answered>
        {unused.value && unused.value.reasons.length > 0 && (
          <section class="card">
            <header>
              <h2>What was not trained on</h2>
              <span class="soft">of {amount(unused.value.groups, "group")}</span>
            </header>
            <div class="in">
              <div class="stack">
                {unused.value.reasons.map((reason, i) => (
                  <i
                    key={reason.reason}
                    class={`s${i + 1}`}
                    style={{ width: `${(reason.groups / Math.max(1, unused.value?.groups ?? 1)) * 100}%` }}
                  />
                ))}
              </div>
              <p class="legend">
                {unused.value.reasons.map((reason, i) => (
                  <button
                    key={reason.reason}
                    class="link"
                    type="button"
                    onClick={() => say({ tab: "", row: reason.ids[0] ?? "" })}
                  >
                    <i class={`dot s${i + 1}`} /> {reason.reason} <b>{count(reason.groups)}</b>
                  </button>
                ))}
              </p>
            </div>
          </section>
        )}
      </div>
    </div>
  );
}
