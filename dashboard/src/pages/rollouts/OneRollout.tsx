/** One rollout: what became of it, where its time went, the conversation, its group, and its task over training. */

import { useEffect, useState } from "preact/hooks";
import type { Num, OneRollout as Found } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { amount, count, percent, seconds, value } from "../../data/numbers.ts";
import { fateOf } from "../../data/rollouts.ts";
import { Icon } from "../../parts/Icon.tsx";
import { Answered } from "../../parts/Say.tsx";
import { say } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { useHands } from "../../state/hands.ts";
import { source } from "../../state/here.ts";
import { Group } from "./Group.tsx";
import { PassRate } from "./PassRate.tsx";
import { Turn } from "./Turn.tsx";

const HEATS = ["gap", "entropy", "advantage", "sampler", "trainer", "mask"];

export function OneRollout({ run, id }: { run: string; id: string }) {
  const rollout = useAnswer(`${run} ${id}`, () => source.rollout(run, id));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="The rollout">
      <Answered of={rollout} what="the rollout">
        {(found) => <Whole key={found.id} run={run} found={found} />}
      </Answered>
    </div>
  );
}

function Whole({ run, found }: { run: string; found: Found }) {
  const names = HEATS.filter((name) => found.turns.some(({ tokens }) => tokens?.columns[name] !== undefined));
  const [heat, setHeat] = useState(names[0] ?? "");
  const [unfolded, setUnfolded] = useState(false);
  const [at, setAt] = useState(-1);
  const [beside, setBeside] = useState("");
  const group = useAnswer(`${run} ${found.id} group`, () => source.rollouts(run, { group: found.id, limit: 64 }));
  const step = (by: number): void => setAt((now) => Math.max(0, Math.min(found.turns.length - 1, now + by)));
  const ids = group.value?.rows.map((row) => row.id).sort() ?? [];
  const sibling = (by: number): void => {
    const next = ids.at((ids.indexOf(found.id) + by) % ids.length); // the last is followed by the first
    if (next) say({ row: next });
  };
  useEffect(() => {
    if (at >= 0) document.getElementById(`turn-${at}`)?.scrollIntoView({ block: "nearest" });
  }, [at]);
  useHands(() => [
    { keys: ["n"], what: "next turn", act: () => step(1) },
    { keys: ["p"], what: "previous turn", act: () => step(-1) },
    { keys: ["o"], what: "unfold or fold all turns", act: () => setUnfolded((was) => !was) },
    {
      keys: ["h"],
      what: "colour tokens by the next number",
      act: () => setHeat((now) => ["", ...names][(names.indexOf(now) + 2) % (names.length + 1)] ?? ""),
    },
    { keys: ["t"], what: "to the tokens of the turn; ← → read them", act: () => tokensOf(at) },
    { keys: ["["], what: "previous of the group", act: () => sibling(-1) },
    { keys: ["]"], what: "next of the group", act: () => sibling(1) },
    {
      keys: ["d"],
      what: "difference with the next of the group",
      act: () => setBeside((now) => ids[(ids.indexOf(now === "" ? found.id : now) + 1) % ids.length] ?? ""),
    },
  ]);
  return (
    <>
      <div class="bar">
        <h2 class="mono clip">{found.id}</h2>
        <span class="tag">{shown(String(found.cells["status"] ?? ""))}</span>
        {typeof found.cells["stop_reason"] === "string" && (
          <span class="tag hide-s">stop: {shown(found.cells["stop_reason"])}</span>
        )}
        <span class="grow" />
        {ids.length > 1 && (
          <span class="seg" role="group" aria-label="Through its group">
            <button type="button" aria-label="Previous of the group ([)" onClick={() => sibling(-1)}>
              <Icon name="left" />
            </button>
            <button type="button" aria-label="Next of the group (])" onClick={() => sibling(1)}>
              <Icon name="right" />
            </button>
          </span>
        )}
        {ids.length > 1 && (
          <span class="soft place-in">
            {ids.indexOf(found.id) + 1} of {ids.length}
          </span>
        )}
        <button class="btn" type="button" onClick={() => say({ of: `task:${found.id}`, row: found.id })}>
          Its task
        </button>
        <button class="btn" type="button" onClick={() => say({ of: `group:${found.id}`, row: found.id })}>
          Its group
        </button>
      </div>
      <Fate found={found} />
      <Times found={found} onPick={setAt} />
      <div class="bar">
        {names.length > 0 && (
          <>
            <span class="soft">Tokens by</span>
            <span class="seg" role="group" aria-label="Tokens coloured by">
              {[...names, ""].map((name) => (
                <button key={name} type="button" aria-pressed={heat === name} onClick={() => setHeat(name)}>
                  {name === "" ? "off" : name}
                </button>
              ))}
            </span>
            {heat !== "" && found.turns.every(({ tokens }) => !tokens || tokens.texts.length === 0) && (
              <span class="soft hide-s">
                ids alone; <code>turn(…, token_texts=[…])</code> gives their text
              </span>
            )}
          </>
        )}
        <span class="grow" />
        <button class="btn" type="button" onClick={() => setUnfolded(!unfolded)}>
          {unfolded ? "Fold all" : "Unfold all"} <kbd class="hide-s">o</kbd>
        </button>
      </div>
      <div class="talk">
        {found.odd_lists.map((said) => (
          <p key={said} class="bad" role="note">
            {said}
          </p>
        ))}
        <Task found={found} open={unfolded} />
        {found.turns.map((turn, i) => (
          <Turn
            key={turn.turn}
            turn={turn}
            dropped={found.cells["used"] === false}
            heat={heat}
            open={unfolded}
            now={i === at}
            place={i}
          />
        ))}
        {found.turns_left_out > 0 && <p class="soft">Not shown here: {amount(found.turns_left_out, "more turn")}.</p>}
      </div>
      <div class="cols one">
        {group.value && group.value.rows.length > 1 && (
          <Group run={run} rows={group.value.rows} own={found} beside={beside} onBeside={setBeside} />
        )}
        {found.history.length > 1 && <PassRate history={found.history} version={found.cells["policy_version"]} />}
      </div>
    </>
  );
}

/** Focuses the tokens of a turn, or of the first that has some. */
function tokensOf(turn: number): void {
  const within = document.getElementById(`turn-${turn}`) ?? document.querySelector(".talk");
  (within?.querySelector<HTMLElement>(".heatstrip") ?? document.querySelector<HTMLElement>(".heatstrip"))?.focus();
}

function Fate({ found }: { found: Found }) {
  const { cells } = found;
  const number = (name: string): number | null => (typeof cells[name] === "number" ? cells[name] : null);
  const said = fateOf(cells);
  const parts = [
    number("reward") === null ? null : `reward ${value(number("reward"))}`,
    number("advantage") === null ? null : `advantage ${value(number("advantage"))}`,
    number("staleness") === null ? null : `${amount(number("staleness") ?? 0, "version")} stale`,
    number("clipped") === null ? null : `clipped ${percent(number("clipped") ?? 0)}`,
    number("gap_mean") === null ? null : `gap ${value(number("gap_mean"))}`,
    found.fates.length > 1 ? `${found.fates.length} uses` : null,
  ].filter((part) => part !== null);
  const step = number("gradient_step");
  return (
    <p class="fate">
      <b>{said === "used" ? "Used" : cells["used"] === true ? `Used, taught nothing: ${said}` : said}</b>
      {cells["used"] != null && step !== null ? ` at update ${count(step)}` : ""}
      <span class="soft"> · {parts.join(" · ")}</span>
      {typeof cells["error"] === "string" && <span class="bad"> {shown(cells["error"])}</span>}
    </p>
  );
}

/** The colours of a rollout's time. */
const KINDS: [color: number, name: string][] = [
  [10, "queue"],
  [1, "model"],
  [2, "tools"],
  [3, "reward"],
];

function Times({ found, onPick }: { found: Found; onPick: (turn: number) => void }) {
  const of = (x: Num): number => (typeof x === "number" && x > 0 ? x : 0);
  const own = found.turns.map((turn, i) => ({
    key: `${turn.turn}`,
    i,
    seconds: of(turn.seconds),
    color: turn.role === "tool" ? 2 : 1,
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
            class={part.bad ? "err" : ""}
            title={`${part.name}: ${seconds(part.seconds)}`}
            style={{ width: `${(part.seconds / total) * 100}%`, background: `var(--series-${part.color})` }}
            onClick={() => part.i >= 0 && onPick(part.i)}
          />
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

interface Message {
  role?: unknown;
  content?: unknown;
}

export function Task({ found, open }: { found: Found; open: boolean }) {
  let messages: Message[] = [];
  try {
    const read: unknown = found.messages === null ? null : JSON.parse(found.messages);
    if (Array.isArray(read)) messages = read as Message[];
  } catch {
    messages = [];
  }
  if (messages.length === 0 && typeof found.prompt === "string") messages = [{ role: "task", content: found.prompt }];
  return (
    <>
      {messages.map(({ role, content }, i) => {
        const text = shown(typeof content === "string" ? content : JSON.stringify(content));
        return (
          <div key={i} class="turn">
            <span class="nr" />
            <div>
              <b>{shown(String(role))}</b> <span class="soft">not trained</span>
              {text.length > 400 && !open ? (
                <details>
                  <summary>{text.slice(0, 160)}</summary>
                  <pre>{text}</pre>
                </details>
              ) : (
                <pre>{text}</pre>
              )}
            </div>
          </div>
        );
      })}
    </>
  );
}
