/** The rollouts that are judged against each other, and where the answers of two of them differ. */

import { useState } from "preact/hooks";
import type { RolloutRow } from "../../api/names.ts";
import { diff, shown } from "../../data/diff.ts";
import { value } from "../../data/numbers.ts";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { say } from "../../state/address.ts";
import { cellText } from "../samples/cells.ts";
import { fateOf } from "./List.tsx";

const COLUMNS = [
  { id: "status", head: "status" },
  { id: "reward", head: "reward", number: true },
  { id: "advantage", head: "advantage", number: true },
  { id: "turns", head: "turns", number: true },
  { id: "fate", head: "fate" },
  { id: "item", head: "last answer" },
  { id: "diff", head: "" },
];

export function Group({ rows, id }: { rows: readonly RolloutRow[]; id: string }) {
  const [other, setOther] = useState("");
  const sorted = [...rows].sort((a, b) => (a.id < b.id ? -1 : 1));
  const own = sorted.find((row) => row.id === id);
  const beside = sorted.find((row) => row.id === other && row.id !== id);
  return (
    <section class="card">
      <header>
        <h2>Its group</h2>
        <span class="soft">{rows.length} rollouts</span>
      </header>
      <MiniTable
        label="The group of this rollout"
        columns={COLUMNS}
        rows={sorted}
        rowClass={(row) => (row.id === id ? "chosen" : "")}
        cell={(row, column) => {
          const cell = row.cells[column];
          if (column === "fate") return fateOf(row.cells);
          if (column === "diff")
            return row.id === id ? (
              <span class="soft">this</span>
            ) : (
              <button class="link" type="button" aria-pressed={other === row.id} onClick={() => setOther(row.id)}>
                diff
              </button>
            );
          if (column === "item")
            return (
              <button class="link full" type="button" onClick={() => say({ row: row.id })}>
                {shown(cellText(cell ?? row.cells["error"]))}
              </button>
            );
          return typeof cell === "number" ? value(cell) : shown(cellText(cell));
        }}
      />
      {own && beside && (
        <div class="in">
          <p class="soft difftext">
            <del>only in this</del> · <ins>only in the other</ins>
          </p>
          <p class="difftext">
            {diff(shown(cellText(own.cells["item"])), shown(cellText(beside.cells["item"]))).map(({ kind, text }, i) =>
              kind === "same" ? (
                <span key={i}>{text}</span>
              ) : kind === "only a" ? (
                <del key={i}>{text}</del>
              ) : (
                <ins key={i}>{text}</ins>
              ),
            )}
          </p>
        </div>
      )}
    </section>
  );
}
