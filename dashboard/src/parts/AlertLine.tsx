import type { Alert } from "../api/names.ts";
import { clock, sentence } from "../data/numbers.ts";
import { Icon } from "./Icon.tsx";

/** An alert as one box: what it says, when, by which rule. */
export function AlertLine({ alert, href }: { alert: Alert; href?: string }) {
  return (
    <div class={`alert${alert.level === "fail" ? " bad" : alert.level === "note" ? " note" : ""}`}>
      <Icon name="flag" />
      <div>
        <b>{sentence(alert.message)}</b>{" "}
        <span class="soft">
          {alert.rule}, {clock(alert.time)}
        </span>{" "}
        {href !== undefined && <a href={href}>Evidence</a>}
      </div>
    </div>
  );
}
