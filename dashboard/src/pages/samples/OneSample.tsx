/** One sample whole: the group it came with, its tokens, and what became of its prompt over training. */

import { useMemo } from "preact/hooks";
import type { SampleGroup, SampleHistory, SampleRow } from "../../api/names.ts";
import { Scatter } from "../../charts/Scatter.tsx";
import { amount, count, plain, value } from "../../data/numbers.ts";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { Answered } from "../../parts/Say.tsx";
import { say } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";
import { cellText, numberIn, textIn } from "./cells.ts";
import { TokenView } from "./TokenView.tsx";

const TEXTS = ["completion", "response", "output", "text", "item"];
const REWARDS = ["reward", "total_reward", "score", "return"];
const ADVANTAGES = ["advantage", "advantages"];
const LENGTHS = ["completion_tokens", "tokens", "length", "completion_length"];

export function OneSample({ run, id }: { run: string; id: string }) {
  const sample = useAnswer(`${run} ${id}`, () => source.sample(run, id));
  const group = useAnswer(sample.value?.group != null ? `${run} ${id} group` : null, () => source.sampleGroup(run, id));
  const history = useAnswer(sample.value ? `${run} ${id} history` : null, () => source.sampleHistory(run, id));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="The sample">
      <div class="cols one">
        <Answered of={sample} what="the sample">
          {(found) => <Whole found={found} />}
        </Answered>
        {group.value && group.value.rows.length > 1 && <Group group={group.value} id={id} />}
        {sample.value?.tokens && <TokenView tokens={sample.value.tokens} />}
        {history.value && history.value.points.length > 1 && <History history={history.value} id={id} />}
      </div>
    </div>
  );
}

/** Whether the item of a sample is its completion, which stands there by its own name. */
const isAgain = (item: string, { cells }: SampleRow): boolean =>
  Object.entries(cells).some(([name, cell]) => name !== "item" && cell === item);

function Whole({ found }: { found: SampleRow }) {
  const texts = Object.entries(found.cells).filter(
    ([name, cell]) =>
      typeof cell === "string" &&
      (cell.length > 24 || cell.includes("\n")) &&
      !(name === "item" && isAgain(cell, found)),
  );
  const place = ([name]: [string, unknown]): number => (["prompt", "item"].includes(name) ? 0 : 1);
  texts.sort((a, b) => place(a) - place(b)); // what was asked before what was answered
  const facts = Object.entries(found.cells).filter(
    ([name, cell]) =>
      name !== "time" &&
      !texts.some(([text, same]) => text === name || (name === "item" && same === cell)) &&
      cell !== null,
  );
  return (
    <section class="card">
      <header>
        <h2>Sample</h2>
        <span class="soft">
          {Object.entries(found.clocks)
            .slice(0, 3)
            .map(([clock, n]) => `${clock} ${count(n)}`)
            .join(" · ")}
        </span>
      </header>
      <div class="in">
        {texts.map(([name, text]) => (
          <div key={name} class="whole">
            <h3 class="soft">{name}</h3>
            <pre class="text" tabIndex={0}>
              {text as string}
            </pre>
          </div>
        ))}
        <dl class="facts two">
          {facts.slice(0, 24).map(([name, cell]) => (
            <div key={name} class="fact">
              <dt>{name}</dt>
              <dd title={plain(cell)}>{cellText(cell, name)}</dd>
            </div>
          ))}
        </dl>
      </div>
    </section>
  );
}

function Group({ group, id }: { group: SampleGroup; id: string }) {
  const most = Math.max(...group.rows.map(({ cells }) => Math.abs(numberIn(cells, ADVANTAGES) ?? 0)), 1e-9);
  const rewards = group.columns
    .map(({ name }) => name)
    .filter((name) => /^reward[s_/]/.test(name))
    .slice(0, 4);
  const has = (names: readonly string[]): boolean => group.rows.some(({ cells }) => numberIn(cells, names) !== null);
  const columns = [
    ...(has(REWARDS) ? [{ id: "reward", head: "reward", number: true }] : []),
    ...rewards.map((name) => ({
      id: name,
      head: name.replace(/^rewards?[_/]/, "").replace(/\/mean$/, ""),
      number: true,
    })),
    { id: "advantage", head: "advantage", number: true },
    { id: "bar", head: "" },
    { id: "tokens", head: "tokens", number: true },
    { id: "text", head: "completion, whole" },
  ];
  return (
    <section class="card">
      <header>
        <h2 class="clip">{group.prompt ?? "The group"}</h2>
        <span class="soft" style={{ flex: "none" }}>
          {Object.entries(group.clocks)
            .slice(0, 1)
            .map(([clock, n]) => `group at ${clock} ${count(n)}`)}
        </span>
        <span class="grow" />
        {group.right !== null && (
          <span class="tag good">
            {group.right} of {group.rows.length} right
          </span>
        )}
        <span class="tag">
          reward {value(Number(group.mean))} ± {value(Number(group.sd))}
        </span>
      </header>
      <MiniTable
        label="The group of this sample"
        columns={columns}
        rows={group.rows}
        rowClass={(row) => (row.id === id ? "chosen" : "")}
        onOpen={(row) => say({ row: row.id })}
        cell={({ id: own, cells }, column) => {
          const advantage = numberIn(cells, ADVANTAGES);
          if (column === "reward") return <b>{value(numberIn(cells, REWARDS))}</b>;
          if (column === "advantage") return value(advantage);
          if (column === "bar")
            return advantage === null ? null : (
              <span class="gain">
                <i
                  class={advantage < 0 ? "s2" : "s1"}
                  style={{ width: `${(Math.abs(advantage) / most) * 50}%`, [advantage < 0 ? "right" : "left"]: "50%" }}
                />
              </span>
            );
          if (column === "tokens") return cellText(numberIn(cells, LENGTHS));
          if (column === "text")
            return (
              <button class="link full" type="button" onClick={() => say({ row: own })}>
                {textIn(cells, TEXTS)}
              </button>
            );
          return cellText(cells[column]);
        }}
      />
    </section>
  );
}

function History({ history, id }: { history: SampleHistory; id: string }) {
  const points = useMemo(
    () => history.points.filter((point) => typeof point.x === "number" && typeof point.reward === "number"),
    [history],
  );
  const x = useMemo(() => Float64Array.from(points, (point) => Number(point.x)), [points]);
  const y = useMemo(() => Float64Array.from(points, (point) => Number(point.reward)), [points]);
  const colors = useMemo(
    () => Uint8Array.from(points, (point) => (typeof point.advantage === "number" && point.advantage < 0 ? 2 : 1)),
    [points],
  );
  const flat = history.groups.filter((group) => group.all_equal).length;
  if (new Set(x).size < 2) return null; // seen once: the group says it all
  return (
    <section class="card">
      <header>
        <h2>This prompt over training</h2>
        <span class="soft">
          {amount(history.groups.length, "group")}, {amount(history.times_seen, "completion")}; reward of each
        </span>
        <span class="grow" />
        <span class="legend">
          <span>
            <i class="dot s1" />
            advantage above 0
          </span>
          <span>
            <i class="dot s2" />
            below
          </span>
        </span>
        {flat > 0 && <span class="tag warn">{amount(flat, "group")} all equal: no gradient</span>}
      </header>
      <Scatter
        label={`Rewards of ${amount(points.length, "completion")} of this prompt over training`}
        x={x}
        y={y}
        colors={colors}
        chosen={points.findIndex((point) => point.id === id)}
        height={200}
        onPick={(index) => {
          const point = points[index];
          if (point) say({ row: point.id });
        }}
      />
    </section>
  );
}
