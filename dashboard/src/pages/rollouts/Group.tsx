/** The rollouts that are judged against each other, and where the answers of two of them differ. */

import type { OneRollout as Found, RolloutRow } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { amount, value } from "../../data/numbers.ts";
import { byId } from "../../data/rollouts.ts";
import { Middle } from "../../parts/Middle.tsx";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { cellText } from "../samples/cells.ts";
import { ENDING } from "./listed.tsx";
import { Advantage, FateMark, StatusMark } from "./marks.tsx";
import { openRollout } from "./opened.ts";
import { TurnsDiff } from "./TurnsDiff.tsx";

const COLUMNS = [
  { id: "place", head: "#", number: true },
  { id: "status", head: "status" },
  { id: "reward", head: "reward", number: true },
  { id: "advantage", head: "advantage", number: true },
  { id: "turns", head: "turns", number: true },
  { id: "fate", head: "fate" },
  { id: "item", head: "last answer" },
  { id: "diff", head: "" },
];

export function Group({
  run,
  rows,
  own,
  beside,
  onBeside,
}: {
  run: string;
  rows: readonly RolloutRow[];
  own: Found;
  /** The rollout that its own is compared with; "" for none. */
  beside: string;
  onBeside: (id: string) => void;
}) {
  const { id } = own;
  const sorted = [...rows].sort((a, b) => byId(a.id, b.id));
  const most = Math.max(...sorted.map(({ cells }) => Math.abs(Number(cells["advantage"] ?? 0))));
  const place = (of: string): number => sorted.findIndex((row) => row.id === of) + 1;
  return (
    <section class="card">
      <header>
        <h2>Its group</h2>
        <span class="soft">{amount(rows.length, "rollout")}</span>
      </header>
      <MiniTable
        label="The group of this rollout"
        columns={COLUMNS}
        rows={sorted}
        rowClass={(row) => (row.id === id ? "chosen" : "")}
        cell={(row, column) => {
          const cell = row.cells[column];
          if (column === "place") return place(row.id);
          if (column === "fate") return <FateMark cells={row.cells} />;
          if (column === "status") return <StatusMark status={cellText(cell)} />;
          if (column === "advantage") return <Advantage of={cell} most={most} />;
          if (column === "diff")
            return row.id === id ? (
              <span class="soft">this</span>
            ) : (
              <button class="link" type="button" aria-pressed={beside === row.id} onClick={() => onBeside(row.id)}>
                diff
              </button>
            );
          if (column === "item")
            return (
              <button class="link oneline" type="button" onClick={() => openRollout(row.id)}>
                <Middle text={shown(cellText(cell ?? row.cells["error"]))} tail={ENDING} />
              </button>
            );
          return typeof cell === "number" ? value(cell) : shown(cellText(cell));
        }}
      />
      {place(beside) > 0 && beside !== own.id && (
        <TurnsDiff run={run} own={own} other={beside} names={`${place(own.id)} against ${place(beside)}`} />
      )}
    </section>
  );
}
