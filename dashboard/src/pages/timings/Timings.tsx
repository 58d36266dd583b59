/** Where does the time go? Stages over training, every span on a timeline, and what rollbook itself cost. */

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Cost, Timings as Told } from "../../api/names.ts";
import { Chart } from "../../charts/Chart.tsx";
import { Hub } from "../../charts/hub.ts";
import type { Line } from "../../charts/model.ts";
import { StackedArea } from "../../charts/StackedArea.tsx";
import { bytes, count, percent, seconds, value } from "../../data/numbers.ts";
import { Context } from "../../parts/Context.tsx";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { RunPicker } from "../../parts/RunPicker.tsx";
import { Answered, Empty, Failure } from "../../parts/Say.tsx";
import { say, word } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { kindOf } from "../../state/desk.ts";
import { source } from "../../state/here.ts";
import { useNews, useRun } from "../../state/run.ts";
import { TimelineView } from "./TimelineView.tsx";

const unit = word("unit", "seconds");
const hidden = signal<readonly string[]>([]);

export function Timings() {
  const { run, detail, none } = useRun("timings");
  const news = useNews(run, ["timings", "metrics"], 4000);
  const told = useAnswer(run && `${run} ${news}`, () => source.timings(run as string, null));
  const cost = useAnswer(run && `${run} cost ${news}`, () => source.cost(run as string));
  return (
    <>
      <Context>
        <RunPicker detail={detail.value} />
        <span class="grow" />
        <span class="seg" role="group" aria-label="Unit">
          {["seconds", "share"].map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={unit.value === name}
              onClick={() => say({ unit: name === "seconds" ? "" : name })}
            >
              {name}
            </button>
          ))}
        </span>
        <CopyLink />
      </Context>
      {detail.error && (
        <div class="pad">
          <Failure error={detail.error} again={detail.again} />
        </div>
      )}
      <main id="main" class="page scroll" tabIndex={0} aria-label="Timings">
        {none && <Empty title="No runs here" code="rollbook demo" />}
        <Answered of={told} what="timings">
          {(found) =>
            found.stages.length === 0 ? (
              <Empty title="No timings were recorded" code={'with run.timer("collect"):\n    …'}>
                <p>Put a timer around what takes long; the stages appear here:</p>
              </Empty>
            ) : (
              <div class="cols">
                <Over found={found} />
                {run !== null && <TimelineView run={run} attempts={detail.value?.attempts.length ?? 0} />}
                <Stages found={found} />
                <Speed found={found} live={detail.value?.status === "running"} />
                {cost.value && <OwnCost cost={cost.value} />}
              </div>
            )
          }
        </Answered>
      </main>
    </>
  );
}

export const stageColor = (names: readonly string[], name: string): number => (names.indexOf(name) % 10) + 1;

function Over({ found }: { found: Told }) {
  const names = Object.keys(found.over.seconds);
  // A stretch in which nothing ended is no stretch without work: only where stages ended is there something to draw.
  const filled = found.over.x
    .map((_, i) => i)
    .filter((i) => names.some((name) => (found.over.seconds[name]?.[i] ?? 0) > 0));
  const at = (values: readonly (number | string | null)[]): number[] => filled.map((i) => Number(values[i]));
  return (
    <section class="card c12">
      <header>
        <h2>Over training</h2>
        <span class="soft">
          {unit.value === "share" ? "share of the time" : "seconds"} by stage, a stretch of {found.x} each
        </span>
        <span class="grow" />
        <span class="legend">
          {[...names, ...(found.over.other ? ["other"] : [])].slice(0, 10).map((name) => (
            <button
              key={name}
              class={`link${hidden.value.includes(name) ? " struck" : ""}`}
              type="button"
              aria-pressed={!hidden.value.includes(name)}
              onClick={() => {
                hidden.value = hidden.value.includes(name)
                  ? hidden.value.filter((n) => n !== name)
                  : [...hidden.value, name];
              }}
            >
              <i class={`dot s${name === "other" ? 10 : stageColor(names, name)}`} /> {name}
            </button>
          ))}
        </span>
      </header>
      <StackedArea
        label={`Seconds by stage over ${found.x}`}
        x={at(found.over.x)}
        share={unit.value === "share"}
        xKind={kindOf(found.x)}
        layers={[
          ...names.map((name) => ({ name, color: stageColor(names, name), y: at(found.over.seconds[name] ?? []) })),
          ...(found.over.other ? [{ name: "other", color: 10, y: at(found.over.other) }] : []),
        ].filter((layer) => !hidden.value.includes(layer.name))}
      />
    </section>
  );
}

function Stages({ found }: { found: Told }) {
  const names = Object.keys(found.over.seconds);
  const columns = [
    { id: "name", head: "stage" },
    { id: "own", head: "total", number: true },
    { id: "share", head: "share", number: true },
    { id: "median", head: "median", number: true },
    { id: "p99", head: "p99", number: true },
    { id: "calls", head: "calls", number: true },
  ];
  return (
    <section class="card c6">
      <header>
        <h2>Stages</h2>
        <span class="soft">exclusive time</span>
      </header>
      <MiniTable
        label="Stages"
        columns={columns}
        rows={found.stages}
        cell={(stage, id) => {
          if (id === "name")
            return (
              <span class="mono stage" style={{ paddingLeft: `${stage.depth * 12}px` }}>
                <i class={`dot s${names.includes(stage.name) ? stageColor(names, stage.name) : 10}`} /> {stage.name}
              </span>
            );
          if (id === "own") return seconds(stage.own);
          if (id === "share")
            return (
              <span class="sharebar">
                {percent(stage.share)}{" "}
                <span class="prog">
                  <i style={{ width: `${Math.min(100, stage.share * 100)}%` }} />
                </span>
              </span>
            );
          if (id === "calls") return count(stage.calls);
          return seconds(Number(id === "median" ? (stage.median ?? NaN) : (stage.p99 ?? NaN)));
        }}
      />
    </section>
  );
}

function Speed({ found, live }: { found: Told; live: boolean }) {
  const hub = useMemo(() => new Hub(), []);
  const { x, y, now } = found.steps_per_second;
  const lines = useMemo<Line[]>(
    () => [
      {
        id: "speed",
        name: "steps a second",
        color: 1,
        x: Float64Array.from(x),
        y: Float32Array.from(y, (v) => (typeof v === "number" ? v : NaN)),
        envelope: false,
      },
    ],
    [found],
  );
  const span = x.length > 0 ? { x0: x[0] as number, x1: x[x.length - 1] as number } : null;
  return (
    <section class="card c3">
      <header>
        <h2>Steps a second</h2>
        <span class="grow" />
        <span class="soft">{typeof now === "number" ? `${value(now)} ${live ? "now" : "at the end"}` : ""}</span>
      </header>
      <div class="in tall">
        <Chart
          bare
          hub={hub}
          title={found.x}
          lines={lines}
          span={span}
          robust={false}
          xKind={kindOf(found.x)}
          xName={found.x}
        />
      </div>
    </section>
  );
}

function OwnCost({ cost }: { cost: Cost }) {
  const drops = Object.entries(cost.drops);
  return (
    <section class="card c3">
      <header>
        <h2>rollbook’s own cost</h2>
      </header>
      <dl class="facts in">
        <dt>in your process</dt>
        <dd>
          {seconds(Number(cost.seconds ?? NaN))}
          {typeof cost.share === "number" &&
            `, ${cost.share < 1e-4 ? "less than 0.01" : (cost.share * 100).toFixed(2)} % of the run`}
        </dd>
        {typeof cost.log_median_us === "number" && (
          <>
            <dt>one row</dt>
            <dd>
              median {seconds(cost.log_median_us / 1e6)}
              {typeof cost.log_p99_us === "number" && `, p99 ${seconds(cost.log_p99_us / 1e6)}`}
            </dd>
          </>
        )}
        {typeof cost.keeper_seconds === "number" && (
          <>
            <dt>keeper</dt>
            <dd>
              {seconds(cost.keeper_seconds)} of cpu
              {typeof cost.keeper_bytes === "number" && `, ${bytes(cost.keeper_bytes)}`}
            </dd>
          </>
        )}
        <dt>rows</dt>
        <dd>
          {count(cost.rows)} logged, {count(cost.lost)} lost, {count(cost.refused)} refused
        </dd>
        <dt>on disk</dt>
        <dd>{bytes(cost.bytes)}</dd>
        {drops.map(([why, n]) => (
          <>
            <dt key={why}>dropped</dt>
            <dd class="lost">
              {count(n)}: {cost.reports[why] ?? why}
            </dd>
          </>
        ))}
      </dl>
    </section>
  );
}
