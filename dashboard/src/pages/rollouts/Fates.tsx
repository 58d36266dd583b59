/** What became of all rollouts: reasons over training, what each cost, staleness, tools, words that grew. */

import type { Cell, Fates as Found, Num } from "../../api/names.ts";
import { StackedArea } from "../../charts/StackedArea.tsx";
import { shown } from "../../data/diff.ts";
import { colorOf, conditionOf } from "../../data/rollouts.ts";
import { amount, count, percent, seconds, value } from "../../data/numbers.ts";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { Answered, Waiting } from "../../parts/Say.tsx";
import { addressOf } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";
import { useNews } from "../../state/run.ts";
import { FateDot } from "./marks.tsx";
import { Clipped } from "./Clipped.tsx";
import { fateWords } from "./opened.ts";

const WORDS: { [name: string]: string } = {
  zero_std: "easier and harder prompts, or more samples a group",
  stale: "fewer rollouts in flight, or a larger limit of staleness",
  overlong: "a soft length penalty, or a larger limit",
  error: "see below which tool breaks",
  surplus: "fewer rollouts than the update needs",
  "no fate yet": "in flight, or lost",
  "no fate": "failed, or never reported to the end",
};

/** Each is an answer of its own, so that none waits for the others. */
const PARTS = ["curves", "fates", "tools", "tokens", "words"] as const;
const SAID = { curves: "curves", fates: "staleness and gaps", tools: "tools", tokens: "tokens", words: "words" };

export function Fates({ run }: { run: string }) {
  const news = useNews(run, ["fates"], 10_000);
  const counted = useAnswer(run, () => source.fates(run, "counts")); // of many rollouts long before the rest
  const isFirst = counted.value === null && counted.error === null;
  const parts = PARTS.map((part) =>
    useAnswer(isFirst ? null : `${run} ${part} of fates ${news}`, () => source.fates(run, part)),
  );
  const [curves, fates, tools, tokens, words] = parts.map((part) => part.value);
  const first = curves ?? counted.value;
  const found = first && {
    ...first,
    clipping: fates?.clipping ?? [],
    stale: fates?.stale ?? [],
    gaps: fates?.gaps ?? [],
    tools: tools?.tools ?? [],
    tokens: tokens?.tokens ?? [],
    words: words?.words ?? [],
  };
  const failed = parts.find((part) => part.error !== null) ?? (curves && parts[0]) ?? counted;
  const missing = PARTS.filter((_, i) => parts[i]?.value === null && parts[i]?.error === null);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="What became of the rollouts">
      <Answered of={{ ...failed, value: found }} what="what became of the rollouts">
        {(found) => <All run={run} found={found} missing={missing.map((part) => SAID[part])} />}
      </Answered>
    </div>
  );
}

/** `missing`: what is on its way. */
function All({ run, found, missing }: { run: string; found: Found; missing: readonly string[] }) {
  const used = found.layers.find(({ reason }) => reason === "used")?.total ?? 0;
  const tokens = found.layers.reduce((sum, layer) => sum + Number(layer.tokens ?? 0), 0);
  const wasted = found.layers
    .filter(({ reason }) => reason !== "used" && reason !== "no fate yet")
    .reduce((sum, layer) => sum + Number(layer.tokens ?? 0), 0);
  const staleness = (
    <Rows
      title="Staleness"
      soft="used rollouts; does it hurt?"
      rows={found.stale}
      columns={["staleness", "n", "clipped", "gap_mean", "gap_max"]}
      bar="clipped"
    />
  );
  const clips = found.clipping.length > 1;
  return (
    <div class="cols">
      <section class="card" style={{ gridColumn: "1 / -1" }}>
        <header>
          <h2>
            {percent(used / (found.total || 1))} of {amount(found.total, "rollout")} taught something
          </h2>
          {tokens > 0 && <span class="soft">{percent(wasted / tokens)} of the sampled tokens taught nothing</span>}
        </header>
        {found.trimmed !== "" && (
          <p class="in soft">Dropped by retention: {shown(found.trimmed)}. Rows and fates stay.</p>
        )}
        <StackedArea
          label={`Fates of ${amount(found.total, "rollout")} over training, as shares`}
          x={found.starts.map(Number)}
          layers={found.layers.map((layer) => ({
            name: fateWords(layer.reason),
            color: colorOf(layer.reason),
            y: layer.n,
          }))}
          share
          xKind="count"
        />
        <MiniTable
          label="Rollouts by fate"
          columns={[
            { id: "reason", head: "fate" },
            { id: "n", head: "rollouts", number: true },
            { id: "share", head: "share", number: true },
            ...(tokens > 0 ? [{ id: "tokens", head: "sampled tokens", number: true }] : []),
            ...(found.layers.some(({ reason }) => WORDS[fateWords(reason)])
              ? [{ id: "what", head: "what one can do" }]
              : []),
          ]}
          rows={found.layers}
          cell={(layer, column) => {
            if (column === "reason")
              return (
                <span>
                  <FateDot fate={layer.reason} />{" "}
                  <a href={addressOf("rollouts", { run, tab: "", where: conditionOf(layer.reason) })}>
                    {fateWords(layer.reason)}
                  </a>
                </span>
              );
            if (column === "n") return count(layer.total);
            if (column === "share") return percent(layer.total / (found.total || 1));
            if (column === "tokens")
              return (
                <>
                  <Bar share={Number(layer.tokens ?? 0) / (tokens || 1)} />{" "}
                  <span class="barnum">{count(Number(layer.tokens ?? 0))}</span>
                </>
              );
            return <span class="soft">{WORDS[fateWords(layer.reason)] ?? ""}</span>;
          }}
        />
      </section>
      {missing.length > 0 && <Waiting what={missing.join(", ")} />}
      <Rows
        title="Which tool breaks"
        soft="share of calls with an error"
        rows={found.tools}
        columns={["name", "calls", "failed", "share", "seconds", "slow", "error"]}
        bar="share"
      />
      {clips ? <Clipped found={found} /> : staleness}
      <section class="card" style={{ gridColumn: "1 / -1" }}>
        <header>
          <h2>Over training</h2>
          <span class="soft">by {found.x}; the last value beside the name</span>
        </header>
        <div class="in smalls">
          {Object.entries(found.curves).map(([name, cells]) => (
            <Small key={name} name={name} cells={cells} />
          ))}
        </div>
      </section>
      {clips && staleness}
      <Rows
        run={run}
        title="Largest gaps"
        soft="log-probability per token, trainer minus sampler"
        rows={found.gaps}
        columns={["rollout_id", "gap_max", "gap_mean", "staleness", "clipped", "reward"]}
        bar="gap_max"
      />
      <Rows
        run={run}
        title="Largest gaps by token"
        soft="tokens of the 20 rollouts with the largest gaps; example: where the gap is largest"
        rows={found.tokens}
        columns={["token", "gap_max", "gap_mean", "times", "rollout_id", "turn", "token_index"]}
        bar="gap_mean"
      />
      <Rows
        title="What high advantage says"
        soft="words in the last answers of the top and the bottom tenth; newest 20 000 used"
        rows={found.words}
        columns={["word", "high", "low"]}
        bar="high"
      />
    </div>
  );
}

/** How large a number is beside the largest that could stand there. */
const Bar = ({ share }: { share: number }) => (
  <i class="inbar" aria-hidden="true">
    <i style={{ width: `${Math.max(0, Math.min(1, share)) * 100}%` }} />
  </i>
);

function Small({ name, cells }: { name: string; cells: readonly Num[] }) {
  const values = cells.map((cell) => (typeof cell === "number" ? cell : Number.NaN));
  const known = values.filter(Number.isFinite);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const at = (v: number, i: number): string =>
    [(i / Math.max(1, values.length - 1)) * 200, 52 - ((v - low) / (high - low || 1)) * 46]
      .map((at) => at.toFixed(1))
      .join(",");
  let path = "";
  values.forEach((v, i) => {
    if (Number.isFinite(v)) path += `${path === "" || Number.isNaN(values[i - 1]) ? "M" : "L"}${at(v, i)}`;
  });
  const last = known[known.length - 1];
  return (
    <div class="small">
      <p>
        <span class="soft clip" title={shown(name)}>
          {shown(name)}
        </span>{" "}
        <b>{name.endsWith("_seconds") ? seconds(last) : value(last)}</b>
      </p>
      <svg viewBox="0 0 200 56" preserveAspectRatio="none" role="img">
        <title>{`${name}: from ${value(low)} to ${value(high)}`}</title>
        <path d={path} vector-effect="non-scaling-stroke" />
      </svg>
    </div>
  );
}

const HEADS: { [id: string]: string } = { slow: "95 %", seconds: "median", rollout_id: "rollout", n: "rollouts" };

function Rows({
  run,
  title,
  soft,
  rows,
  columns,
  bar,
}: {
  /** Whose rollouts the column rollout_id links to. */
  run?: string;
  title: string;
  soft: string;
  rows: readonly { [name: string]: Cell }[];
  columns: readonly string[];
  /** The column whose numbers are drawn, too. */
  bar: string;
}) {
  if (rows.length === 0) return null;
  const named = columns.filter((name) => rows.some((row) => row[name] !== null && row[name] !== undefined));
  const most = (name: string): number =>
    name === "share" ? 1 : Math.max(...rows.map((row) => (typeof row[name] === "number" ? row[name] : 0)));
  const text = (name: string, cell: Cell | undefined): string => {
    if (typeof cell !== "number") return shown(String(cell ?? "–"));
    if (name === "token") return String(cell); // an id, not an amount
    if (name === "share" || name === "clipped") return percent(cell);
    if (name === "seconds" || name === "slow") return seconds(cell);
    return Number.isInteger(cell) ? count(cell) : value(cell);
  };
  return (
    <section class="card" style={{ gridColumn: "span 6" }}>
      <header>
        <h2>{title}</h2>
        <span class="soft">{soft}</span>
      </header>
      <MiniTable
        label={title}
        columns={named.map((id) => ({
          id,
          head: HEADS[id] ?? id.replace("_", " "),
          number: rows.some((row) => typeof row[id] === "number"),
        }))}
        rows={rows}
        cell={(row, column) =>
          column === "rollout_id" && run !== undefined ? (
            <a class="mono" href={addressOf("rollouts", { run, tab: "", row: String(row[column]) })}>
              {text(column, row[column])}
            </a>
          ) : column === bar && typeof row[column] === "number" ? (
            <>
              <Bar share={row[column] / (most(column) || 1)} /> <span class="barnum">{text(column, row[column])}</span>
            </>
          ) : (
            text(column, row[column])
          )
        }
      />
    </section>
  );
}
