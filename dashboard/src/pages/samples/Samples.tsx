/** What does it learn from? All samples of a run, searched on the server; one of them with its group and history. */

import { signal, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { ColumnInfo, SampleCells, SamplesAnswer } from "../../api/names.ts";
import { count, seconds } from "../../data/numbers.ts";
import { Context } from "../../parts/Context.tsx";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { Field } from "../../parts/Field.tsx";
import { Grid, type Column } from "../../parts/Grid.tsx";
import { RunPicker } from "../../parts/RunPicker.tsx";
import { Empty, Failure, Waiting } from "../../parts/Say.tsx";
import { addressOf, joined, list, say, word } from "../../state/address.ts";
import { useHands } from "../../state/hands.ts";
import { source } from "../../state/here.ts";
import { useNews, useRun } from "../../state/run.ts";
import { Windows } from "../../state/windows.ts";
import { Choice, Menu } from "../../parts/Menu.tsx";
import { cellText, width } from "./cells.ts";
import { Novelty } from "./Novelty.tsx";
import { OneSample } from "./OneSample.tsx";

const search = word("q");
const where = word("where");
const order = word("sort");
const row = word("row");
const shown = list("cols");
const tab = word("tab");

type Answer = SamplesAnswer & { all: number };

export function Samples() {
  const { run, detail, none } = useRun("samples");
  const has = detail.value?.tables["samples"];
  return (
    <>
      <Context>
        <RunPicker detail={detail.value} />
        <span class="grow" />
        {has ? (
          <span class="seg" role="group" aria-label="What to look at">
            {[
              ["", "Samples"],
              ["new", "Novelty"],
            ].map(([id = "", name]) => (
              <button key={id} type="button" aria-pressed={tab.value === id} onClick={() => say({ tab: id })}>
                {name}
              </button>
            ))}
          </span>
        ) : null}
        <CopyLink />
      </Context>
      {detail.error && (
        <div class="pad">
          <Failure error={detail.error} again={detail.again} />
        </div>
      )}
      {none && (
        <main id="main">
          <Empty title="No runs yet" code="rollbook demo" />
        </main>
      )}
      {run !== null && detail.value && (
        <main id="main" class={has && tab.value === "" ? "split" : ""}>
          {!has ? (
            <Empty title="This run has no samples" code="run.log_samples(prompts, reward=r, advantage=a)">
              {(detail.value.tables["rollouts"] ?? 0) > 0 && (
                <a href={addressOf("rollouts", { run })}>Show its rollouts</a>
              )}
              <p>Completions, transitions or prompts appear here once the script logs them:</p>
            </Empty>
          ) : tab.value === "new" ? (
            <Novelty run={run} />
          ) : (
            <>
              <List key={run} run={run} />
              <section class="pane" aria-label="One sample">
                <Chosen run={run} />
              </section>
            </>
          )}
        </main>
      )}
    </>
  );
}

/** The sample whose row was pressed; before that the first of the table, so that there is something to read. */
const first = signal("");

function Chosen({ run }: { run: string }) {
  const id = row.value !== "" ? row.value : first.value;
  return id === "" ? null : <OneSample key={id} run={run} id={id} />;
}

const HIDDEN = ["sample_id", "time", "writer", "lane", "seq", "index", "attempt", "at", "first_seen", "hash"];
const LIKED = [
  "train_iter",
  "env_step",
  "prompt",
  "completion",
  "text",
  "item",
  "reward",
  "return",
  "advantage",
  "is_new",
];

/** A good first choice of columns: when, what, how good. */
function usual(columns: readonly ColumnInfo[]): string[] {
  const names = columns.map(({ name }) => name).filter((name) => !HIDDEN.includes(name));
  const liked = LIKED.filter((name) => names.includes(name) && !(name === "item" && names.includes("completion")));
  return [
    ...liked,
    ...names.filter((name) => !liked.includes(name) && !(name === "item" && names.includes("completion"))),
  ].slice(0, 6);
}

const REWARDS = ["reward", "total_reward", "score", "return"];

/** The samples whose prompt is that of the one above: a group says it once. */
function repeats(rows: Windows<SampleCells, Answer>): Set<string> {
  const out = new Set<string>();
  for (let i = 1; i < rows.total.peek() && rows.row(i) !== undefined; i++) {
    const [one, before] = [rows.row(i), rows.row(i - 1)];
    if (
      one !== undefined &&
      one.cells["prompt"] != null &&
      cellText(one.cells["prompt"]) === cellText(before?.cells["prompt"])
    )
      out.add(one.id);
  }
  return out;
}

function List({ run }: { run: string }) {
  const active = useSignal(-1);
  const rows = useMemo(
    () => new Windows<SampleCells, Answer>(async () => Promise.reject(new Error("not asked yet"))),
    [],
  );
  const again = useRef<ReadonlySet<string>>(new Set());
  const see = useMemo(() => (first: number, last: number) => rows.see(first, last), [rows]);
  const news = useNews(run, ["samples"], 5000);
  const query = {
    ...(search.value === "" ? {} : { search: search.value }),
    ...(where.value === "" ? {} : { where: where.value }),
    sort:
      order.value === "" ? [] : [{ column: order.value.replace(/^-/, ""), descending: order.value.startsWith("-") }],
  };
  const question = JSON.stringify(query);
  useEffect(() => {
    void rows.again(async (offset, limit, signal) => {
      const answer = await source.samples(run, { ...query, offset, limit }, signal);
      return { ...answer, all: answer.total, total: answer.matched };
    });
  }, [rows, question, news]);
  void rows.changed.value;
  const answer = rows.answer.value;
  again.current = repeats(rows);
  const reward = REWARDS.find((name) => answer?.columns.some((column) => column.name === name));
  first.value = rows.row(0)?.id ?? "";
  const open = (id: string): void => say({ row: id }, row.peek() === "");
  const move = (by: number): void => {
    active.value = Math.max(0, Math.min(rows.total.value - 1, active.value + by));
    const next = rows.row(active.value);
    if (next) open(next.id);
  };
  useHands(() => [
    { keys: ["j"], what: "next sample", act: () => move(1) },
    { keys: ["k"], what: "previous sample", act: () => move(-1) },
  ]);
  const names = shown.value.length > 0 ? shown.value : usual(answer?.columns ?? []);
  const columns = useMemo<Column<SampleCells>[]>(
    () =>
      names.map((name, place) => {
        const type = answer?.columns.find((column) => column.name === name)?.type ?? "text";
        const sorted = order.value === name ? "ascending" : order.value === `-${name}` ? "descending" : undefined;
        return {
          id: name,
          head: name,
          width: width(name, type),
          wide: place > 3,
          number: type === "number" || type === "integer",
          sorted,
          sort: () => say({ sort: sorted === "descending" ? name : `-${name}` }),
          cell: ({ id, cells }) =>
            name === "prompt" && again.current.has(id) ? (
              <span class="soft" title={cellText(cells[name])}>
                ″ <span class="sr">the same prompt</span>
              </span>
            ) : (
              cellText(cells[name])
            ),
        };
      }),
    [names.join("~"), order.value, answer?.columns.length],
  );
  return (
    <section class="pane" aria-label="Samples">
      <div class="bar">
        {reward !== undefined && (
          <span class="seg" role="group" aria-label="In which order">
            {[
              ["", "newest"],
              [`-${reward}`, "best"],
              [reward, "worst"],
            ].map(([id = "", label]) => (
              <button key={id} type="button" aria-pressed={order.value === id} onClick={() => say({ sort: id })}>
                {label}
              </button>
            ))}
          </span>
        )}
        <Field
          grow
          value={search.value}
          label="Search in texts"
          placeholder="words in prompts and completions"
          onSay={(q) => say({ q })}
          wait={350}
        />
        <Menu label="Columns" plain class="btn">
          {() => (
            <div class="choices" tabIndex={0} aria-label="Columns">
              {answer?.columns.map(({ name, type }) => (
                <Choice
                  key={name}
                  chosen={names.includes(name)}
                  soft={type}
                  onChoose={() =>
                    say({ cols: joined(names.includes(name) ? names.filter((n) => n !== name) : [...names, name]) })
                  }
                >
                  {name}
                </Choice>
              ))}
            </div>
          )}
        </Menu>
      </div>
      <div class="bar">
        <Field
          grow
          mono
          value={where.value}
          label="Condition"
          placeholder="reward < 0.5 and train_iter > 20"
          bad={rows.error.value?.code === "bad_input"}
          onSay={(text) => say({ where: text })}
          wait={500}
        />
      </div>
      {rows.error.value && (
        <div class="pad">
          <Failure error={rows.error.value} again={() => void rows.again()} />
        </div>
      )}
      {!answer && !rows.error.value ? (
        <Waiting what="samples" />
      ) : answer && answer.total === 0 ? (
        <Empty title={`None of ${count(answer.all)} samples fit`}>
          <button class="btn" type="button" onClick={() => say({ q: "", where: "" })}>
            Show all
          </button>
        </Empty>
      ) : (
        <Grid
          label="Table of samples"
          columns={columns}
          total={rows.total.value}
          row={(i) => rows.row(i)}
          onSeen={see}
          active={active.value}
          rowClass={({ id }) => (id === (row.value === "" ? first.value : row.value) ? "chosen" : "")}
          onOpen={({ id }, i) => {
            active.value = i;
            open(id);
          }}
          class="completions"
        />
      )}
      <div class="foot">
        {answer && (
          <span>
            <b>{count(answer.total)}</b> of {count(answer.all)} samples
          </span>
        )}
        {answer && <span>answered in {seconds(answer.took_ms / 1000)}</span>}
        <span class="grow" />
        <span class="hide-s">
          <kbd>j</kbd> <kbd>k</kbd> move
        </span>
      </div>
    </section>
  );
}
