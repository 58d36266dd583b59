/** Which prompt is never solved? Each prompt with the share of its rollouts that solved it, and one over training. */

import { signal, useSignal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Num, OneRollout as Found, PromptRow, PromptsAnswer, PromptsQuery } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { count, percent, seconds, value } from "../../data/numbers.ts";
import { solvedOf } from "../../data/rollouts.ts";
import { Grid, type Column } from "../../parts/Grid.tsx";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { Answered, Empty, Failure, Waiting } from "../../parts/Say.tsx";
import { addressOf, say, word } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { useHands } from "../../state/hands.ts";
import { source } from "../../state/here.ts";
import { useNews } from "../../state/run.ts";
import { Windows } from "../../state/windows.ts";
import { cellText } from "../samples/cells.ts";
import { PassRate } from "./PassRate.tsx";
import { PromptCell } from "./SharedPrompts.tsx";
import { Task } from "./OneRollout.tsx";

const only = word("only");
const order = word("by");
/** The prompt of the rollout that is open. */
const task = signal("");
const ONLY = ["never", "sometimes", "always"] as const;
const number = (cell: Num): string => (typeof cell === "number" ? value(cell) : "–");

type Answer = PromptsAnswer & { all: number };

const HEADS: [id: string, head: string, width: string, wide: boolean][] = [
  ["prompt", "prompt", "minmax(120px, 3fr)", false],
  ["rollouts", "attempts", "66px", false],
  ["groups", "groups", "56px", true],
  ["rate", "solved (95 %)", "124px", false],
  ["recent_rate", "last fifth", "118px", true],
  ["first", "", "92px", true],
  ["best", "best reward", "84px", true],
];

/** A share with its interval; never and always stand as words. */
function Share({ of, low, high, name }: { of: Num; low: Num; high: Num; name?: string }) {
  if (typeof of !== "number") return <span class="soft">–</span>;
  return (
    <>
      {name === "never" ? <b class="bad">never</b> : name === "always" ? <b class="good">always</b> : percent(of)}
      <span class="soft">
        {" "}
        {percent(Number(low)).replace(" %", "")}–{percent(Number(high))}
      </span>
    </>
  );
}

export function Prompts({ run, row, first }: { run: string; row: string; first: Signal<string> }) {
  const active = useSignal(-1);
  const rows = useMemo(
    () => new Windows<PromptRow, Answer>(async () => Promise.reject(new Error("not asked yet"))),
    [],
  );
  const see = useMemo(() => (from: number, to: number) => rows.see(from, to), [rows]);
  const news = useNews(run, ["rollouts", "fates"], 10_000);
  const filter = ONLY.find((name) => name === only.value);
  const query: PromptsQuery = {
    ...(filter ? { only: filter } : {}),
    sort:
      order.value === "" ? [] : [{ column: order.value.replace(/^-/, ""), descending: order.value.startsWith("-") }],
  };
  const question = JSON.stringify(query);
  useEffect(() => {
    void rows.again(async (offset, limit, signal) => {
      const answer = await source.prompts(run, { ...query, offset, limit }, signal);
      return { ...answer, all: answer.total, total: answer.matched };
    });
  }, [rows, question, news]);
  void rows.changed.value;
  const answer = rows.answer.value;
  first.value = rows.row(0)?.example ?? "";
  const chosen = row === "" ? rows.row(0)?.id : task.value;
  const open = (one: PromptRow): void => {
    task.value = one.id;
    say({ row: one.example }, row === "");
  };
  const move = (by: number): void => {
    active.value = Math.max(0, Math.min(rows.total.value - 1, active.value + by));
    const next = rows.row(active.value);
    if (next) open(next);
  };
  useHands(() => [
    { keys: ["j"], what: "next prompt", act: () => move(1) },
    { keys: ["k"], what: "previous prompt", act: () => move(-1) },
  ]);
  const x = answer?.x === "policy_version" ? "version" : "update";
  const since = answer?.recent_from ?? null;
  const columns = useMemo<Column<PromptRow>[]>(
    () =>
      HEADS.map(([id, head, width, wide]) => {
        const sorted = order.value === id ? "ascending" : order.value === `-${id}` ? "descending" : undefined;
        return {
          id,
          head: id === "first" ? `${x}s` : head,
          width,
          wide,
          number: id !== "prompt",
          ...(id === "prompt" ? {} : { sorted, sort: () => say({ by: sorted === "descending" ? id : `-${id}` }) }),
          cell: (one) => {
            if (id === "prompt") return <PromptCell text={one.prompt ?? one.id} />;
            if (id === "rate") return <Share of={one.rate} low={one.low} high={one.high} name={solvedOf(one)} />;
            if (id === "recent_rate") return <Share of={one.recent_rate} low={one.recent_low} high={one.recent_high} />;
            if (id === "first") return one.first === null ? "–" : `${count(one.first)}–${count(one.last ?? one.first)}`;
            return id === "best" ? number(one.best) : count(id === "groups" ? one.groups : one.rollouts);
          },
        };
      }),
    [order.value, x],
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
          {answer && typeof answer.above === "number" && `solved: reward above ${value(answer.above)}`}
          {since !== null && `; last fifth: from ${x} ${count(since)}`}
        </span>
      </div>
      {rows.error.value && (
        <div class="pad">
          <Failure error={rows.error.value} again={() => void rows.again()} />
        </div>
      )}
      {!answer && !rows.error.value ? (
        <Waiting what="prompts" />
      ) : answer && answer.total === 0 ? (
        <Empty title={answer.all === 0 ? "No rollout names its prompt" : `No prompt is ${only.value} solved`} />
      ) : (
        <Grid
          label="Table of prompts"
          columns={columns}
          total={rows.total.value}
          row={(i) => rows.row(i)}
          onSeen={see}
          active={active.value}
          id={({ id }) => id}
          rowClass={({ id }) => (id === chosen ? "chosen" : "")}
          onOpen={(one, i) => {
            active.value = i;
            open(one);
          }}
        />
      )}
      <div class="foot">
        {answer && (
          <span>
            <b>{count(answer.total)}</b> of {count(answer.all)} prompts
          </span>
        )}
        {answer && <span>answered in {seconds(answer.took_ms / 1000)}</span>}
        <span class="grow" />
        <span class="hide-s">
          <kbd>j</kbd> <kbd>k</kbd> prompt <kbd>?</kbd> all keys
        </span>
      </div>
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
            ? `Never solved in ${count(all)} attempts`
            : `Solved in ${count(solved)} of ${count(all)} attempts`}
        </h2>
        <span class="grow" />
        <a class="btn" href={link(found.id)}>
          Its rollouts
        </a>
      </div>
      <div class="cols one">
        {found.history.some(({ version }) => version !== null) && (
          <PassRate history={found.history} version={undefined} />
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
