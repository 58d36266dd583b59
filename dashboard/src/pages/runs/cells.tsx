/** Cells of the runs table: the number of a group, and the mark of runs that end in NaN. */

import type { Cell, GroupCell, GroupRow, RunRow } from "../../api/names.ts";
import { amount, plain, sentence, value } from "../../data/numbers.ts";

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

export function GroupContent({ cell, metric }: { cell: Cell | GroupCell | undefined; metric: boolean }) {
  if (cell !== null && typeof cell === "object" && !Array.isArray(cell)) {
    const group = cell as GroupCell;
    if (group.distinct !== undefined)
      return (
        <span class="soft" title={(group.values ?? []).map(plain).join(", ")}>
          {amount(group.distinct, "value")}
        </span>
      );
    const [centre, low, high] = [Number(group.centre), group.low, group.high];
    const half = typeof low === "number" && typeof high === "number" ? (high - low) / 2 : null;
    if (group.centre === null || group.centre === undefined) return <span class="soft">–</span>;
    return (
      <span title={sentence(group.sentence ?? "")}>
        {value(centre)} {half !== null && <span class="pm">±{value(half, 2)}</span>}
      </span>
    );
  }
  return <span class={metric ? "" : "soft"}>{typeof cell === "number" && metric ? value(cell) : plain(cell)}</span>;
}
