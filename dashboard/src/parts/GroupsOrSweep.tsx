import { addressOf } from "../state/address.ts";

/** The two ways to compare: chosen groups, or all configurations of a project. */
export function GroupsOrSweep({ now }: { now: "compare" | "sweep" }) {
  return (
    <nav class="seg" aria-label="Compare">
      <a href={addressOf("compare")} aria-current={now === "compare" ? "page" : undefined}>
        Groups
      </a>
      <a href={addressOf("sweep")} aria-current={now === "sweep" ? "page" : undefined}>
        Sweep
      </a>
    </nav>
  );
}
