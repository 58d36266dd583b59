/** A static copy of the page (`rollbook ui --export`): answers are files, nothing runs behind them. */

import type * as api from "../api/names.ts";
import { FrameReader, type CurveEntry, type Frame, type SeriesEntry } from "../data/frames.ts";
import { inOrder, isInside, listed, sortsBy, type SortBy } from "../data/recorded.ts";
import { rowOf, type SentRow } from "../data/rows.ts";
import { fateIn, groupKey, solvedOf } from "../data/rollouts.ts";
import { wordsIn } from "../data/words.ts";
import { timelineOf } from "../data/timeline.ts";
import { Refusal, type ScatterEntry, type Source, type Stream, type TraceEntry } from "./source.ts";

const part = encodeURIComponent;
const together = (runs: readonly string[]): string => [...runs].sort().join(" ");
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

/** The part of the rows that was asked for. Where the newest alone are recorded, neither an order is known nor what
 *  lies behind them. */
function windowOf<Row>(
  what: string,
  recorded: { rows: readonly unknown[]; total: number },
  chosen: readonly Row[],
  query: Asked,
  usual = 200,
): Row[] {
  const offset = query.offset ?? 0;
  const end = offset + (query.limit ?? usual);
  const isOther = chosen.length < recorded.rows.length || (query.sort ?? []).length > 0;
  if (recorded.rows.length < recorded.total && (isOther || end > chosen.length))
    throw elsewhere(`${what} of more than the newest ${recorded.rows.length.toLocaleString("en")}`);
  return chosen.slice(offset, end);
}

/** The rows in the order that was asked for. */
function sorted<Row>(what: string, rows: readonly Row[], query: Asked, cell: (row: Row, column: string) => unknown) {
  let found: readonly Row[] | null = rows;
  for (const { column, descending } of [...(query.sort ?? [])].reverse())
    found = found && inOrder(found, (row) => cell(row, column), descending ?? false);
  if (found === null) throw elsewhere(`${what} in this order`);
  return found;
}

/** Rows that are recorded newest first, as a sort begins with them: of equal ones the oldest is first. */
const oldestFirst = <Row>(rows: readonly Row[], { sort }: Asked): readonly Row[] =>
  sort?.length ? [...rows].reverse() : rows;

/** What a group of rollouts, and those of one prompt, share. */
const ALIKE = { group: ["group", "task_id", "batch"], task: ["task_id"] } as const;

/** Whether a rollout is of the same group, or prompt, as one; one without is alone. */
function alikeTo(like: api.RolloutRow, kind: keyof typeof ALIKE): (row: api.RolloutRow) => boolean {
  const shared = ALIKE[kind].filter((name) => like.cells[name] != null);
  if (!shared.includes(ALIKE[kind][0] as never)) return (row) => row.id === like.id;
  return ({ cells }) => shared.every((name) => String(cells[name]) === String(like.cells[name]));
}

/** How many rollouts have which fate, the most first. */
function fatesOf(rows: readonly api.RolloutRow[]): { [fate: string]: number } {
  const counted = new Map<string, number>();
  for (const { cells } of rows) counted.set(fateIn(cells), (counted.get(fateIn(cells)) ?? 0) + 1);
  return Object.fromEntries([...counted].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)));
}

const MOST_AXES = 20; // runs whose axes are looked at: of many, the first tell which is usual

/** Hands on the frames; of an entry that is recorded along another axis than was asked for, it says so. */
function along<Entry extends CurveEntry | SeriesEntry>(x: string | null | undefined, on: Stream<Entry>): Stream<Entry> {
  const told = (entry: Entry): Entry => {
    if (x == null || entry.x === undefined || entry.x === "" || entry.x === x) return entry;
    const { message, code, hint } = elsewhere(`${entry.key} along ${x}`);
    // A clock that the rows do not have is said as by the server: the chart is then drawn along theirs.
    return { ...entry, kind: "none", error: { code: isClock(x) ? "unknown_axis" : code, message, hint } };
  };
  return (frame) => on({ ...frame, entries: frame.entries.map(told) });
}
const isClock = (x: string): boolean => x !== "time" && x !== "relative";

/** The table of runs as it is recorded, and which cells it has; planned: run -> where it is to end. */
type RecordedTable = Omit<api.RunsAnswer, "rows"> & {
  rows: SentRow[];
  cells: string[];
  planned: { [run: string]: { [clock: string]: number } };
};

interface Asked {
  offset?: number;
  limit?: number;
  sort?: SortBy[];
}

/** The names of all episodes of a run, by time, and how many have a video, or traces. */
interface RecordedIds {
  ids: string[];
  videos: number;
  traced: number;
}

export class Copy implements Source {
  readonly live = false;
  private readonly known = new Map<string, Promise<unknown>>();

  hello = () => this.json<api.Hello>("hello.json");
  runs: Source["runs"] = async (query) => {
    const free = [
      "search",
      "group_by",
      "open",
      "runs",
      "columns",
      "sections",
      "sort",
      "offset",
      "limit",
      "drawn",
      "draw_first",
    ];
    asRecorded("The table of runs", query, query.runs == null ? free : [...free, "archived"]);
    const grouped = query.group_by?.length === 1 && query.group_by[0] === "auto";
    if (query.group_by != null && !grouped) throw elsewhere("The table of runs, in other groups");
    const { cells, planned, ...sent } = await this.json<RecordedTable>(grouped ? "groups.json" : "runs.json");
    const missing = query.columns?.find((column) => !cells.includes(column));
    if (missing !== undefined) throw elsewhere(`The column ${missing} of the table of runs`);
    const sort = query.sort ?? [];
    const unsorted = sort.find(({ column }) => !sortsBy(sent.rows, cells, column));
    if (unsorted !== undefined) throw elsewhere(`The table of runs, by ${unsorted.column}`);
    const search = wordsIn(query.search ?? "");
    const runs = sent.rows.filter((row) => row.kind === "run");
    const fits = new Map<string, SentRow>();
    for (const row of runs) {
      const { project, name, id, notes, group, tags = [] } = row;
      const text = [project, name, id, notes, group, ...tags].filter((word) => word != null && word !== "").join(" ");
      if ((query.runs?.includes(row.id) ?? true) && search(text)) fits.set(row.id, row);
    }
    const open = new Set(query.open ?? []);
    const hasSections = query.sections !== false && new Set([...fits.values()].map((row) => row.section)).size > 1;
    const rows: SentRow[] = [];
    for (const row of listed(sent.rows, new Set(fits.keys()), sort, hasSections, grouped)) {
      if (row.kind === "run") {
        if (row.member_of == null || open.has(row.member_of)) rows.push(row);
      } else if (row.kind === "group") {
        const left = row.runs?.filter((run) => fits.has(run)).length ?? 0;
        // What a part of a group has in common is not recorded.
        if (left < (row.runs?.length ?? 0)) throw elsewhere("A search that divides a group");
        rows.push({ ...row, open: open.has(row.id) });
      } else {
        const left = [...fits.values()].filter(({ section }) => section === row.name);
        const ends = new Set(left.map(({ id }) => JSON.stringify(planned[id] ?? {})));
        const counts: { [status: string]: number } = {};
        for (const { status = "" } of left) counts[status] = (counts[status] ?? 0) + 1;
        const values = ends.size === 1 ? (JSON.parse([...ends][0] as string) as { [clock: string]: number }) : {};
        rows.push({ ...row, run_count: left.length, counts, values });
      }
    }
    const offset = query.offset ?? 0;
    return {
      ...sent,
      rows: rows.slice(offset, offset + (query.limit ?? 200)).map(rowOf),
      matched: fits.size,
      rows_total: rows.length,
      offset,
    };
  };
  columns = () => this.json<api.ColumnsAnswer>("columns.json");
  keys: Source["keys"] = async (runs) => {
    if (runs.length === 1) return this.json(`keys/${part(runs[0] as string)}.json`);
    const few = runs.slice(0, MOST_AXES).map((run) => this.json<api.KeysAnswer>(`keys/${part(run)}.json`));
    const own = await Promise.all(few);
    const [all, ...held] = await Promise.all([
      this.json<api.KeysAnswer>("keys.json"),
      ...runs.map((run) => this.json<SeriesIndex>(`series/${part(run)}/index.json`)),
    ]);
    const counted = all.keys.map((one) => ({
      ...one,
      runs: held.filter((index) => Object.hasOwn(index, one.key)).length,
    }));
    const axes = new Map(own.flatMap((one) => one.axes).map((axis) => [axis.x, axis]));
    const times = (x: string): number => own.filter(({ default_x }) => default_x === x).length;
    const [usual = all.default_x] = own.map(({ default_x }) => default_x).sort((a, b) => times(b) - times(a));
    return { ...all, default_x: usual, axes: [...axes.values()], keys: counted.filter((one) => one.runs > 0) };
  };
  reading = () => Promise.resolve({ done: 0, of: 0 });
  newest = async (table: string) => (await this.json<{ [table: string]: string }>("newest.json"))[table] ?? "";
  run: Source["run"] = (run) => this.of(run, "run");
  series: Source["series"] = async (query, on, signal) => {
    asRecorded("Curves", query, ["runs", "keys", "x", "points", "start", "stop", "ghosts", "fields"], {
      attempts: "effective",
    });
    const shown: Stream<SeriesEntry> = (frame) =>
      on({ ...frame, entries: frame.entries.filter((entry) => query.ghosts === true || entry.ghost === undefined) });
    for (const key of query.keys) {
      for (const run of query.runs ?? []) {
        if (signal?.aborted) return;
        const files = (await this.json<SeriesIndex>(`series/${part(run)}/index.json`))[key];
        const file = query.x === "time" ? files?.time : files?.default;
        if (file) await this.frames<SeriesEntry>(`series/${part(run)}/${file}`, along(query.x, shown));
      }
    }
  };
  curves: Source["curves"] = async (query, on) => {
    asRecorded("Curves of groups", query, ["by", "keys", "x", "points", "start", "stop", "refine"], {
      statistic: "iqm",
    });
    const index = await this.json<CurveIndex>("curves/index.json");
    for (const key of query.keys ?? []) {
      for (const group of Array.isArray(query.by) ? query.by : []) {
        const file = index[together(group.runs)]?.[key];
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
  /** Along each run's own axis; another axis has none. */
  marks: Source["marks"] = async (runs, x) => {
    const all = await this.json<api.Marks & { axes: { [run: string]: string } }>("marks.json");
    const along = (run: string): boolean => runs.includes(run) && (x === null || all.axes[run] === x);
    return { ...all, marks: all.marks.filter((mark) => along(mark.run)) };
  };
  cause: Source["cause"] = () => notHere("What happened at a point");
  step: Source["step"] = () => notHere("The next row");
  episodes: Source["episodes"] = async (run, query) => {
    const free = ["box", "outcome", "video", "traces", "sort", "offset", "limit"];
    asRecorded("Episodes", query, free, { attempts: "effective" });
    const all = await this.of<api.EpisodesAnswer>(run, "episodes");
    const { box, video, traces, outcome = [] } = query;
    if (box != null && [box.x, box.y].some((name) => !all.columns.some((column) => column.name === name)))
      throw elsewhere(`Episodes by ${box.x} and ${box.y}`);
    const chosen = all.rows.filter(
      (row) =>
        (!video || row["video"] === true) &&
        (!traces || row["traces"] === true) &&
        (outcome.length === 0 || outcome.some((one) => one === row["outcome"])) &&
        (box == null || (isInside(row[box.x], box.x0, box.x1) && isInside(row[box.y], box.y0, box.y1))),
    );
    const rows = sorted("Episodes", oldestFirst(chosen, query), query, (row, column) => row[column]);
    const isSimple = box == null && outcome.length === 0 && (query.sort ?? []).length === 0;
    if (isSimple && (video || traces) && all.rows.length < all.total) {
      // How many there are among all is recorded, too.
      const { videos, traced } = await this.of<RecordedIds>(run, "ids");
      const total = video && traces ? Infinity : video ? videos : traced;
      return {
        ...all,
        matched: total,
        offset: query.offset ?? 0,
        rows: windowOf("Episodes", { rows: chosen, total }, chosen, query),
      };
    }
    const matched = chosen.length === all.rows.length ? all.matched : chosen.length;
    return { ...all, matched, offset: query.offset ?? 0, rows: windowOf("Episodes", all, rows, query) };
  };
  scatter: Source["scatter"] = async (run, x, y) => {
    const what = "The scatter of episodes";
    const frame = await this.one<ScatterEntry>(`runs/${part(run)}/scatter.bin`, what);
    const [entry] = frame.entries;
    if (entry?.x !== x || entry.y !== y) throw elsewhere(`${what} by ${x} and ${y}`);
    return frame;
  };
  episodeIds: Source["episodeIds"] = async (run, rows) => {
    const all = await this.of<RecordedIds>(run, "ids");
    return { ids: rows.map((row) => all.ids[row] ?? "") };
  };
  /** One with a video or traces is whole; of another, its row. */
  episode: Source["episode"] = async (run, episode) => {
    const { rows } = await this.of<api.EpisodesAnswer>(run, "episodes");
    const whole = rows.findIndex((row) => row["outcome"] !== "cut");
    const place = episode === "last" ? Math.max(0, whole) : rows.findIndex((row) => row["episode_id"] === episode);
    const row = rows[place];
    if (row === undefined || row["video"] === true || row["traces"] === true)
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
    asRecorded("Samples", query, ["sort", "offset", "limit", "columns"], { attempts: "effective" });
    const all = await this.of<api.SamplesAnswer>(run, "samples");
    if (query.sort?.some(({ column }) => !all.columns.some(({ name }) => name === column)))
      throw elsewhere("Samples in this order");
    const rows = sorted("Samples", oldestFirst(all.rows, query), query, (row, column) => row.cells[column]);
    return { ...all, offset: query.offset ?? 0, rows: windowOf("Samples", all, rows, query) };
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
      const all = await this.of<api.RolloutsAnswer>(run, "rollouts");
      const groups = all.total === 0 ? { ...all, groups: 0 } : await this.of<api.RolloutsAnswer>(run, "groups");
      return { ...groups, offset, rows: groups.rows.slice(offset, offset + (query.limit ?? 100)) };
    }
    const all = await this.of<api.RolloutsAnswer>(run, "rollouts");
    let chosen: readonly api.RolloutRow[] = all.rows;
    let total = all.total;
    for (const kind of ["group", "task"] as const) {
      if (!query[kind]) continue;
      const like = all.rows.find(({ id }) => id === query[kind]);
      if (!like) throw elsewhere("A rollout that is not among the newest");
      chosen = chosen.filter(alikeTo(like, kind));
      if (all.rows.length < all.total) total = await this.manyAlike(run, like, kind, all.total);
    }
    const written = oldestFirst(chosen, query);
    const rows = sorted("Rollouts", written, query, (row, column) => row.cells[column]);
    const isChosen = chosen !== all.rows;
    const window = windowOf("Rollouts", isChosen ? { rows: chosen, total } : all, rows, query, 100);
    const fates = offset > 0 ? {} : isChosen ? fatesOf(chosen) : (all.fates ?? {});
    return { ...all, matched: isChosen ? chosen.length : all.matched, groups: null, offset, fates, rows: window };
  };
  rollout: Source["rollout"] = (run, id) =>
    this.json(`runs/${part(run)}/rollouts/${part(id)}.json`, "A rollout that is not among the newest");
  fates: Source["fates"] = (run) => this.of(run, "fates");
  prompts: Source["prompts"] = async (run, query) => {
    asRecorded("Prompts", query, ["only", "sort", "offset", "limit"]);
    const all = await this.of<api.PromptsAnswer>(run, "prompts");
    const chosen = all.rows.filter((row) => !query.only || query.only === solvedOf(row));
    const rows = sorted("Prompts", chosen, query, (row, column) => row[column as keyof api.PromptRow]);
    const matched = query.only ? all[query.only] : all.total;
    return { ...all, matched, offset: query.offset ?? 0, rows: windowOf("Prompts", all, rows, query, 100) };
  };
  sharedPrompts = () => notHere("Two runs on the same prompts");
  novelty = () => notHere("Novelty");
  unused = () => notHere("What was not trained on");
  timings: Source["timings"] = async (run, x) => {
    const all = await this.of<api.Timings>(run, "timings");
    if (x !== null && x !== all.x) throw elsewhere(`Timings along ${x}`);
    return all;
  };
  timeline: Source["timeline"] = async (run, since) =>
    since === null
      ? timelineOf(await this.of<Parameters<typeof timelineOf>[0]>(run, "timeline"))
      : notHere("Another part of the timeline");
  cost: Source["cost"] = (run) => this.of(run, "cost");
  compare: Source["compare"] = async (query) => {
    asRecorded("Comparing", query, ["metric", "by", "opened", "runs"], {
      ...{ score: "mean of the last 10%", at: "own end", statistic: "iqm", seed: 0 },
    });
    return this.compared<api.CompareAnswer>(query.by as api.GroupOf[], query.metric ?? "");
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
  boards = () => this.json<api.BoardsAnswer>("boards.json", "The list of boards");
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

  /** How many rollouts the run has of the group, or prompt, of one; more than are recorded where that is not known. */
  private async manyAlike(run: string, like: api.RolloutRow, kind: keyof typeof ALIKE, most: number): Promise<number> {
    if (kind === "group") {
      const { rows } = await this.of<api.RolloutsAnswer>(run, "groups");
      return rows.find((row) => groupKey(row) === groupKey(like))?.group?.n ?? most;
    }
    const { rows } = await this.of<api.PromptsAnswer>(run, "prompts");
    return rows.find(({ id }) => id === like.cells["task_id"])?.rollouts ?? most;
  }

  private of<T>(run: string, name: string): Promise<T> {
    return this.json<T>(`runs/${part(run)}/${name}.json`, `The ${name} of this run`);
  }

  private async compared<T>(groups: readonly api.GroupOf[], key: string | null): Promise<T> {
    const all = await this.json<{ key: string | null; runs: string[][]; file: string }[]>("compare/index.json");
    const named = (all: readonly (readonly string[])[]): string => all.map(together).sort().join("; ");
    const asked = named(groups.map(({ runs }) => runs));
    const hit = all.find((one) => one.key === key && named(one.runs) === asked);
    return hit ? this.json<T>(`compare/${hit.file}`) : notHere("Comparing other groups, or by another key");
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
