/** One turn: who spoke, whether it was trained on, its text, its tool calls folded, its tokens coloured. */

import type { RolloutTurn } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { amount, count, seconds, value } from "../../data/numbers.ts";
import { callsOf } from "../../data/rollouts.ts";
import { TokenStrip } from "./TokenStrip.tsx";

export function Turn({
  turn,
  dropped,
  heat,
  open,
  now,
  place,
}: {
  turn: RolloutTurn;
  /** Whether the rollout was dropped: no turn of it was trained on then. */
  dropped: boolean;
  heat: string;
  open: boolean;
  now: boolean;
  place: number;
}) {
  const text = shown(turn.text ?? "");
  const strip = heat === "" || !turn.tokens?.columns[heat] ? null : turn.tokens;
  const isSaid = strip !== null && strip.texts.length > 0 && strip.texts.length === turn.n_tokens; // by its tokens
  const trained = turn.trained === true && !dropped;
  const isTool = turn.role === "tool";
  const lines = text.split("\n").length;
  const folds = isTool && (lines > 3 || text.length > 300);
  const facts = [
    typeof turn.seconds === "number" ? seconds(turn.seconds) : null,
    turn.n_tokens === null ? null : amount(turn.n_tokens, "token"),
    turn.trained === null ? null : trained ? "trained" : "not trained",
    turn.policy_version === null ? null : `version ${count(turn.policy_version)}`,
    turn.parent === null ? null : `after turn ${turn.parent}`,
    typeof turn.reward === "number" ? `reward ${value(turn.reward)}` : null,
    turn.finish_reason === null ? null : shown(turn.finish_reason),
  ].filter((fact) => fact !== null);
  return (
    <div id={`turn-${place}`} class={`turn${trained ? " trained" : ""}${isTool ? " tool" : ""}${now ? " now" : ""}`}>
      <span class="nr">{turn.turn}</span>
      <div>
        <b>{shown(turn.role)}</b> {turn.name !== null && <span class="mono">{shown(turn.name)}</span>}{" "}
        <span class="soft">{facts.join(" · ")}</span>
        {turn.error !== null && <div class="bad">{shown(turn.error)}</div>}
        {isSaid ? null : folds && !open ? (
          <details open={turn.error !== null}>
            <summary>
              {text.slice(0, 120)} <span class="soft">{amount(lines, "line")}</span>
            </summary>
            <pre>{text}</pre>
          </details>
        ) : (
          text !== "" && <pre>{text}</pre>
        )}
        {turn.trimmed && <p class="soft">Its text was dropped by retention.</p>}
        {turn.tokens_trimmed && <p class="soft">Its token lists were dropped by retention.</p>}
        {turn.length !== null && <p class="soft">cut: {count(turn.length)} in all</p>}
        {turn.calls !== null && (
          <details open={open} class="calls">
            <summary>{shown(callsOf(turn.calls))}</summary>
            <pre>{shown(pretty(turn.calls))}</pre>
          </details>
        )}
        {strip && <TokenStrip tokens={strip} by={heat} turn={turn.turn} />}
      </div>
    </div>
  );
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
