/** One rollout: what became of it, where its time went, the conversation, its group, and its task over training. */

import type { RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { OneRollout as Found, RolloutTurn } from "../../api/names.ts";
import { amount, count } from "../../data/numbers.ts";
import { byId } from "../../data/rollouts.ts";
import { Icon } from "../../parts/Icon.tsx";
import { Answered } from "../../parts/Say.tsx";
import { say } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { useHands } from "../../state/hands.ts";
import { source } from "../../state/here.ts";
import { FateLine } from "./FateLine.tsx";
import { Group } from "./Group.tsx";
import { StatusMark } from "./marks.tsx";
import { besideWord, heatWord, openRollout, turnWord, wideWord } from "./opened.ts";
import { PassRate } from "./PassRate.tsx";
import { LONG_TASK, messagesOf, Task } from "./Task.tsx";
import { Times } from "./Times.tsx";
import { Readout, ScaleLegend, scaleOf } from "./TokenStrip.tsx";
import { folds, Turn } from "./Turn.tsx";

const HEATS = ["gap", "entropy", "advantage", "sampler", "trainer"];

/** A key that was pressed before the group of the rollout was known, and the rollout that it was pressed for. */
type Waiting = RefObject<{ id: string; act: (ids: readonly string[]) => void } | null>;

export function OneRollout({ run, id }: { run: string; id: string }) {
  const rollout = useAnswer(`${run} ${id}`, () => source.rollout(run, id));
  const waiting: Waiting = useRef(null);
  return (
    <Answered of={rollout} what="the rollout">
      {(found) => <Whole key={found.id} run={run} found={found} id={id} waiting={waiting} />}
    </Answered>
  );
}

/** `id`: the rollout that the address names; until it is there, `found` is the one before it. */
function Whole({ run, found, id, waiting }: { run: string; found: Found; id: string; waiting: Waiting }) {
  const { turns } = found;
  const names = HEATS.filter((name) => turns.some(({ tokens }) => tokens?.columns[name] !== undefined));
  const heat = heatWord.value === "off" ? "" : names.includes(heatWord.value) ? heatWord.value : (names[0] ?? "");
  const at = turnWord.value === "" ? -1 : Math.min(turns.length - 1, Number(turnWord.value));
  const [unfolded, setUnfolded] = useState(false);
  const [read, setRead] = useState<{ turn: number; i: number } | null>(null);
  const scale = useMemo(() => scaleOf(turns, heat), [turns, heat]);
  const group = useAnswer(`${run} ${found.id} group`, () => source.rollouts(run, { group: found.id, limit: 64 }));
  const rows = group.value?.rows ?? [];
  const ids = rows.map((row) => row.id).sort(byId);
  const beside = found.id === id ? besideWord.value : ""; // it is said of the rollout that comes
  const setAt = (turn: number): void => say({ turn: `${turn}` });
  const setHeat = (name: string): void => say({ heat: name === "" ? "off" : name });
  const step = (by: number): void => setAt(Math.max(0, Math.min(turns.length - 1, at + by)));
  const errors = turns.flatMap(({ error }, i) => (error === null ? [] : [i]));
  /** Acts on the group of the rollout that the address names: now, or when that group is there. */
  const withGroup = (act: (ids: readonly string[]) => void): void => {
    if (ids.includes(id)) act(ids);
    else waiting.current = { id, act };
  };
  useEffect(() => {
    const late = waiting.current;
    if (late === null || (late.id === id && !ids.includes(id))) return;
    waiting.current = null;
    if (late.id === id) late.act(ids);
  }, [id, group.value]);
  const sibling = (by: number): void =>
    withGroup((ids) => {
      const next = ids.at((ids.indexOf(id) + by) % ids.length); // the last is followed by the first
      if (next) openRollout(next);
    });
  const foldable =
    turns.some((turn) => folds(turn) || turn.calls !== null) ||
    messagesOf(found).some(({ text }) => text.length > LONG_TASK);
  useEffect(() => {
    if (at >= 0) document.getElementById(`turn-${at}`)?.scrollIntoView({ block: "nearest" });
  }, [at]);
  /** Until the rollout that the address names is there, keys are not for the one before it. */
  const isThere = (): boolean => found.id === id;
  useHands(() => [
    { keys: ["n"], what: "next turn", act: () => step(1), when: isThere },
    { keys: ["p"], what: "previous turn", act: () => step(-1), when: isThere },
    {
      keys: ["e"],
      what: "next error of a tool",
      act: () => setAt(errors.find((i) => i > at) ?? (errors[0] as number)),
      when: () => isThere() && errors.length > 0,
    },
    {
      keys: ["o"],
      what: "unfold or fold all turns",
      act: () => setUnfolded((was) => !was),
      when: () => foldable,
    },
    {
      keys: ["h"],
      what: "colour tokens by the next number",
      act: () => setHeat(["", ...names][(names.indexOf(heat) + 2) % (names.length + 1)] ?? ""),
    },
    { keys: ["t"], what: "to the tokens of the turn; ← → read them", act: () => tokensOf(at), when: isThere },
    { keys: ["["], what: "previous of the group", act: () => sibling(-1) },
    { keys: ["]"], what: "next of the group", act: () => sibling(1) },
    {
      keys: ["d"],
      what: "difference with the next of the group",
      act: () =>
        withGroup((ids) => {
          const other = ids[(ids.indexOf(besideWord.peek() || id) + 1) % ids.length] ?? "";
          say({ diff: other === id ? "" : other });
        }),
    },
    {
      keys: ["Enter"],
      what: "the rollout in the whole window",
      act: () => say({ open: "1" }, true),
      when: () => wideWord.value === "",
    },
  ]);
  const isWide = wideWord.value !== "";
  const reading = read ?? scale.far;
  const readTokens = reading && turns[reading.turn]?.tokens;
  return (
    <>
      <div class="bar">
        <h2 class="mono clip">{found.id}</h2>
        <StatusMark status={String(found.cells["status"] ?? "")} />
        <span class="grow" />
        {ids.length > 1 && (
          <>
            <span class="soft place-in">
              {ids.indexOf(found.id) + 1} of {ids.length}
            </span>
            <span class="seg" role="group" aria-label="Through its group">
              <button type="button" aria-label="Previous of the group ([)" onClick={() => sibling(-1)}>
                <Icon name="left" />
              </button>
              <button type="button" aria-label="Next of the group (])" onClick={() => sibling(1)}>
                <Icon name="right" />
              </button>
            </span>
          </>
        )}
        <button class="btn hide-s" type="button" onClick={() => say({ open: isWide ? "" : "1" }, !isWide)}>
          {isWide ? "Back" : "Open"} <kbd>{isWide ? "Esc" : "Enter"}</kbd>
        </button>
      </div>
      <div class="scroll onerollout" tabIndex={0} role="region" aria-label="The rollout">
        <FateLine run={run} found={found} group={rows} />
        <div class="talkpart">
          <Times found={found} onPick={setAt} />
          {(names.length > 0 || foldable) && (
            <div class="bar heatbar">
              {names.length > 0 && (
                <>
                  <span class="soft heatname">Tokens by</span>
                  <span class="seg" role="group" aria-label="Tokens coloured by">
                    {[...names, ""].map((name) => (
                      <button key={name} type="button" aria-pressed={heat === name} onClick={() => setHeat(name)}>
                        {name === "" ? "off" : name}
                      </button>
                    ))}
                  </span>
                  {heat !== "" && <ScaleLegend scale={scale} by={heat} />}
                </>
              )}
              <span class="grow" />
              {foldable && (
                <button class="btn" type="button" onClick={() => setUnfolded(!unfolded)}>
                  {unfolded ? "Fold all" : "Unfold all"} <kbd class="hide-s">o</kbd>
                </button>
              )}
            </div>
          )}
          {heat !== "" && turns.every(({ tokens }) => !tokens || tokens.texts.length === 0) && (
            <p class="soft idsalone">
              ids alone; <code>turn(…, token_texts=[…])</code> gives their text
            </p>
          )}
          <div class="talk">
            {found.odd_lists.map((said) => (
              <p key={said} class="bad" role="note">
                {said}
              </p>
            ))}
            <Task found={found} open={unfolded} />
            {turns.map((turn, i) => (
              <>
                <NewWeights key={`weights ${turn.turn}`} turns={turns} i={i} />
                <Turn
                  key={turn.turn}
                  turn={turn}
                  dropped={found.cells["used"] === false}
                  heat={heat}
                  scale={scale}
                  open={unfolded}
                  now={i === at}
                  place={i}
                  onRead={setRead}
                />
              </>
            ))}
            {found.turns_left_out > 0 && (
              <p class="soft">Not shown here: {amount(found.turns_left_out, "more turn")}.</p>
            )}
          </div>
        </div>
        <div class="cols one">
          {rows.length > 1 && (
            <Group run={run} rows={rows} own={found} beside={beside} onBeside={(id) => say({ diff: id })} />
          )}
          {found.history.length > 1 && <PassRate history={found.history} version={found.cells["policy_version"]} />}
        </div>
      </div>
      <div class="foot">
        {readTokens && heat !== "" && (
          <Readout
            tokens={readTokens}
            i={reading.i}
            note={read === null ? `farthest ${heat}, turn ${turns[reading.turn]?.turn}, ` : ""}
          />
        )}
        <span class="grow" />
        <span class="hide-s keysfoot">
          <kbd>n</kbd> <kbd>p</kbd> turn{" "}
          {errors.length > 0 && (
            <>
              <kbd>e</kbd> error{" "}
            </>
          )}
          <kbd>h</kbd> heat{" "}
          {isWide && (
            <>
              <kbd>[</kbd> <kbd>]</kbd> sibling <kbd>d</kbd> diff
            </>
          )}
        </span>
      </div>
    </>
  );
}

/** A line where a turn was generated by other weights than what was generated before. */
function NewWeights({ turns, i }: { turns: readonly RolloutTurn[]; i: number }) {
  if (turns[i]?.role !== "assistant") return null;
  const own = turns
    .slice(0, i + 1)
    .flatMap(({ role, policy_version }) => (role === "assistant" ? [policy_version] : []));
  const [before = null, now = null] = own.slice(-2);
  if (now === null || before === null || now === before) return null;
  return (
    <p class="newweights">
      new weights: version {count(before)} → {count(now)}
    </p>
  );
}

/** Focuses the tokens of a turn, or of the first that has some. */
function tokensOf(turn: number): void {
  const within = document.getElementById(`turn-${turn}`) ?? document.querySelector(".talk");
  (within?.querySelector<HTMLElement>(".heatstrip") ?? document.querySelector<HTMLElement>(".heatstrip"))?.focus();
}
