/** What readers of a comparison should know besides, each with the control here that does something about it. */

import type { CompareAnswer, CompareNote, Num } from "../../api/names.ts";
import { place } from "../../charts/place.ts";
import { sentence, value } from "../../data/numbers.ts";
import { addressOf, say } from "../../state/address.ts";
import { kindOf } from "../../state/desk.ts";
import { source } from "../../state/here.ts";

export const nameOf = ({ kind, group, field }: CompareNote): string => [kind, group, field].join();

/** A remark, and the control of the page that does something about it. */
export function Note({ of: { kind, sentence: text, field, first }, found }: { of: CompareNote; found: CompareAnswer }) {
  return (
    <span class="tag">
      <span>
        {sentence(text)} {source.live && <Do kind={kind} field={field ?? ""} first={first ?? null} found={found} />}
      </span>
    </span>
  );
}

function Do({
  kind,
  field,
  first,
  found,
}: Required<Pick<CompareNote, "kind" | "field" | "first">> & { found: CompareAnswer }) {
  if ((kind === "ends differ" || kind === "none finished") && typeof first === "number")
    return (
      <button class="link" type="button" onClick={() => say({ step: `${first}` }, true)}>
        Score all at {place(first, kindOf(found.x))}
      </button>
    );
  if (kind === "crashed")
    return <a href={addressOf("runs", { f: "status = 'finished'", show: "" })}>Only runs that finished</a>;
  if (kind === "by environment" || kind === "environments are tasks") return null; // nothing is wrong
  const by = { "several algorithms": "algo", "of several folders": "group" }[kind] ?? field;
  if (by !== "") return <a href={addressOf("runs", { g: by, show: "" })}>Group by {by.replace(/^config\./, "")}</a>;
  if (kind === "cannot be told apart") return <a href={addressOf("runs")}>Label them</a>;
  return null;
}

/** Where most seeds have the best score that a task can give, what they differ in is the steps to it. */
export const StepsTo = ({ pair }: { pair: { best?: Num } | undefined }) =>
  typeof pair?.best === "number" && source.live ? (
    <button class="link" type="button" onClick={() => say({ score: `steps to ${pair.best}` }, true)}>
      Compare the steps to {value(pair.best)}
    </button>
  ) : null;
