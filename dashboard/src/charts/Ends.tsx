/** Where all lines end, or stand at the cursor: a dot each, with the interval of a group; the highest first. */

import { endOf } from "../data/lines.ts";
import { shortNames } from "../data/names.ts";
import { value } from "../data/numbers.ts";
import type { ChartProps } from "./Chart.tsx";

const MOST = 60;

export function Ends({
  hub,
  title,
  scope = "",
  soft,
  lines,
  yLog = false,
  xName,
  big = false,
  onPick,
  tools,
  note,
  write = value,
}: ChartProps) {
  const until = hub.cursor.value ?? hub.view.value?.x1 ?? Infinity;
  const ends = lines
    .flatMap((line) => {
      const end = line.ghost === true ? null : endOf(line, until);
      return end ? [{ line, ...end }] : [];
    })
    .sort((a, b) => b.value - a.value);
  const logs = yLog && ends.every((end) => end.low > 0);
  const place = (v: number): number => (logs ? Math.log10(v) : v);
  const [first, last] = [
    Math.min(...ends.map((end) => place(end.low))),
    Math.max(...ends.map((end) => place(end.high))),
  ];
  const share = (v: number): number => (last > first ? (100 * (place(v) - first)) / (last - first) : 50);
  const names = shortNames(
    ends.map(({ line }) => line.name),
    24,
  );
  const told = ends
    .slice(0, 6)
    .map(({ line, value: v }) => `${line.name} ${write(v)}`)
    .join("; ");
  return (
    <figure class={`chart${big ? " big" : ""}`}>
      <figcaption>
        <span class="title" title={scope + title}>
          {scope !== "" && <span class="scope">{scope}</span>}
          {title}
          <span class="soft">
            {" "}
            {soft ?? (Number.isFinite(until) ? `up to ${value(until)} ${xName}` : "last values")}
          </span>
        </span>
        {tools !== undefined && <span class="tools">{tools}</span>}
      </figcaption>
      <div
        class="plotarea ends"
        role="group"
        tabIndex={0}
        aria-label={`${scope}${title}, last values of ${ends.length}: ${told}`}
      >
        {ends.slice(0, MOST).map(({ line, x, value: v, low, high }, i) => (
          <button
            key={line.id}
            type="button"
            class={`s${line.color}`}
            title="what happened there"
            onClick={() => onPick?.(line, x)}
          >
            <em title={line.name}>{names[i]}</em>
            <span class="track">
              {high > low && (
                <i class="band" style={{ left: `${share(low)}%`, width: `${share(high) - share(low)}%` }} />
              )}
              <i class="at" style={{ left: `${share(v)}%` }} />
            </span>
            <b>{write(v)}</b>
          </button>
        ))}
        {ends.length > MOST && <p class="soft">and {ends.length - MOST} lower ones</p>}
      </div>
      {note}
    </figure>
  );
}
