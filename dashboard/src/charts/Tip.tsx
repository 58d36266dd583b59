/** The values under the cursor as a small table beside it, in the chart under the pointer. */

import type { RefObject } from "preact";
import { useMemo } from "preact/hooks";
import type { Write } from "../data/numbers.ts";
import { valueAt } from "../data/lines.ts";
import { shortNames } from "../data/names.ts";
import type { Hub } from "./hub.ts";
import { isNamed, type AxisKind, type Line } from "./model.ts";
import { place } from "./place.ts";
import type { Plot } from "./plot.ts";

const ROWS = 12;
const NAME = 60; // letters of a name, on two lines

export function Tip({
  hub,
  lines,
  xName,
  xKind,
  plot,
  write,
}: {
  hub: Hub;
  lines: readonly Line[];
  xName: string;
  xKind: AxisKind;
  plot: RefObject<Plot | null>;
  write: Write;
}) {
  const at = hub.cursor.value;
  const view = hub.current();
  const shown = (at === null ? [] : lines.filter(isNamed))
    .map((line) => ({ line, hit: valueAt(line, at ?? 0) }))
    .filter((row) => row.hit !== null)
    .sort((a, b) => (b.hit?.value ?? 0) - (a.hit?.value ?? 0));
  const full = shown.slice(0, ROWS).map(({ line }) => line.name);
  // The cursor moves far more often than they change.
  const names = useMemo(() => shortNames(full, NAME), [full.join("\n")]);
  if (at === null || !view || shown.length === 0) return null;
  const box = plot.current?.layout().box;
  const share = (at - view.x0) / (view.x1 - view.x0);
  const px = box ? box.left + share * (box.right - box.left) : 0;
  const style = share < 0.55 ? { left: `${px + 14}px` } : { right: `calc(100% - ${px - 2}px)` };
  const band = shown.some(({ line }) => line.seeds !== undefined);
  return (
    <div class="tip" style={style} aria-hidden="true">
      <p class="head">
        <span>
          {xName} {place(at, xKind)}
        </span>
        {band && <span>95 %</span>}
      </p>
      <table role="presentation">
        <tbody>
          {shown.slice(0, ROWS).map(({ line, hit }, i) => (
            <tr key={line.id}>
              <td>
                <i class={`dot s${line.color}`} />
              </td>
              <td class="tipname">{names[i]}</td>
              <td class="num">{write(hit?.value)}</td>
              {band && <td class="soft">{interval(line, hit?.index ?? 0, write)}</td>}
              {band && <td class="num thin">{line.seeds ? `n ${line.seeds.n[hit?.index ?? 0] ?? "–"}` : ""}</td>}
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length > ROWS && <p class="head">and {shown.length - ROWS} more</p>}
    </div>
  );
}

function interval(line: Line, index: number, write: Write): string {
  const [low, high] = [line.low?.[index], line.high?.[index]];
  if (low === undefined || high === undefined || !Number.isFinite(low) || !Number.isFinite(high)) return "";
  return `[${write(low)}, ${write(high)}]`;
}
