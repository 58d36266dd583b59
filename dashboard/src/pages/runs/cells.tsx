/** Cells of the runs table: the number of a group, and the mark of runs that end in NaN. */

import type { Cell, GroupCell, GroupRow, RunRow } from "../../api/names.ts";
import { amount, plain, sentence, value, type Write } from "../../data/numbers.ts";

/** That runs end in NaN, which a best or a mean does not show. */
export function Nan({ of, row }: { of: number; row: GroupRow | RunRow }) {
  const title =
    row.kind === "run" ? "the last row is NaN or infinite" : `${of} of ${amount(row.runs.length, "run")} end in NaN`;
  return (
    <span class="lost" title={title}>
      {" "}
      {of > 1 ? `${of} ` : ""}NaN
    </span>
  );
}

/** `write`: how numbers of a metric are written; null: it is none. */
export function GroupContent({ cell, write }: { cell: Cell | GroupCell | undefined; write: Write | null }) {
  if (cell !== null && typeof cell === "object" && !Array.isArray(cell)) {
    const group = cell as GroupCell;
    if (group.distinct !== undefined)
      return (
        <span class="soft" title={(group.values ?? []).map(plain).join(", ")}>
          {amount(group.distinct, "value")}
        </span>
      );
    const number = write ?? value;
    const [centre, low, high] = [Number(group.centre), group.low, group.high];
    const half = typeof low === "number" && typeof high === "number" ? (high - low) / 2 : null;
    if (group.centre === null || group.centre === undefined) return <span class="soft">–</span>;
    return (
      <span title={sentence(group.sentence ?? "")}>
        {number(centre)} {half !== null && <span class="pm">±{number(half, 2)}</span>}
      </span>
    );
  }
  return <span class={write ? "" : "soft"}>{typeof cell === "number" && write ? write(cell) : plain(cell)}</span>;
}
