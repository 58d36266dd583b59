/** What does it learn from? All samples of a run, searched on the server; one of them with its group and history. */

import { signal, type Signal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { ColumnInfo, SampleCells } from "../../api/names.ts";
import { Context } from "../../parts/Context.tsx";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { Field } from "../../parts/Field.tsx";
import { AskedRows, NoneFits, sortOf, sorts, useAsked } from "../../parts/Asked.tsx";
import type { Column } from "../../parts/Grid.tsx";
import { RunPicker } from "../../parts/RunPicker.tsx";
import { Empty, Failure } from "../../parts/Say.tsx";
import { tight } from "../../parts/useWidth.ts";
import { addressOf, joined, list, say, word } from "../../state/address.ts";
import { source } from "../../state/here.ts";
import { useNews, useRun } from "../../state/run.ts";
import { Choice, Menu } from "../../parts/Menu.tsx";
import { cellText, width } from "./cells.ts";
import { Novelty } from "./Novelty.tsx";
import { OneSample } from "./OneSample.tsx";

const search = word("q");
const where = word("where");
const unique = word("unique");
const order = word("sort");
const row = word("row");
const shown = list("cols");
const tab = word("tab");

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
          <Empty title="No runs here" code="rollbook demo" />
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
  "gradient_step",
  "prompt",
  "item",
  "completion",
  "text",
  "reward",
  "return",
  "advantage",
  "is_new",
];

/** A good first choice of columns: when, of what, what, how good; few, so that texts have room. */
function usual(columns: readonly ColumnInfo[]): string[] {
  const names = columns.map(({ name }) => name).filter((name) => !HIDDEN.includes(name));
  const liked = LIKED.filter((name) => names.includes(name) && !(name === "item" && names.includes("prompt")));
  return [...liked, ...names.filter((name) => !liked.includes(name) && name !== "item")].slice(0, tight.value ? 4 : 5);
}

const REWARDS = ["reward", "total_reward", "score", "return"];

/** What may be the prompt: of samples without one, the item is. */
const PROMPTS = ["prompt", "item"];

/** The samples whose prompt is that of the one above: a group says it once. */
function repeats(rows: { total: Signal<number>; row: (i: number) => SampleCells | undefined }): Set<string> {
  const out = new Set<string>();
  for (let i = 1; i < rows.total.peek() && rows.row(i) !== undefined; i++) {
    const [one, before] = [rows.row(i), rows.row(i - 1)];
    const name = PROMPTS.find((each) => one?.cells[each] != null) ?? "";
    if (one?.cells[name] != null && cellText(one.cells[name]) === cellText(before?.cells[name])) out.add(one.id);
  }
  return out;
}

function List({ run }: { run: string }) {
  const again = useRef<ReadonlySet<string>>(new Set());
  const asked = useAsked({
    what: "sample",
    query: {
      ...(search.value === "" ? {} : { search: search.value }),
      ...(where.value === "" ? {} : { where: where.value }),
      ...(unique.value === "" ? {} : { unique: true }),
      sort: sortOf(order.value),
    },
    news: useNews(run, ["samples"], 5000),
    ask: (query, signal) => source.samples(run, query, signal),
    id: (one: SampleCells) => one.id,
    open: ({ id }) => say({ row: id }, row.peek() === ""),
  });
  const { rows, answer } = asked;
  again.current = repeats(rows);
  const reward = REWARDS.find((name) => answer?.columns.some((column) => column.name === name));
  first.value = asked.top?.id ?? "";
  const prompt = PROMPTS.find((name) => answer?.columns.some((column) => column.name === name));
  const names = shown.value.length > 0 ? shown.value : usual(answer?.columns ?? []);
  const columns = useMemo<Column<SampleCells>[]>(
    () =>
      names.map((name, place) => {
        const type = answer?.columns.find((column) => column.name === name)?.type ?? "text";
        return {
          id: name,
          head: name,
          width: width(name, type),
          wide: place > 3,
          number: type === "number" || type === "integer",
          ...sorts(order.value, name),
          cell: ({ id, cells }) =>
            name === prompt && again.current.has(id) ? (
              <span class="soft" title={cellText(cells[name])}>
                ″ <span class="sr">the same prompt</span>
              </span>
            ) : (
              cellText(cells[name], name)
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
          placeholder="words in texts"
          onSay={(q) => say({ q })}
          wait={350}
        />
        {source.live && (
          <span class="seg">
            <button
              type="button"
              aria-pressed={unique.value !== ""}
              title="of equal samples the newest alone"
              onClick={() => say({ unique: unique.value === "" ? "1" : "" })}
            >
              each once
            </button>
          </span>
        )}
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
      <AskedRows
        asked={asked}
        what="samples"
        columns={columns}
        id={({ id }) => id}
        chosen={row.value === "" ? first.value : row.value}
        none={<NoneFits all={answer?.all ?? 0} what="samples" words={["q", "where", "unique"]} />}
        class="completions"
      >
        <kbd>j</kbd> <kbd>k</kbd> move
      </AskedRows>
    </section>
  );
}
