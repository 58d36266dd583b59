import type { Cause } from "../../api/names.ts";
import { amount, value, writeOf } from "../../data/numbers.ts";
import { MiniTable } from "../../parts/MiniTable.tsx";

/** How far a key left its usual range; what is no number left it altogether. */
export function far({ value: here, times }: Cause["unusual"][number]): string {
  return Number.isFinite(Number(here)) ? `${value(Number(times), 2)} ×` : value(Number(here));
}

/** Which keys left their usual range here, the furthest first; a name leads to its chart. */
export function Unusual({ found }: { found: Cause }) {
  const rows = found.unusual.filter(({ times }) => Number(times) >= 1).slice(0, 6);
  const columns = [
    { id: "key", head: "key" },
    { id: "value", head: "here", number: true },
    { id: "usual", head: "usual", number: true },
    { id: "times", head: "left it by", number: true },
  ];
  return (
    <section>
      <h3>
        What left its usual range <span class="soft">of {amount(found.looked_at, "key")} looked at</span>
      </h3>
      <MiniTable
        label="Keys that left their usual range"
        columns={columns}
        rows={rows}
        cell={(row, id) => {
          if (id === "key")
            return (
              <button class="link mono" type="button" onClick={() => showChart(row.key)}>
                {row.key}
              </button>
            );
          if (id === "value") return <b>{writeOf(row.key)(Number(row.value))}</b>;
          if (id === "usual") return [row.low, row.high].map((end) => writeOf(row.key)(Number(end))).join(" … ");
          return far(row);
        }}
      />
    </section>
  );
}

function showChart(key: string): void {
  document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.scrollIntoView({ block: "center" });
}
