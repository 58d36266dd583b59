/** Two runs on the prompts that both have: where the other one gains, and where it loses. */

import { useEffect } from "preact/hooks";
import type { SharedPrompts as Found, Num, SharedPromptsRow } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { askedLast } from "../../data/rollouts.ts";
import { amount, count, percent, value } from "../../data/numbers.ts";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { fullName } from "../../data/names.ts";
import { Answered, Empty } from "../../parts/Say.tsx";
import { addressOf, say, word } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";
import { useNews } from "../../state/run.ts";
import { above, Above } from "./Above.tsx";

const other = word("other");
const part = word("part");
const number = (cell: Num): string => (typeof cell === "number" ? value(cell) : "–");

export function SharedPrompts({ run }: { run: string }) {
  const runs = useAnswer("runs for prompts", (signal) =>
    source.runs({ limit: 200, columns: [], sections: false }, signal),
  );
  const rows = (runs.value?.rows ?? []).flatMap((row) => (row.kind === "run" ? [row] : []));
  const project = rows.find((row) => row.run === run)?.project;
  const others = rows.filter((row) => row.run !== run);
  const near = others.filter((row) => row.project === project);
  const first = near[0]?.run ?? "";
  const named = (id: string): string => {
    const row = rows.find((one) => one.run === id);
    return row ? fullName(row) : id;
  };
  // From the older run to the newer one: better is then what the newer one does better.
  const begun = (id: string): number => rows.find((row) => row.run === id)?.created ?? 0;
  const inOrder: readonly [string, string] = begun(other.value) < begun(run) ? [other.value, run] : [run, other.value];
  useEffect(() => {
    if ((other.value === "" || other.value === run) && first !== "") say({ other: first });
  }, [run, first]);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Two runs on the same prompts">
      <Answered of={runs} what="the runs">
        {() => (
          <label class="other-run">
            <span class="soft">compared with</span>
            <select value={other.value} onChange={(event) => say({ other: event.currentTarget.value })}>
              <option value="">choose a run</option>
              {[...near, ...others.filter((row) => !near.includes(row))].map((row) => (
                <option key={row.run} value={row.run}>
                  {row.project} / {fullName(row)} · {row.status} · {row.run}
                </option>
              ))}
            </select>
          </label>
        )}
      </Answered>
      {other.value === "" || other.value === run ? (
        <Empty title="Choose the other run">
          <p>
            Prompts that both runs have are compared by the mean reward of their rollouts, as far as both measure it.
          </p>
        </Empty>
      ) : (
        <Both
          key={inOrder.join(" ")}
          run={inOrder[0]}
          with={inOrder[1]}
          names={[named(inOrder[0]), named(inOrder[1])]}
        />
      )}
    </div>
  );
}

function Both({ run, with: against, names }: { run: string; with: string; names: readonly [string, string] }) {
  const news = useNews(run, ["rollouts"], 10_000);
  const asked = { ...(part.value && { part: part.value }), ...above.value };
  const answer = useAnswer(`${run} ${against} prompts ${JSON.stringify(asked)} ${news}`, () =>
    source.sharedPrompts(run, against, asked),
  );
  return (
    <Answered of={answer} what="the prompts of both runs">
      {(found) => <Table runs={[run, against]} names={names} found={found} />}
    </Answered>
  );
}

function Table({
  runs,
  names,
  found,
}: {
  runs: readonly [string, string];
  names: readonly [string, string];
  found: Found;
}) {
  if (found.shared === 0) return <Empty title="These runs have no prompt in common" />;
  const solved = (row: SharedPromptsRow, i: number): string => percent((row.solved[i] ?? 0) / (row.n[i] || 1));
  const most = Math.max(...found.rows.map((row) => Math.abs(Number(row.mean[1]) - Number(row.mean[0]))), 1e-9);
  const [mean, after] = [found.mean[0] ?? null, found.mean[1] ?? null];
  const [limit, second] = [found.above[0] ?? null, found.above[1] ?? null];
  return (
    <div class="cols">
      <section class="card" style={{ gridColumn: "1 / -1" }}>
        {found.note !== "" && (
          <p class="note" role="note">
            {found.note}
          </p>
        )}
        {(found.parts.length > 0 || found.measure !== "share solved") && (
          <div class="bar">
            {found.parts.length > 0 && (
              <label class="soft">
                compared by{" "}
                <select value={part.value} onChange={(event) => say({ part: event.currentTarget.value })}>
                  <option value="">{part.value === "" ? found.measure : "what both measure"}</option>
                  {found.parts.map((name) => (
                    <option key={name} value={name}>
                      {shown(name)}
                    </option>
                  ))}
                </select>
              </label>
            )}
            <Above now={limit} />
          </div>
        )}
        <header>
          <h2>
            Better on {count(found.better)}, worse on {count(found.worse)} of {amount(found.shared, "prompt")}
          </h2>
          <span class="soft">
            {shown(names[0])} → {shown(names[1])}:{" "}
            {found.measure === "share solved"
              ? `share solved (above ${number(limit)} and ${number(second)})`
              : `mean ${shown(found.measure)}`}{" "}
            {number(mean)} → {number(after)}; alone: {count(found.only[0] ?? 0)} and{" "}
            {amount(found.only[1] ?? 0, "prompt")}
            {found.rows.length < found.shared && `; the ${count(found.rows.length)} with the largest differences`}
          </span>
        </header>
        <MiniTable
          label="Prompts of both runs"
          columns={[
            { id: "prompt", head: "prompt" },
            { id: "change", head: "change", number: true },
            {
              id: "mean",
              head: found.measure === "share solved" ? "share solved" : `mean ${shown(found.measure)}`,
              number: true,
            },
            { id: "solved", head: "solved", number: true },
            { id: "n", head: "rollouts", number: true },
          ]}
          rows={found.rows}
          cell={(row, column) => {
            if (column === "prompt") return <PromptCell text={row.prompt ?? "–"} />;
            if (column === "change") {
              const change = Number(row.mean[1]) - Number(row.mean[0]);
              const share = Math.min(1, Math.abs(change) / most) * 50;
              return (
                <span class="advantage">
                  <b class={change < 0 ? "bad" : "good"}>{`${change > 0 ? "+" : ""}${value(change)}`}</b>
                  <span class={`gain ${change < 0 ? "s2" : "s1"}`} aria-hidden="true">
                    <i style={{ left: `${change < 0 ? 50 - share : 50}%`, width: `${share}%` }} />
                  </span>
                </span>
              );
            }
            if (column === "mean" || column === "solved") {
              const text = (i: number): string => (column === "mean" ? number(row.mean[i] ?? null) : solved(row, i));
              const link = (i: 0 | 1) => (
                <a href={addressOf("rollouts", { run: runs[i], tab: "", row: row.example[i] ?? "" })}>{text(i)}</a>
              );
              return (
                <>
                  {link(0)} → {link(1)}
                </>
              );
            }
            return `${count(row.n[0] ?? 0)} → ${count(row.n[1] ?? 0)}`;
          }}
        />
      </section>
    </div>
  );
}

export function PromptCell({ text }: { text: string }) {
  return (
    <span class="prompt-cell" title={shown(text)}>
      {shown(askedLast(text))}
    </span>
  );
}
