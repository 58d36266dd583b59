/** From which reward on a rollout is solved: what the page says, and a box to set it. */

import { computed } from "@preact/signals";
import type { Num } from "../../api/names.ts";
import { value } from "../../data/numbers.ts";
import { say, word } from "../../state/address.ts";

const given = word("above");

/** What was set, as part of a question; {} for the default. */
export const above = computed<{ above?: number }>(() => {
  const number = Number(given.value);
  return given.value.trim() !== "" && Number.isFinite(number) ? { above: number } : {};
});

export function Above({ now }: { now: Num }) {
  return (
    <label
      class="soft"
      title="Empty: midway between low and high rewards; the lowest 5 % and the highest 1 % do not count"
    >
      solved: reward above{" "}
      <input
        type="number"
        step="any"
        class="above"
        style={{ width: "7em" }}
        value={given.value}
        placeholder={typeof now === "number" ? value(now) : ""}
        onChange={(event) => say({ above: event.currentTarget.value })}
      />
    </label>
  );
}
