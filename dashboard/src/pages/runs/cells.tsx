/** Cells of the runs table: the number of a group, the mark of runs that end in NaN, values that narrow the table. */

import type { ComponentChildren } from "preact";
import type { Cell, GroupCell, GroupRow, RunRow } from "../../api/names.ts";
import { amount, plain, sentence, value, type Write } from "../../data/numbers.ts";
import { conditionFor } from "../../data/search.ts";
import { source } from "../../state/here.ts";
import * as view from "./view.ts";

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

/** A value of a setting, or a tag: pressed, only runs with it are left. By key the menu of the row offers it. */
export function Only({ column, of, children }: { column: string; of: unknown; children: ComponentChildren }) {
  const condition = source.live && /^config\.|^tags$/.test(column) ? conditionFor(column, of) : null;
  if (condition === null) return <>{children}</>;
  const narrow = (): void => view.sayOnly(condition);
  return (
    <button class="only" type="button" tabIndex={-1} title={`only ${view.short(condition)}`} onClick={narrow}>
      {children}
    </button>
  );
}

export const Tags = ({ of }: { of: readonly string[] }) => (
  <>
    {of.map((tag) => (
      <Only key={tag} column="tags" of={tag}>
        <span class="tag">{tag}</span>
      </Only>
    ))}
  </>
);
