/** Below the table of runs: how many there are, what their numbers are, which keys move. */

import { count, plain } from "../../data/numbers.ts";
import { lazy } from "../../parts/lazy.tsx";
import { say } from "../../state/address.ts";
import { entities, isBehind, orderWaits, table, valueColors } from "./table.ts";
import * as view from "./view.ts";

const Unreadable = lazy(() => import("./later.ts").then((m) => m.Unreadable));
const MOST = 12; // colours

export function Foot() {
  const {
    matched = 0,
    runs: all = 0,
    archived = 0,
    unreadable_total: unreadable = 0,
    pending = 0,
  } = table.answer.value ?? {};
  const hasGroups = entities.value.some(({ runs }) => runs.length > 1);
  return (
    <div class="foot">
      {table.answer.value !== null && (
        <span>
          <b>{count(matched)}</b> {matched === all ? "" : `of ${count(all)} `}
          {all === 1 ? "run" : "runs"}
        </span>
      )}
      {isBehind.value && (
        <span class="late" role="status">
          looking for what was asked…
        </span>
      )}
      {pending > 0 && (
        <span class="late" role="status">
          {count(pending)} numbers still to be read
        </span>
      )}
      {unreadable > 0 && <Unreadable />}
      {orderWaits.value && <span>new order waits until the pointer leaves</span>}
      {archived > 0 && (
        <button class="link" type="button" onClick={() => say({ archived: view.archived.value === "1" ? "" : "1" })}>
          {view.archived.value === "1" ? "hide" : "show"} {count(archived)} archived
        </button>
      )}
      {valueColors.value && (
        <span class="values" aria-label={`Colours by ${view.short(view.colorBy.value)}`} role="img">
          {[...valueColors.value].slice(0, MOST).map(([text, color]) => (
            <span key={text}>
              <i class={`dot s${color}`} /> {plain(JSON.parse(text))}
            </span>
          ))}
        </span>
      )}
      {hasGroups && valueColors.value === null && (
        <span class="hide-s">groups: IQM of last values, ± half of its 95 % interval</span>
      )}
      <span class="grow" />
      {!hasGroups && (
        <span class="hide-s hide-m">
          <kbd>j</kbd> <kbd>k</kbd> move <kbd>Space</kbd> show <kbd>Enter</kbd> open
        </span>
      )}
    </div>
  );
}
