/** All episodes of a run: a scatter whose box filters, and a table. */

import { useMemo } from "preact/hooks";
import type { EpisodesQuery, Obj } from "../../api/names.ts";
import { Scatter } from "../../charts/Scatter.tsx";
import { counts, doubles } from "../../data/frames.ts";
import { amount, count, plain, rounded, value } from "../../data/numbers.ts";
import { bring, sortOf, sorts, useAsked } from "../../parts/Asked.tsx";
import { Grid, type Column } from "../../parts/Grid.tsx";
import { Failure } from "../../parts/Say.tsx";
import { say, word } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { kindOf } from "../../state/desk.ts";
import { source } from "../../state/here.ts";
import { useNews } from "../../state/run.ts";
import { beside, toggleBeside } from "./Beside.tsx";
import { ending } from "./ending.ts";

const only = word("only");
const order = word("sort");
const scope = word("scope");
const SCOPES = ["train", "test"];
const box = word("box");
const ENDS: [name: string, color: number][] = [
  ["terminated", 1],
  ["truncated", 2],
  ["cut", 4],
];
const FILTERS = ["all", "video", "traces", "terminated", "truncated"];

/** What the table shows, as the address says it. */
export function queryOf(axis: string): EpisodesQuery {
  const [x0, x1, y0, y1] = box.value.split("_").map(Number);
  return {
    ...(SCOPES.includes(scope.value) ? { where: `scope = '${scope.value}'` } : {}),
    sort: sortOf(order.value),
    ...(only.value === "video"
      ? { video: true }
      : only.value === "traces"
        ? { traces: true }
        : only.value === ""
          ? {}
          : { outcome: [only.value as "cut" | "terminated" | "truncated"] }),
    ...(x0 !== undefined && x1 !== undefined && y0 !== undefined && y1 !== undefined
      ? { box: { x: axis, x0, x1, y: "return", y0, y1 } }
      : {}),
  };
}

export interface EpisodeListProps {
  run: string;
  axis: string;
  /** The chosen one, or "". */
  episode: string;
  /** The one that is open, chosen or not. */
  shown: string;
}

export function EpisodeList({ run, axis, episode, shown }: EpisodeListProps) {
  const news = useNews(run, ["episodes"]);
  const asked = useAsked({
    what: "episode in the table",
    query: queryOf(axis),
    news,
    ask: (query) => source.episodes(run, query),
    id: (row: Obj) => String(row["episode_id"]),
    open: (row) => open(String(row["episode_id"])),
    also: ["]", "["],
  });
  const { rows, answer, active } = asked;
  const both = useAnswer(`${run} scopes`, async () => {
    const found = await Promise.all(
      SCOPES.map((name) => source.episodes(run, { where: `scope = '${name}'`, limit: 1 })),
    );
    return found.every(({ matched }) => matched > 0);
  }).value;
  const scatter = useAnswer(`${run} ${news}`, () => source.scatter(run, axis, "return"));
  const points = useMemo(() => {
    const entry = scatter.value?.payload && scatter.value.entries[0];
    if (!entry || !scatter.value) return null;
    const { payload } = scatter.value;
    const outcome = counts(payload, entry.arrays.outcome);
    return {
      x: doubles(payload, entry.arrays.x),
      y: doubles(payload, entry.arrays.y),
      row: counts(payload, entry.arrays.row),
      colors: Uint8Array.from(outcome, (o) => ENDS[o]?.[1] ?? 1),
      of: entry.of,
      thinned: entry.thinned,
    };
  }, [scatter.value]);
  const open = (id: string): void => say({ episode: id }, episode === "");
  const pick = (index: number): void => {
    if (!points) return;
    void source.episodeIds(run, [points.row[index] as number]).then(
      ({ ids }) => {
        if (ids[0] !== undefined) open(ids[0]);
      },
      () => undefined,
    );
  };
  const columns = useMemo<Column<Obj>[]>(() => {
    const column = (
      id: string,
      head: string,
      width: string,
      cell: (row: Obj) => string | preact.JSX.Element,
    ): Column<Obj> => {
      return {
        id,
        head,
        width,
        number: id !== "outcome" && id !== "episode_id",
        cell,
        ...sorts(order.value, id),
      };
    };
    return [
      {
        id: "episode_id",
        head: "episode",
        width: "minmax(58px,1fr)",
        cell: (row) => (
          <button
            class="link mono"
            type="button"
            onClick={() => open(String(row["episode_id"]))}
            title={String(row["episode_id"])}
          >
            {tail(String(row["episode_id"]))}
          </button>
        ),
      },
      column(axis, axis, "76px", (row) => (typeof row[axis] === "number" ? count(row[axis]) : plain(row[axis]))),
      column("length", "length", "56px", (row) => plain(row["length"])),
      column("return", "return", "66px", (row) => <b>{value(Number(row["return"]))}</b>),
      column("outcome", "end", "78px", (row) => <span class="soft">{ending(row)}</span>),
      {
        id: "has",
        head: <span class="sr">has</span>,
        width: "50px",
        cell: (row) =>
          row["video"] === true ? (
            <button
              class="tag"
              type="button"
              aria-pressed={beside.value.includes(`${run}:${String(row["episode_id"])}`)}
              aria-label={`Video of ${tail(String(row["episode_id"]))} beside the open one`}
              title="beside the open one"
              onClick={() => toggleBeside(run, String(row["episode_id"]))}
            >
              video
            </button>
          ) : row["traces"] === true ? (
            <span class="tag">steps</span>
          ) : null,
      },
    ];
  }, [axis, order.value, episode, beside.value]);
  return (
    <section class="pane" aria-label="Episodes">
      <div class="bar">
        <h2>{answer ? amount(answer.all, "episode") : "…"}</h2>
        <span class="grow" />
        {both && (
          <span class="seg" role="group" aria-label="Of which scope">
            {["", ...SCOPES].map((name) => (
              <button key={name} type="button" aria-pressed={scope.value === name} onClick={() => say({ scope: name })}>
                {name === "" ? "any" : name}
              </button>
            ))}
          </span>
        )}
        <span class="seg" role="group" aria-label="Which episodes">
          {FILTERS.map((name) => (
            <button
              key={name}
              type="button"
              aria-pressed={(only.value || "all") === name}
              onClick={() => say({ only: name === "all" ? "" : name })}
            >
              {name === "traces" ? "steps" : name}
            </button>
          ))}
        </span>
      </div>
      {scatter.error && (
        <div class="pad">
          <Failure error={scatter.error} again={scatter.again} />
        </div>
      )}
      {points && (
        <Scatter
          label={`Return of ${amount(points.of, "episode")} over ${axis}${points.thinned ? ", thinned" : ""}`}
          x={points.x}
          y={points.y}
          colors={points.colors}
          xKind={kindOf(axis)}
          onPick={pick}
          onBox={(b) => say({ box: b ? [b.x0, b.x1, b.y0, b.y1].map((v) => rounded(v, 8)).join("_") : "" })}
          height={170}
        />
      )}
      <p class="legend pad0">
        {ENDS.map(
          ([name, color]) =>
            points?.colors.includes(color) && (
              <span key={name}>
                <i class={`dot s${color}`} />
                {name}
              </span>
            ),
        )}
        {box.value !== "" && (
          <button class="link" type="button" onClick={() => say({ box: "" })}>
            all again
          </button>
        )}
      </p>
      {rows.error.value && (
        <div class="pad">
          <Failure error={rows.error.value} again={() => void rows.again()} />
        </div>
      )}
      <Grid
        label="Table of episodes"
        columns={columns}
        total={rows.total.value}
        row={(i) => rows.row(i)}
        onSeen={asked.lines.see}
        active={active.value}
        rowClass={(row) => (row["episode_id"] === shown ? "chosen" : "")}
        class="asked"
        onOpen={(row, i, event) => {
          active.value = i;
          open(String(row["episode_id"]));
          bring(event.currentTarget as HTMLElement);
        }}
      />
      <div class="foot">
        <span>drag in the scatter to filter the table</span>
        <span class="grow" />
        <span class="hide-s">
          <kbd>j</kbd> <kbd>k</kbd> move
        </span>
      </div>
    </section>
  );
}

/** The end of an id: what tells episodes of one run apart. */
const tail = (id: string): string => (id.includes(".") ? id.slice(id.indexOf(".") + 1) : id.slice(-8));
