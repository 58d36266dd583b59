/** Which prompt is never solved? Each prompt with the share of its rollouts that solved it, and one over training. */

import { signal, type Signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Num, OneRollout as Found, PromptRow, PromptsQuery } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { amount, count, percent, value } from "../../data/numbers.ts";
import { solvedOf, type Stretches } from "../../data/rollouts.ts";
import { AskedRows, sortOf, sorts, useAsked } from "../../parts/Asked.tsx";
import type { Column } from "../../parts/Grid.tsx";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { Answered, Empty } from "../../parts/Say.tsx";
import { addressOf, say, word } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { useHands } from "../../state/hands.ts";
import { source } from "../../state/here.ts";
import { useNews } from "../../state/run.ts";
import { cellText } from "../samples/cells.ts";
import { above, Above } from "./Above.tsx";
import { PassRate } from "./PassRate.tsx";
import { PromptCell } from "./SharedPrompts.tsx";
import { Task } from "./Task.tsx";
import { SolvedStrip } from "./SolvedStrip.tsx";

const only = word("only");
const order = word("by");
/** The prompt of the rollout that is open. */
const task = signal("");
const ONLY = ["never", "sometimes", "always"] as const;
const number = (cell: Num): string => (typeof cell === "number" ? value(cell) : "–");

const BOXES = "a box: a stretch of training, as full as it was solved; none: not tried";
const HEADS: [id: string, head: string, width: string, wide: boolean][] = [
  ["prompt", "prompt", "minmax(120px, 3fr)", false],
  ["strip", "over training", "112px", false],
  ["rollouts", "attempts", "60px", true],
  ["rate", "solved (95 %)", "124px", false],
  ["recent_rate", "last fifth", "118px", true],
  ["first", "", "64px", true],
  ["best", "best reward", "76px", true],
];

/** A share with its interval; never and always stand as words. */
function Share({ of, low, high, n, name }: { of: Num; low: Num; high: Num; n: [number, number]; name?: string }) {
  if (typeof of !== "number") return <span class="soft">–</span>;
  return (
    <span title={`${count(n[0])} of ${count(n[1])}`}>
      {name === "never" ? <b class="bad">never</b> : name === "always" ? <b class="good">always</b> : percent(of)}
      <span class="soft">
        {" "}
        {percent(Number(low)).replace(" %", "")}–{percent(Number(high))}
      </span>
    </span>
  );
}

export function Prompts({ run, row, first }: { run: string; row: string; first: Signal<string> }) {
  const news = useNews(run, ["rollouts", "fates"], 10_000);
  const filter = ONLY.find((name) => name === only.value);
  const asked = useAsked({
    what: "prompt",
    query: { ...(filter ? { only: filter } : {}), ...above.value, sort: sortOf(order.value) },
    news,
    ask: (query: PromptsQuery, signal) => source.prompts(run, query, signal),
    id: (one: PromptRow) => one.id,
    open: (one) => {
      task.value = one.id;
      say({ row: one.example }, row === "");
    },
  });
  const { answer } = asked;
  const [read, setRead] = useState<string | null>(null);
  const { top } = asked;
  first.value = top?.example ?? "";
  const x = answer?.x === "policy_version" ? "version" : "update";
  const since = answer?.recent_from ?? null;
  const where: Stretches = { begin: answer?.begin ?? 0, width: answer?.width ?? 1, x };
  const opened = row === "" ? top?.id : task.value;
  useHands(() => [
    { keys: ["w"], what: "go through its training", act: () => document.getElementById("strip")?.focus() },
  ]);
  const columns = useMemo<Column<PromptRow>[]>(
    () =>
      HEADS.map(([id, head, width, wide]) => {
        return {
          id,
          head: id === "first" ? `${x}s` : id === "strip" ? <span title={BOXES}>{head}</span> : head,
          width,
          wide,
          number: id !== "prompt" && id !== "strip",
          ...(id === "prompt" || id === "strip" ? {} : sorts(order.value, id, "by")),
          cell: (one) => {
            if (id === "strip")
              return <SolvedStrip row={one} where={where} run={run} chosen={one.id === opened} read={setRead} />;
            if (id === "prompt") return <PromptCell text={one.prompt ?? one.id} />;
            if (id === "rate")
              return (
                <Share
                  of={one.rate}
                  low={one.low}
                  high={one.high}
                  n={[one.solved, one.rollouts]}
                  name={solvedOf(one)}
                />
              );
            if (id === "recent_rate") {
              const n: [number, number] = [one.recent_solved, one.recent_rollouts];
              return <Share of={one.recent_rate} low={one.recent_low} high={one.recent_high} n={n} />;
            }
            if (id === "first") {
              const last = one.last ?? one.first;
              return one.first === null
                ? "–"
                : `${count(one.first)}${last === one.first ? "" : `–${count(last ?? 0)}`}`;
            }
            if (id === "best") return number(one.best);
            return <span title={amount(one.groups, "group")}>{count(one.rollouts)}</span>;
          },
        };
      }),
    [order.value, x, where.begin, where.width, opened],
  );
  return (
    <section class="pane" aria-label="Prompts">
      <div class="bar">
        <span class="seg" role="group" aria-label="Which prompts">
          {(["", ...ONLY] as const).map((name) => (
            <button key={name} type="button" aria-pressed={only.value === name} onClick={() => say({ only: name })}>
              {name === "" ? "all" : name} {answer && count(name === "" ? answer.all : answer[name])}
            </button>
          ))}
        </span>
        <span class="soft">
          <Above now={answer?.above ?? null} />
          {since !== null && `; last fifth: from ${x} ${count(since)}`}
        </span>
      </div>
      <AskedRows
        asked={asked}
        what="prompts"
        columns={columns}
        id={({ id }) => id}
        chosen={opened}
        none={<Empty title={answer?.all === 0 ? "No rollout names its prompt" : `No prompt is ${only.value} solved`} />}
      >
        {read ?? (
          <>
            <kbd>j</kbd> <kbd>k</kbd> prompt <kbd>w</kbd> over training <kbd>?</kbd> all keys
          </>
        )}
      </AskedRows>
    </section>
  );
}

/** The prompt of a rollout over training, its text, and its best attempts. */
export function OnePrompt({ run, id }: { run: string; id: string }) {
  const news = useNews(run, ["rollouts", "fates"], 10_000);
  const rollout = useAnswer(`${run} ${id} ${news}`, () => source.rollout(run, id));
  const named = rollout.value?.cells["task_id"];
  useEffect(() => {
    if (typeof named === "string") task.value = named;
  }, [named]);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="The prompt">
      <Answered of={rollout} what="the prompt">
        {(found) => <OverTraining run={run} found={found} />}
      </Answered>
    </div>
  );
}

function OverTraining({ run, found }: { run: string; found: Found }) {
  const best = useAnswer(`${run} ${found.id} best`, () =>
    source.rollouts(run, { task: found.id, limit: 5, sort: [{ column: "reward", descending: true }] }),
  );
  const solved = found.history.reduce((sum, point) => sum + point.solved, 0);
  const all = found.history.reduce((sum, { n }) => sum + n, 0);
  const link = (row: string): string => addressOf("rollouts", { run, tab: "", of: `task:${found.id}`, row });
  return (
    <>
      <div class="bar">
        <h2>
          {solved === 0
            ? `Never solved in ${amount(all, "attempt")}`
            : `Solved in ${count(solved)} of ${amount(all, "attempt")}`}
        </h2>
        <span class="grow" />
        <a class="btn" href={link(found.id)}>
          Its rollouts
        </a>
      </div>
      <div class="cols one">
        {found.history.some(({ version }) => version !== null) && (
          <PassRate history={found.history} version={undefined} title="Over training" />
        )}
      </div>
      <div class="talk">
        <Task found={found} open />
      </div>
      {best.value && (
        <MiniTable
          label="Its best attempts"
          columns={[
            { id: "item", head: "best attempts" },
            { id: "reward", head: "reward", number: true },
          ]}
          rows={best.value.rows}
          cell={({ id, cells }, column) =>
            column === "reward" ? (
              number(cells["reward"] as Num)
            ) : (
              <a class="prompt-cell" href={link(id)}>
                {shown(cellText(cells["item"] ?? cells["error"]))}
              </a>
            )
          }
        />
      )}
    </>
  );
}
