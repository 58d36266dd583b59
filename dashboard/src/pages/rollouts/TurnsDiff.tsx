/** Where two rollouts part: all their turns, word by word; those that are the same in a line. */

import { amount } from "../../data/numbers.ts";
import type { OneRollout as Found, RolloutTurn } from "../../api/names.ts";
import { diff, shown } from "../../data/diff.ts";
import { callsOf, turnsApart } from "../../data/rollouts.ts";
import { Answered } from "../../parts/Say.tsx";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";

/** Of turns that differ; each takes a table of its words. */
const MOST = 40;

const textOf = (turn: RolloutTurn | undefined): string =>
  turn === undefined
    ? ""
    : shown([turn.text, turn.calls && callsOf(turn.calls), turn.error].filter(Boolean).join("\n"));

export function TurnsDiff({ run, own, other, names }: { run: string; own: Found; other: string; names: string }) {
  const answer = useAnswer(`${run} ${other}`, () => source.rollout(run, other), false);
  return (
    <Answered of={answer} what="the other rollout">
      {(found) => <Both own={own} found={found} names={names} />}
    </Answered>
  );
}

function Both({ own, found, names }: { own: Found; found: Found; names: string }) {
  const parts = turnsApart(own.turns.map(textOf), found.turns.map(textOf));
  const apart = parts.filter(({ same }) => !same);
  return (
    <div class="in turnsdiff" role="region" tabIndex={0} aria-label={`Difference, ${names}`}>
      <p class="soft difftext">
        <b>{names}</b> · {apart[0] ? `parted in turn ${apart[0].from}` : "all turns are the same"} ·{" "}
        <del>only in this</del> <ins>only in the other</ins>
      </p>
      {parts.map(({ from, to, same }) =>
        same ? (
          <p key={from} class="soft">
            {from === to ? `turn ${from}` : `turns ${from} to ${to}`}: the same
          </p>
        ) : apart.findIndex((one) => one.from === from) >= MOST ? null : (
          <div key={from}>
            <span class="soft">
              turn {from}, {shown((own.turns[from] ?? found.turns[from])?.role ?? "")}
            </span>
            <p class="difftext">
              {diff(textOf(own.turns[from]), textOf(found.turns[from])).map(({ kind, text }, i) =>
                kind === "same" ? (
                  <span key={i}>{text}</span>
                ) : kind === "only a" ? (
                  <del key={i}>{text}</del>
                ) : (
                  <ins key={i}>{text}</ins>
                ),
              )}
            </p>
          </div>
        ),
      )}
      {apart.length > MOST && <p class="soft">{amount(apart.length - MOST, "more turn")} with a difference.</p>}
    </div>
  );
}
