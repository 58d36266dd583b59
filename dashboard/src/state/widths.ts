/** Widths of columns that a hand chose: kept in this browser, since they are about its screen. */

import { signal } from "@preact/signals";

type Widths = Readonly<Record<string, number>>;

const NAME = "rollbook widths";

function kept(): Record<string, Widths> {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(NAME) ?? "{}");
    return found !== null && typeof found === "object" ? (found as Record<string, Widths>) : {};
  } catch {
    return {}; // no storage in this frame, or not ours
  }
}

const all = signal(kept());

/** Column -> its width in px, of the columns of a table that have one of their own. */
export const widths = (table: string): Widths => all.value[table] ?? {};

/** Keeps the width of a column; null: as it was made. */
export function keepWidth(table: string, column: string, px: number | null): void {
  const { [column]: _, ...others } = widths(table);
  all.value = { ...all.peek(), [table]: px === null ? others : { ...others, [column]: Math.round(px) } };
  try {
    localStorage.setItem(NAME, JSON.stringify(all.peek()));
  } catch {
    // as long as the page is open
  }
}
