/** A prompt over training in a row of boxes: each as full as its stretch was solved, empty: never, none: not tried. */

import { useState } from "preact/hooks";
import type { PromptRow } from "../../api/names.ts";
import { stretchWords, stripWords, together, type Stretches } from "../../data/rollouts.ts";
import { addressOf, go } from "../../state/address.ts";

const [BOX, TALL, TOP] = [4, 14, 5];

export function SolvedStrip({
  row,
  where,
  run,
  chosen,
  read,
}: {
  row: PromptRow;
  where: Stretches;
  run: string;
  /** Its row is open: keys go through its stretches. */
  chosen: boolean;
  /** Shows what a stretch says; null: nothing more. */
  read: (words: string | null) => void;
}) {
  const last = row.tried.length - 1;
  const [at, setAt] = useState<number | null>(null);
  const now = Math.min(
    at ??
      Math.max(
        0,
        row.tried.findLastIndex((n) => n > 0),
      ),
    last,
  );
  const look = (i: number): void => {
    setAt(i);
    read(stretchWords(row, i, where));
  };
  const leave = (): void => {
    setAt(null);
    read(null);
  };
  const open = (i: number): void => {
    const low = where.begin + i * where.width;
    const by = where.x === "version" ? "policy_version" : "gradient_step";
    const part = together({ by, low, high: low + where.width - 1 }, "");
    go(addressOf("rollouts", { run, tab: "", q: "", of: `task:${row.example}`, where: part, row: "" }));
  };
  const placeOf = (event: MouseEvent): number => {
    const { left, width } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return Math.max(0, Math.min(last, Math.floor(((event.clientX - left) / width) * (last + 1))));
  };
  return (
    <span
      class="solvedstrip"
      style={{ width: `${BOX * row.tried.length}px` }}
      onPointerMove={(event) => look(placeOf(event))}
      onPointerLeave={leave}
      onClick={(event) => {
        const i = placeOf(event);
        if ((row.tried[i] ?? 0) === 0) return;
        event.stopPropagation();
        open(i);
      }}
      {...(chosen
        ? {
            id: "strip",
            role: "slider",
            tabIndex: 0,
            "aria-label": "Solved over training, by stretch; Enter: its rollouts",
            "aria-valuemin": 0,
            "aria-valuemax": Math.max(0, last),
            "aria-valuenow": now,
            "aria-valuetext": stretchWords(row, now, where),
            onFocus: () => look(now),
            onBlur: leave,
            onKeyDown: (event: KeyboardEvent) => {
              const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
              if (next !== undefined) look(Math.max(0, Math.min(last, next)));
              else if (event.key === "Enter" && (row.tried[now] ?? 0) > 0) open(now);
              else return;
              event.preventDefault();
              event.stopPropagation();
            },
          }
        : { role: "img", "aria-label": stripWords(row, where) })}
    >
      <svg viewBox={`0 0 ${BOX * row.tried.length} 24`} aria-hidden="true">
        {row.tried.map((n, i) => {
          if (n === 0) return null;
          const full = ((row.solved_in[i] ?? 0) / n) * TALL;
          return (
            <g key={i} class={i === at ? "now" : ""}>
              <rect class="all" x={i * BOX + 0.5} y={TOP} width={BOX - 1} height={TALL} />
              <rect x={i * BOX} y={TOP + TALL - full} width={BOX} height={full} />
            </g>
          );
        })}
      </svg>
    </span>
  );
}
