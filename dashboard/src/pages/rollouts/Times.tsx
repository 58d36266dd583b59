/** Where the time of a rollout went: a bar, part by part, that leads to its turns. */

import type { Num, OneRollout as Found } from "../../api/names.ts";
import { seconds } from "../../data/numbers.ts";

/** The colours of a rollout's time. */
const KINDS: [color: number, name: string][] = [
  [10, "queue"],
  [5, "model"],
  [2, "tools"],
  [3, "reward"],
];
/** A part with less of the bar has no room for its number. */
const NAMED = 0.03;

export function Times({ found, onPick }: { found: Found; onPick: (turn: number) => void }) {
  const of = (x: Num): number => (typeof x === "number" && x > 0 ? x : 0);
  const own = found.turns.map((turn, i) => ({
    key: `${turn.turn}`,
    i,
    seconds: of(turn.seconds),
    color: turn.role === "tool" ? 2 : 5,
    bad: turn.error !== null,
    name: `turn ${turn.turn}, ${turn.name ?? turn.role}`,
  }));
  const rest = (["queue", "reward"] as const).map((name, n) => ({
    key: name,
    i: -1,
    seconds: of(found.cells[`seconds/${name}`] as Num),
    color: n === 0 ? 10 : 3,
    bad: false,
    name,
  }));
  const all = [...rest.slice(0, 1), ...own, ...rest.slice(1)].filter((part) => part.seconds > 0);
  const total = all.reduce((sum, part) => sum + part.seconds, 0);
  if (total === 0) return null;
  const kinds = KINDS.map(([color, name]) => ({
    color,
    name,
    seconds: all.reduce((sum, part) => sum + (part.color === color ? part.seconds : 0), 0),
  }));
  return (
    <>
      <div class="timebar" role="img" aria-label={`${seconds(total)} in all`}>
        {all.map((part) => (
          <i
            key={part.key}
            class={`s${part.color}${part.bad ? " err" : ""}${part.i >= 0 ? " turnpart" : ""}`}
            title={`${part.name}: ${seconds(part.seconds)}`}
            style={{ width: `${(part.seconds / total) * 100}%` }}
            onClick={() => part.i >= 0 && onPick(part.i)}
          >
            {part.i >= 0 && part.seconds / total > NAMED ? part.key : ""}
          </i>
        ))}
      </div>
      <p class="legend small times">
        {kinds
          .filter((kind) => kind.seconds > 0)
          .map((kind) => (
            <span key={kind.name}>
              <i class={`dot s${kind.color}`} /> {kind.name} <b>{seconds(kind.seconds)}</b>
            </span>
          ))}
        <span class="soft">{seconds(total)} in all</span>
      </p>
    </>
  );
}
