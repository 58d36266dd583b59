/** The table of rollouts: searched, filtered and sorted on the server. */

import type { Signal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { RolloutRow } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { count, value } from "../../data/numbers.ts";
import { conditionOf, fateOf, parted, together } from "../../data/rollouts.ts";
import { Field } from "../../parts/Field.tsx";
import { AskedRows, NoneFits, sortOf, sorts, useAsked } from "../../parts/Asked.tsx";
import type { Column } from "../../parts/Grid.tsx";
import { say, word } from "../../state/address.ts";
import { source } from "../../state/here.ts";
import { useNews } from "../../state/run.ts";
import { cellText } from "../samples/cells.ts";
import { Advantage, FateDot, FateMark, StatusMark } from "./marks.tsx";
import { openRollout } from "./opened.ts";
import { PromptCell } from "./SharedPrompts.tsx";

const search = word("q");
const where = word("where");
const order = word("sort");
const near = word("of");

/** Its columns; that of prompts only where rollouts name theirs. */
const HEADS: [id: string, head: string, width: string, number: boolean, wide: boolean][] = [
  ["prompt", "prompt", "minmax(90px, 1.2fr)", false, true],
  ["item", "last answer", "minmax(120px, 2fr)", false, false],
  ["status", "status", "94px", false, true],
  ["reward", "reward", "58px", true, false],
  ["fate", "fate", "minmax(72px, 1fr)", false, false],
  ["advantage", "advantage", "112px", true, true],
  ["turns", "turns", "48px", true, true],
  ["sampled_tokens", "tokens", "64px", true, true],
  ["gradient_step", "update", "58px", true, true],
];

export function List({ run, row, first }: { run: string; row: string; first: Signal<string> }) {
  const news = useNews(run, ["rollouts", "fates"], 5000);
  const [kind, id] = near.value === "" ? ["", ""] : near.value.split(":", 2);
  const asked = useAsked({
    what: "rollout",
    query: {
      ...(search.value === "" ? {} : { search: search.value }),
      ...(where.value === "" ? {} : { where: where.value }),
      ...(kind === "group" && id ? { group: id } : {}),
      ...(kind === "task" && id ? { task: id } : {}),
      sort: sortOf(order.value),
    },
    news,
    ask: (query, signal) => source.rollouts(run, query, signal),
    open: ({ id: name }: RolloutRow) => openRollout(name, row === ""),
  });
  const { answer, rows } = asked;
  first.value = rows.row(0)?.id ?? "";
  const names = answer?.columns.some(({ name }) => name === "prompt") === true;
  const fates = useRef<{ [fate: string]: number }>({}); // the first window of rows says them
  if (Object.keys(answer?.fates ?? {}).length > 0) fates.current = answer?.fates ?? {};
  const again = useRef<ReadonlySet<string>>(new Set());
  again.current = repeated(rows);
  const columns = useMemo<Column<RolloutRow>[]>(
    () =>
      HEADS.filter(([name]) => name !== "prompt" || names).map(([name, head, width, number, wide]) => {
        return {
          id: name,
          head,
          width,
          wide,
          number,
          ...sorts(order.value, name === "fate" ? "reason" : name),
          cell: ({ id: of, cells }) => {
            const cell = cells[name];
            if (name === "prompt") {
              const text = cellText(cell ?? cells["task_id"]);
              if (!again.current.has(of)) return <PromptCell text={text} />;
              return (
                <span class="soft" title={shown(text)}>
                  ″ <span class="sr">the same prompt</span>
                </span>
              );
            }
            if (name === "item" && cells["status"] === "failed")
              return <span class="bad">failed: {shown(cellText(cells["error"] ?? cell))}</span>;
            if (name === "sampled_tokens" && typeof cell === "number") return <Tokens of={cells} sampled={cell} />;
            if (name === "status") return <StatusMark status={cellText(cell)} />;
            if (name === "fate") return <FateMark cells={cells} />;
            if (name === "advantage") return <Advantage of={cell} most={2} />;
            if (name === "item") return shown(cellText(cell ?? cells["error"]));
            return number && typeof cell === "number" && !Number.isInteger(cell) ? value(cell) : cellText(cell);
          },
        };
      }),
    [order.value, names],
  );
  return (
    <section class="pane" aria-label="Rollouts">
      <div class="bar">
        <Field
          grow
          value={search.value}
          label="Search in texts"
          placeholder="words in prompts and answers"
          onSay={(q) => say({ q })}
          wait={350}
        />
      </div>
      <div class="bar">
        <Field
          grow
          mono
          value={where.value}
          label="Condition"
          placeholder="used and staleness > 3 or reason = 'zero_std'"
          bad={asked.rows.error.value?.code === "bad_input"}
          onSay={(text) => say({ where: text })}
          wait={500}
        />
        {near.value !== "" && (
          <button class="chip" type="button" onClick={() => say({ of: "" })}>
            one {kind} ×
          </button>
        )}
      </div>
      {Object.keys(fates.current).length > 1 && <FateButtons fates={fates.current} />}
      <AskedRows
        asked={asked}
        what="rollouts"
        columns={columns}
        id={(one) => one.id}
        chosen={row === "" ? first.value : row}
        none={<NoneFits all={answer?.all ?? 0} what="rollouts" words={["q", "where", "of"]} />}
      >
        <kbd>j</kbd> <kbd>k</kbd> rollout <kbd>n</kbd> <kbd>p</kbd> turn <kbd>?</kbd> all keys
      </AskedRows>
    </section>
  );
}

/** Sampled tokens, strong where the model was trained on them; with those of the prompt and of tools in the title. */
function Tokens({ of, sampled }: { of: RolloutRow["cells"]; sampled: number }) {
  const all = ["prompt_tokens", "sampled_tokens", "other_tokens"].reduce((sum, name) => sum + Number(of[name] ?? 0), 0);
  const trained = fateOf(of) === "used";
  const title = `${count(sampled)} sampled of ${count(all)}; ${trained ? "trained on" : "not trained on"}`;
  return trained ? <b title={title}>{count(sampled)}</b> : <span title={title}>{count(sampled)}</span>;
}

/** The rollouts whose prompt is that of the row above. */
function repeated(rows: { total: Signal<number>; row: (i: number) => RolloutRow | undefined }): Set<string> {
  const out = new Set<string>();
  for (let i = 1; i < rows.total.peek(); i++) {
    const [one, before] = [rows.row(i), rows.row(i - 1)];
    if (one === undefined) break;
    if (one.cells["prompt"] != null && one.cells["prompt"] === before?.cells["prompt"]) out.add(one.id);
  }
  return out;
}

const MOST_FATES = 7;

/** What became of these rollouts: each fate with its number; pressed, the condition asks for it. */
function FateButtons({ fates }: { fates: { [fate: string]: number } }) {
  const all = Object.values(fates).reduce((sum, n) => sum + n, 0);
  const { within, rest: now } = parted(where.value);
  const ask = (condition: string): void => say({ where: together(within, condition) });
  return (
    <div class="bar fates">
      <button class="chip" type="button" aria-pressed={now === ""} onClick={() => ask("")}>
        all <b>{count(all)}</b>
      </button>
      {Object.entries(fates)
        .slice(0, MOST_FATES)
        .map(([fate, n]) => {
          const own = conditionOf(fate);
          return (
            <button
              key={fate}
              class="chip"
              type="button"
              aria-pressed={now === own}
              onClick={() => ask(now === own ? "" : own)}
            >
              <FateDot fate={fate} /> {shown(fate)} <b>{count(n)}</b>
            </button>
          );
        })}
    </div>
  );
}
