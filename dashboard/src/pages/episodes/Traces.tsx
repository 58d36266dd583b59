/** The traces of one episode, by kind: rewards by component, values, actions, observations. One cursor for all. */

import { useMemo } from "preact/hooks";
import type { EpisodeDetail } from "../../api/names.ts";
import { Chart } from "../../charts/Chart.tsx";
import { HeatRows } from "../../charts/HeatRows.tsx";
import type { Hub } from "../../charts/hub.ts";
import type { Line } from "../../charts/model.ts";
import { doubles } from "../../data/frames.ts";
import { amount } from "../../data/numbers.ts";
import { Answered } from "../../parts/Say.tsx";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";

const TITLES: Record<string, string> = {
  reward: "reward",
  value: "value",
  action: "actions",
  observation: "observation",
  info: "running data",
};
const ORDER = ["reward", "value", "action", "info", "observation"];
const HEAT_FROM = 4; // from so many numbers on a row of colours says more than a knot of lines

interface Group {
  kind: string;
  /** What the chart is called. */
  title: string;
  lines: Line[];
}

export function Traces({ run, episode, found, hub }: { run: string; episode: string; found: EpisodeDetail; hub: Hub }) {
  const answer = useAnswer(`${run} ${episode} traces`, () => source.traces(run, episode, []));
  const groups = useMemo<Group[]>(() => {
    const frame = answer.value;
    const entry = frame?.entries[0];
    if (!frame || !entry) return [];
    const t = doubles(frame.payload, entry.t);
    const kinds = new Map<string, Line[]>();
    for (const { name, group } of found.traces) {
      for (const [column, place] of Object.entries(entry.arrays)) {
        if (column !== name && !column.startsWith(`${name}[`)) continue;
        const kind = group === "info" ? `info ${shortOf(name)}` : group; // each of these has its own scale
        const lines = kinds.get(kind) ?? [];
        kinds.set(kind, lines);
        if (!lines.some((line) => line.id === column))
          lines.push({
            id: column,
            name: shortOf(column),
            color: (lines.length % 10) + 1,
            x: t,
            y: Float32Array.from(doubles(frame.payload, place)),
            envelope: false,
          });
      }
    }
    return ORDER.flatMap((kind) =>
      [...kinds]
        .filter(([id]) => id.split(" ", 1)[0] === kind)
        .map(([id, lines]) => ({ kind, lines, title: id.slice(kind.length + 1) || (TITLES[kind] ?? kind) })),
    );
  }, [answer.value]);
  return (
    <Answered of={answer} what="the traces">
      {() => (
        <div class="traces">
          {groups.map(({ kind, title, lines }) =>
            (kind === "action" || kind === "observation") && lines.length >= HEAT_FROM ? (
              <HeatRows key={kind} title={title} lines={lines} hub={hub} />
            ) : (
              <Chart
                key={title}
                bare
                hub={hub}
                title={title}
                soft={
                  lines.length > 1
                    ? amount(lines.length, "trace")
                    : kind === "info"
                      ? TITLES[kind]
                      : lines[0]?.name === title
                        ? ""
                        : lines[0]?.name
                }
                lines={lines}
                span={spanOf(lines)}
                robust={false}
                xName="step"
              />
            ),
          )}
        </div>
      )}
    </Answered>
  );
}

const shortOf = (name: string): string => name.replace(/^(reward_component|running|info\/data|info)\//, "");

function spanOf(lines: readonly Line[]): { x0: number; x1: number } | null {
  const x = lines[0]?.x;
  return x && x.length > 0 ? { x0: x[0] as number, x1: x[x.length - 1] as number } : null;
}
