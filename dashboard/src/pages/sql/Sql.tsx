/** What else do the tables say? One read-only query over the tables of a run. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { SqlAnswer } from "../../api/names.ts";
import { cellText } from "../samples/cells.ts";
import { amount, count, seconds, value } from "../../data/numbers.ts";
import { Context } from "../../parts/Context.tsx";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { RunPicker } from "../../parts/RunPicker.tsx";
import { Empty, Failure } from "../../parts/Say.tsx";
import { say, word } from "../../state/address.ts";
import { source } from "../../state/here.ts";
import { useRun } from "../../state/run.ts";
import { refusal, type Refusal } from "../../state/source.ts";

const query = word("query", "select * from metrics limit 50");

/** A moment to the millisecond, as one looks for it in a log. */
const moment = (seconds: number): string => new Date(seconds * 1000).toISOString().replace("T", " ").replace("Z", "");

export function Sql() {
  const { run, detail } = useRun();
  const answer = useSignal<SqlAnswer | null>(null);
  const error = useSignal<Refusal | null>(null);
  const busy = useSignal(false);
  const ask = (event: Event): void => {
    event.preventDefault();
    const text = new FormData(event.currentTarget as HTMLFormElement).get("query")?.toString() ?? "";
    say({ query: text });
    answered(text);
  };
  const answered = (text: string): void => {
    if (run === null) return;
    busy.value = true;
    source
      .sql({ runs: [run], query: text, limit: 500 })
      .then(
        (said) => {
          answer.value = said;
          error.value = null;
        },
        (why: unknown) => {
          error.value = refusal(why);
        },
      )
      .finally(() => {
        busy.value = false;
      });
  };
  useEffect(() => answered(query.peek()), [run]);
  const found = answer.value;
  const tables = Object.entries(detail.value?.tables ?? {});
  return (
    <>
      <Context>
        <RunPicker detail={detail.value} />
        <span class="grow" />
        <CopyLink />
      </Context>
      <main id="main" class="page scroll" tabIndex={0} aria-label="SQL">
        <div class="cols one">
          <form class="card" onSubmit={ask}>
            <header>
              <h2>Query</h2>
              <span class="soft">{tables.map(([name, n]) => `${name} ${count(n)}`).join(" · ")}</span>
              <span class="grow" />
              <button class="btn main" type="submit" disabled={busy.value}>
                Ask
              </button>
            </header>
            <textarea
              class="query mono"
              name="query"
              rows={5}
              aria-label="Query"
              spellcheck={false}
              defaultValue={query.value}
              onKeyDown={(event) => {
                if (event.key === "Enter" && (event.ctrlKey || event.metaKey))
                  event.currentTarget.form?.requestSubmit();
              }}
            />
          </form>
          {error.value && <Failure error={error.value} />}
          {found ? (
            <section class="card">
              <header>
                <h2>
                  {amount(found.rows.length, "row")}
                  {found.more ? " and more" : ""}
                </h2>
                <span class="soft">in {seconds(found.took_ms / 1000)}</span>
              </header>
              <MiniTable
                label="Answer"
                columns={found.columns.map(({ name, type }, i) => ({
                  id: String(i),
                  head: name,
                  number: /int|float|double|number|decimal/i.test(type),
                }))}
                rows={found.rows}
                cell={(row, i) => {
                  const cell = row[Number(i)];
                  if (found.columns[Number(i)]?.type === "time" && typeof cell === "number")
                    return <span class="mono">{moment(cell)}</span>;
                  return typeof cell === "number" && !Number.isInteger(cell)
                    ? value(cell, 5)
                    : cellText(cell, found.columns[Number(i)]?.name);
                }}
              />
            </section>
          ) : (
            !error.value &&
            !busy.value && (
              <Empty
                title="Ask the tables of this run"
                code={'select env_step, "train/return" from metrics where "train/return" is not null'}
              >
                <p>Ctrl Enter asks. The query can only read.</p>
              </Empty>
            )
          )}
        </div>
      </main>
    </>
  );
}
