/** A static copy of the page (`rollbook ui --export`): answers are files, nothing runs behind them. */

import type * as api from "../api/names.ts";
import { FrameReader, type CurveEntry, type Frame, type SeriesEntry } from "../data/frames.ts";
import { chosenEpisodes } from "../data/episodes.ts";
import { rowOf, type SentRow } from "../data/rows.ts";
import { chosenPrompts, chosenRollouts } from "../data/rollouts.ts";
import { timelineOf } from "../data/timeline.ts";
import { Refusal, type ScatterEntry, type Source, type Stream, type TraceEntry } from "./source.ts";

const part = encodeURIComponent;
const sorted = (runs: readonly string[]): string => [...runs].sort().join(" ");
type SeriesIndex = { [key: string]: { default?: string; time?: string } };
/** Runs of a group, sorted, with spaces between -> key -> file: pages name a group each in its own way. */
type CurveIndex = { [runs: string]: { [key: string]: string } };

const elsewhere = (what: string): Refusal =>
  new Refusal(
    `${what}: this copy has no answer to it.`,
    "static",
    "Open the live page with rollbook ui, or have a report of these runs made: rollbook report",
  );

const notHere = (what: string): Promise<never> => Promise.reject(elsewhere(what));

/** Refuses a question that a recorded answer does not answer: a field that says something else than it was made for.
 *  Which runs, how many points and how much of them change no number. */
function asRecorded(
  what: string,
  query: object,
  free: readonly string[],
  made: { [field: string]: unknown } = {},
): void {
  for (const [field, value] of Object.entries(query)) {
    if (free.includes(field) || value == null || (Array.isArray(value) && value.length === 0)) continue;
    if (value !== made[field] && !(value === false && made[field] === undefined)) throw elsewhere(`${what}, ${field}`);
  }
}

/** The part of the rows that was asked for. The newest are recorded: with fewer than all of them neither an order nor a
 *  filter is known, unless the newest that fit are enough. */
function windowOf<Row>(
  what: string,
  rows: readonly Row[],
  of: { rows: readonly unknown[]; total: number },
  query: Asked,
): Row[] {
  const offset = query.offset ?? 0;
  const end = offset + (query.limit ?? 200);
  const isWhole = of.rows.length >= of.total || rows.length === of.rows.length;
  const isSorted = (query.sort ?? []).length > 0 && of.rows.length < of.total;
  if (isSorted || (!isWhole && rows.length < end))
    throw elsewhere(`${what} of more than the newest ${of.rows.length.toLocaleString("en")}`);
  return rows.slice(offset, end);
}

/** Hands on the frames that lie along the axis that was asked for. */
function along<Entry extends { x?: unknown }>(x: string | null | undefined, on: Stream<Entry>): Stream<Entry> {
  return (frame) => {
    const other = frame.entries.find((entry) => x != null && entry.x !== undefined && entry.x !== "" && entry.x !== x);
    if (other !== undefined) throw elsewhere(`Curves along ${x}`);
    on(frame);
  };
}

interface Asked {
  offset?: number;
  limit?: number;
  sort?: { column: string; descending?: boolean }[];
}

export class Copy implements Source {
  readonly live = false;
  private readonly known = new Map<string, Promise<unknown>>();

  hello = () => this.json<api.Hello>("hello.json");
  runs: Source["runs"] = async (query) => {
    const grouped = query.group_by != null && query.group_by.length > 0;
    const sent = await this.json<Omit<api.RunsAnswer, "rows"> & { rows: SentRow[] }>(
      grouped ? "groups.json" : "runs.json",
    );
    const all = { ...sent, rows: sent.rows.map(rowOf) };
    const words = (query.search ?? "")
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "");
    const open = new Set(query.open ?? []);
    const fits = (row: api.Row): boolean => {
      if (row.kind !== "run")
        return row.kind === "section" || words.every((word) => row.name.toLowerCase().includes(word));
      if (row.member_of !== null && grouped && !open.has(row.member_of)) return false;
      const text = [row.name, row.project, row.id, row.notes, ...row.tags].join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const rows = all.rows.filter(fits).map((row) => (row.kind === "group" ? { ...row, open: open.has(row.id) } : row));
    return {
      ...all,
      rows: rows.slice(query.offset ?? 0, (query.offset ?? 0) + (query.limit ?? 200)),
      rows_total: rows.length,
      offset: query.offset ?? 0,
    };
  };
  columns = () => this.json<api.ColumnsAnswer>("columns.json");
  keys: Source["keys"] = async (runs) => {
    if (runs.length === 1) return this.json(`keys/${part(runs[0] as string)}.json`);
    const [all, ...held] = await Promise.all([
      this.json<api.KeysAnswer>("keys.json"),
      ...runs.map((run) => this.json<SeriesIndex>(`series/${part(run)}/index.json`)),
    ]);
    const counted = all.keys.map((one) => ({
      ...one,
      runs: held.filter((index) => Object.hasOwn(index, one.key)).length,
    }));
    return { ...all, keys: counted.filter((one) => one.runs > 0) };
  };
  newest = async (table: string) => (await this.json<{ [table: string]: string }>("newest.json"))[table] ?? "";
  run: Source["run"] = (run) => this.of(run, "run");
  series: Source["series"] = async (query, on, signal) => {
    for (const key of query.keys) {
      for (const run of query.runs ?? []) {
        if (signal?.aborted) return;
        const files = (await this.json<SeriesIndex>(`series/${part(run)}/index.json`))[key];
        const file = query.x === "time" ? files?.time : files?.default;
        if (file) await this.frames<SeriesEntry>(`series/${part(run)}/${file}`, along(query.x, on));
      }
    }
  };
  curves: Source["curves"] = async (query, on) => {
    asRecorded("Curves of groups", query, ["by", "keys", "x", "points", "start", "stop", "refine"], {
      statistic: "iqm",
    });
    const index = await this.json<CurveIndex>("curves/index.json");
    for (const key of query.keys) {
      for (const group of Array.isArray(query.by) ? query.by : []) {
        const file = index[sorted(group.runs)]?.[key];
        if (file)
          await this.frames<CurveEntry>(
            `curves/${file}`,
            along(query.x, (frame) =>
              on({ ...frame, entries: frame.entries.map((entry) => ({ ...entry, group: group.name })) }),
            ),
          );
      }
    }
  };
  marks: Source["marks"] = async (runs) => {
    const all = await this.json<api.Marks>("marks.json");
    return { ...all, marks: all.marks.filter((mark) => runs.includes(mark.run)) };
  };
  cause: Source["cause"] = () => notHere("What happened at a point");
  step: Source["step"] = () => notHere("The next row");
  episodes: Source["episodes"] = async (run, query) => {
    const all = await this.of<api.EpisodesAnswer>(run, "episodes");
    asRecorded("Episodes", query, ["box", "outcome", "film", "traces", "sort", "offset", "limit"], {
      attempts: "effective",
    });
    const rows = chosenEpisodes(all.rows, query);
    const matched = rows.length === all.rows.length ? all.matched : rows.length;
    return { ...all, matched, offset: query.offset ?? 0, rows: windowOf("Episodes", rows, all, query) };
  };
  scatter: Source["scatter"] = async (run) =>
    this.one<ScatterEntry>(`runs/${part(run)}/scatter.bin`, "The scatter of episodes");
  episodeIds: Source["episodeIds"] = async (run, rows) => {
    const all = await this.of<string[]>(run, "ids");
    return { ids: rows.map((row) => all[row] ?? "") };
  };
  /** One with a film or traces is whole; of another, its row. */
  episode: Source["episode"] = async (run, episode) => {
    const { rows } = await this.of<api.EpisodesAnswer>(run, "episodes");
    const place = episode === "last" ? 0 : rows.findIndex((row) => row["episode_id"] === episode);
    const row = rows[place];
    if (row === undefined || row["film"] === true || row["traces"] === true)
      return this.json(
        `runs/${part(run)}/episodes/${part(String(row?.["episode_id"] ?? episode))}.json`,
        "This episode",
      );
    const name = (other: api.Obj | undefined): string | null => (other ? String(other["episode_id"]) : null);
    return {
      took_ms: 0,
      id: String(row["episode_id"]),
      row,
      rank: null,
      clocks: {},
      start_clocks: {},
      rewards: [],
      media: [],
      alerts: [],
      checkpoint: null,
      previous: name(rows[place + 1]),
      next: name(rows[place - 1]),
      traces: [],
      steps: 0,
      replay_line: null,
    };
  };
  traces: Source["traces"] = (run, episode) =>
    this.one<TraceEntry>(`runs/${part(run)}/episodes/${part(episode)}/traces.bin`, "This trace");
  samples: Source["samples"] = async (run, query) => {
    asRecorded("Samples", query, ["offset", "limit", "columns"], { attempts: "effective" });
    const all = await this.of<api.SamplesAnswer>(run, "samples");
    return { ...all, offset: query.offset ?? 0, rows: windowOf("Samples", all.rows, all, query) };
  };
  sample: Source["sample"] = async (run, id) => {
    const row = (await this.of<api.SamplesAnswer>(run, "samples")).rows.find((one) => one.id === id);
    return row ? { id, cells: row.cells, group: null, clocks: {}, tokens: null, took_ms: 0 } : notHere("This sample");
  };
  sampleGroup = () => notHere("The group of a sample");
  sampleHistory = () => notHere("The history of a sample");
  rollouts: Source["rollouts"] = async (run, query) => {
    asRecorded("Rollouts", query, ["group", "task", "by_group", "sort", "offset", "limit", "columns"], {
      attempts: "effective",
    });
    const offset = query.offset ?? 0;
    if (query.by_group && !query.group && !query.task) {
      asRecorded("Groups of rollouts", { sort: query.sort }, []);
      const groups = await this.of<api.RolloutsAnswer>(run, "groups");
      return { ...groups, offset, rows: groups.rows.slice(offset, offset + (query.limit ?? 100)) };
    }
    const all = await this.of<api.RolloutsAnswer>(run, "rollouts");
    const rows = chosenRollouts(all.rows, query);
    const alike = query.group != null || query.task != null; // of those that the copy has
    const window = alike
      ? rows.slice(offset, offset + (query.limit ?? 100))
      : windowOf("Rollouts", rows, all, { limit: 100, ...query });
    return { ...all, matched: alike ? rows.length : all.matched, groups: null, offset, rows: window };
  };
  rollout: Source["rollout"] = (run, id) =>
    this.json(`runs/${part(run)}/rollouts/${part(id)}.json`, "A rollout that is not among the newest");
  fates: Source["fates"] = (run) => this.of(run, "fates");
  prompts: Source["prompts"] = async (run, query) => {
    asRecorded("Prompts", query, ["only", "sort", "offset", "limit"]);
    const all = await this.of<api.PromptsAnswer>(run, "prompts");
    const rows = chosenPrompts(all.rows, query);
    const matched = query.only ? all[query.only] : all.total;
    return {
      ...all,
      matched,
      offset: query.offset ?? 0,
      rows: windowOf("Prompts", rows, all, { limit: 100, ...query }),
    };
  };
  sharedPrompts = () => notHere("Two runs on the same prompts");
  novelty = () => notHere("Novelty");
  unused = () => notHere("What was not trained on");
  timings: Source["timings"] = (run) => this.of(run, "timings");
  timeline: Source["timeline"] = async (run, since) =>
    since === null
      ? timelineOf(await this.of<Parameters<typeof timelineOf>[0]>(run, "timeline"))
      : notHere("Another part of the timeline");
  cost: Source["cost"] = (run) => this.of(run, "cost");
  compare: Source["compare"] = async (query) => {
    asRecorded("Comparing", query, ["metric", "by", "opened", "runs"], {
      ...{ score: "mean of the last 10%", at: "own end", statistic: "iqm", seed: 0 },
    });
    return this.compared<api.CompareAnswer>(query.by as api.GroupOf[], query.metric);
  };
  diff: Source["diff"] = (groups) => this.compared<api.DiffAnswer>(groups, null);
  sweep: Source["sweep"] = async (query) => {
    asRecorded("A sweep", query, ["project", "metric"], { score: "mean of the last 10%", at: "own end", seed: 0 });
    const all = await this.json<{ project: string; key: string; file: string }[]>("sweep/index.json", "A sweep");
    const hit = all.find(
      (one) => (!query.project || one.project === query.project) && (!query.metric || one.key === query.metric),
    );
    return hit ? this.json<api.SweepAnswer>(`sweep/${hit.file}`) : notHere("A sweep by another key");
  };
  health: Source["health"] = (run) => this.of(run, "health");
  findings = () => this.json<api.FindingsAnswer>("findings.json");
  logs: Source["logs"] = (run) => this.of(run, "logs");
  log: Source["log"] = async (run, name, where) => {
    asRecorded("A log", where, ["from", "before", "lines"]);
    const place = (await this.logs(run)).logs.findIndex((log) => log.name === name);
    const end = await this.json<api.LogAnswer>(`runs/${part(run)}/logs/${place}.json`, "This log");
    // A copy holds the end of a log; what lies before it, or comes after it, is not here.
    return where.from !== undefined || where.before !== undefined ? { ...end, lines: [] } : end;
  };
  files: Source["files"] = (run) => this.of(run, "files");
  patch: Source["patch"] = (run) => this.of(run, "patch");
  media: Source["media"] = (run) => this.of(run, "media");
  text: Source["text"] = (run) => this.of(run, "text");
  histograms: Source["histograms"] = async (run, key) => {
    const at = (place: number): Promise<api.HistogramsAnswer> =>
      this.json(`runs/${part(run)}/histograms/${place}.json`, "Histograms of this key");
    const first = await at(0);
    const place = key === undefined ? 0 : first.keys.indexOf(key);
    return place > 0 ? at(place) : first;
  };
  config: Source["config"] = (run) => this.of(run, "config");
  boards = () => Promise.resolve<api.BoardsAnswer>({ boards: [], took_ms: 0 });
  saveBoard = () => notHere("Saving a board");
  removeBoard = () => notHere("Removing a board");
  edit = () => notHere("Editing");
  remove = () => notHere("Removing runs");
  restore = () => notHere("Removing runs");
  label = this.edit;
  keepColors = () => notHere("Keeping colours");
  sql = () => notHere("SQL");
  fileAddress = (run: string, path: string) => `files/${part(run)}/${path.split("/").map(part).join("/")}`;
  csvAddress = () => "";

  private of<T>(run: string, name: string): Promise<T> {
    return this.json<T>(`runs/${part(run)}/${name}.json`);
  }

  private async compared<T>(groups: readonly api.GroupOf[], key: string | null): Promise<T> {
    const all = await this.json<{ key: string | null; runs: string[][]; file: string }[]>("compare/index.json");
    const named = (all: readonly (readonly string[])[]): string => all.map(sorted).sort().join("; ");
    const asked = named(groups.map(({ runs }) => runs));
    const hit = all.find((one) => one.key === key && named(one.runs) === asked);
    return hit ? this.json<T>(`compare/${hit.file}`) : notHere("Comparing other groups, or by another key,");
  }

  private async one<Entry>(path: string, what: string): Promise<Frame<Entry>> {
    const got: Frame<Entry>[] = [];
    await this.frames<Entry>(path, (frame) => got.push(frame));
    return got[0] ?? notHere(what);
  }

  private json<T>(path: string, what = "This"): Promise<T> {
    const known = this.known.get(path);
    if (known) return known as Promise<T>;
    const asked = fetch(`data/${path}`).then((response) =>
      response.ok ? (response.json() as Promise<T>) : notHere(what),
    );
    this.known.set(path, asked);
    return asked;
  }

  private async frames<Entry>(path: string, on: Stream<Entry>): Promise<void> {
    const response = await fetch(`data/${path}`);
    if (!response.ok) return notHere("This curve");
    for (const frame of new FrameReader<Entry>().push(new Uint8Array(await response.arrayBuffer()))) on(frame);
  }
}
