/** One turn: who spoke, whether it was trained on, its text, its tool calls folded, its tokens coloured. */

import type { RolloutTurn } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { amount, count, seconds, value } from "../../data/numbers.ts";
import { callsOf, headOf } from "../../data/rollouts.ts";
import { maskedIn } from "./FateLine.tsx";
import { TokenStrip, type Scale } from "./TokenStrip.tsx";

/** Ways to end that say nothing. */
const USUAL = ["stop", "eos", "end_turn", "tool_calls", "tool_call", "tool_use"];

/** Whether a result is folded to a line. */
export const folds = ({ role, text }: RolloutTurn): boolean =>
  role === "tool" && text !== null && (text.length > 300 || text.split("\n", 4).length > 3);

export function Turn({
  turn,
  dropped,
  heat,
  scale,
  open,
  now,
  place,
  onRead,
}: {
  turn: RolloutTurn;
  /** Whether the rollout was dropped: no turn of it was trained on then. */
  dropped: boolean;
  heat: string;
  scale: Scale;
  open: boolean;
  now: boolean;
  place: number;
  /** A token is under the cursor, or none any more. */
  onRead: (at: { turn: number; i: number } | null) => void;
}) {
  const text = shown(turn.text ?? "");
  const strip = heat === "" || !turn.tokens?.columns[heat] ? null : turn.tokens;
  const isSaid = strip !== null && strip.texts.length > 0 && strip.texts.length === turn.n_tokens; // by its tokens
  const trained = turn.trained === true && !dropped;
  const isTool = turn.role === "tool";
  const left = trained ? maskedIn(turn) : 0;
  const facts = [
    typeof turn.seconds === "number" ? seconds(turn.seconds) : null,
    turn.n_tokens === null
      ? turn.trained === null
        ? null
        : trained
          ? "trained"
          : "not trained"
      : trained && left < turn.n_tokens
        ? `${count(left)} of ${amount(turn.n_tokens, "token")} trained`
        : `${amount(turn.n_tokens, "token")}${turn.trained === null ? "" : trained ? ", trained" : ", not trained"}`,
    turn.parent === null ? null : `after turn ${turn.parent}`,
    typeof turn.reward === "number" ? `reward ${value(turn.reward)}` : null,
    turn.finish_reason === null || USUAL.includes(turn.finish_reason) ? null : `ended by ${shown(turn.finish_reason)}`,
  ].filter((fact) => fact !== null);
  return (
    <div id={`turn-${place}`} class={`turn${trained ? " trained" : ""}${isTool ? " tool" : ""}${now ? " now" : ""}`}>
      <span class="nr">{turn.turn}</span>
      <div>
        <b>{shown(turn.role)}</b> {turn.name !== null && <span class="mono">{shown(turn.name)}</span>}{" "}
        <span class="soft">{facts.join(" · ")}</span>
        {turn.error !== null && <div class="bad">{shown(turn.error)}</div>}
        {isSaid || text === "" ? null : folds(turn) ? (
          <Folded
            head={headOf(text).slice(0, 200)}
            more={turn.length === null ? amount(text.split("\n").length, "line") : ""}
            text={text}
            open={open || turn.error !== null}
          />
        ) : (
          <pre dir="auto">{text}</pre>
        )}
        {strip && (
          <TokenStrip
            tokens={strip}
            by={heat}
            turn={turn.turn}
            scale={scale}
            onRead={(i) => onRead(i === null ? null : { turn: place, i })}
          />
        )}
        {turn.trimmed && <p class="soft">Its text was dropped by retention.</p>}
        {turn.tokens_trimmed && <p class="soft">Its token lists were dropped by retention.</p>}
        {turn.length !== null && <p class="soft">The first part of {amount(turn.length, "sign")}.</p>}
        {turn.calls !== null && (
          <Folded head={shown(callsOf(turn.calls))} text={shown(pretty(turn.calls))} open={open} />
        )}
      </div>
    </div>
  );
}

/** A text behind its line; a tall one scrolls in itself. */
export function Folded({ head, more, text, open }: { head: string; more?: string; text: string; open: boolean }) {
  return (
    <details open={open} class="calls">
      <summary>
        <span class="clip">{head}</span> {more && <span class="soft">{more}</span>}
      </summary>
      <pre tabIndex={0} dir="auto">
        {text}
      </pre>
    </details>
  );
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
