/** Where the page reads from. Two implementations (`server.ts`, `copy.ts`), chosen once in `here.ts`. */

import type * as api from "../api/names.ts";
import type { CurveEntry, Frame, SeriesEntry } from "../data/frames.ts";

/** Answers that come in parts; `signal` ends the wait for parts nobody needs any more. */
export interface Stream<Entry> {
  (frame: Frame<Entry>): void;
}

/** What a scatter of episodes is made of. */
export interface ScatterEntry {
  x: string;
  y: string;
  n: number;
  of: number;
  thinned: boolean;
  arrays: Record<"x" | "y" | "row" | "outcome" | "video", import("../data/frames.ts").ArrayPlace>;
}

export interface TraceEntry {
  n: number;
  t: import("../data/frames.ts").ArrayPlace;
  arrays: Record<string, import("../data/frames.ts").ArrayPlace>;
}

export type FatesPart = "curves" | "fates" | "tools" | "tokens" | "words";

export interface Source {
  /** False in a static copy: nothing changes, nothing can be edited or searched on the server. */
  readonly live: boolean;
  hello(): Promise<api.Hello>;
  runs(query: api.RunsQuery, signal?: AbortSignal): Promise<api.RunsAnswer>;
  columns(runs?: string[]): Promise<api.ColumnsAnswer>;
  keys(runs: string[]): Promise<api.KeysAnswer>;
  /** How far answers have come that read many runs; 0 of 0 where none does. */
  reading(): Promise<{ done: number; of: number }>;
  /** The newest run that has rows in a table; the newest of all where none has. */
  newest(table: string): Promise<string>;
  run(run: string): Promise<api.RunDetail>;
  series(query: api.SeriesQuery, on: Stream<SeriesEntry>, signal?: AbortSignal): Promise<void>;
  curves(query: api.CurvesQuery, on: Stream<CurveEntry>, signal?: AbortSignal): Promise<void>;
  marks(runs: string[], x: string | null): Promise<api.Marks>;
  cause(run: string, x: string, at: number, key: string, window: number | null): Promise<api.Cause>;
  step(run: string, x: string, at: number, key: string, by: 1 | -1): Promise<api.StepAnswer>;
  episodes(run: string, query: api.EpisodesQuery): Promise<api.EpisodesAnswer>;
  scatter(run: string, x: string, y: string): Promise<Frame<ScatterEntry>>;
  episodeIds(run: string, rows: number[]): Promise<{ ids: string[] }>;
  episode(run: string, episode: string): Promise<api.EpisodeDetail>;
  traces(run: string, episode: string, names: string[]): Promise<Frame<TraceEntry>>;
  samples(run: string, query: api.SamplesQuery, signal?: AbortSignal): Promise<api.SamplesAnswer>;
  sample(run: string, id: string): Promise<api.SampleRow>;
  sampleGroup(run: string, id: string): Promise<api.SampleGroup>;
  sampleHistory(run: string, id: string): Promise<api.SampleHistory>;
  novelty(run: string): Promise<api.Novelty>;
  unused(run: string, at: number | null): Promise<api.Unused>;
  rollouts(run: string, query: api.RolloutsQuery, signal?: AbortSignal): Promise<api.RolloutsAnswer>;
  rollout(run: string, id: string): Promise<api.OneRollout>;
  /** What became of all rollouts; `brief` without the tables, `counts` also without the curves; or one part of it. */
  fates(run: string, only?: "brief" | "counts" | FatesPart): Promise<api.Fates>;
  prompts(run: string, query: api.PromptsQuery, signal?: AbortSignal): Promise<api.PromptsAnswer>;
  sharedPrompts(run: string, other: string, asked: { part?: string; above?: number }): Promise<api.SharedPrompts>;
  timings(run: string, x: string | null): Promise<api.Timings>;
  timeline(
    run: string,
    since: number | null,
    until: number | null,
    pixels: number,
    signal?: AbortSignal,
  ): Promise<api.Timeline>;
  cost(run: string): Promise<api.Cost>;
  compare(query: api.CompareQuery): Promise<api.CompareAnswer>;
  sweep(query: api.SweepQuery): Promise<api.SweepAnswer>;
  diff(groups: api.GroupOf[]): Promise<api.DiffAnswer>;
  health(run: string): Promise<api.Health>;
  findings(): Promise<api.FindingsAnswer>;
  logs(run: string): Promise<api.LogsAnswer>;
  log(
    run: string,
    name: string,
    where: { from?: number; before?: number; near?: number; search?: string; lines?: number },
  ): Promise<api.LogAnswer>;
  files(run: string): Promise<api.FilesAnswer>;
  patch(run: string): Promise<api.PatchAnswer>;
  media(run: string): Promise<api.MediaAnswer>;
  text(run: string): Promise<api.TextAnswer>;
  /** Histograms of a key over training; of the first one, with all keys, where none is named. */
  histograms(run: string, key?: string): Promise<api.HistogramsAnswer>;
  config(run: string): Promise<api.ConfigAnswer>;
  boards(): Promise<api.BoardsAnswer>;
  saveBoard(board: api.Board): Promise<api.Board>;
  removeBoard(name: string): Promise<void>;
  remove(query: api.RemoveAsk): Promise<api.Removed>;
  restore(ids: string[]): Promise<api.Restored>;
  edit(query: api.EditQuery): Promise<api.EditAnswer>;
  label(query: api.LabelQuery): Promise<api.LabelAnswer>;
  keepColors(query: api.ColorsQuery): Promise<api.ColorsAnswer>;
  sql(query: api.SqlQuery): Promise<api.SqlAnswer>;
  /** The address of a file in a run's folder, to download. */
  fileAddress(run: string, path: string): string;
  csvAddress(runs: string[], keys: string[], x: string | null): string;
}

/** An answer that is no answer: what was asked, what was found, what to do. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly code: string,
    readonly hint: string | null = null,
    readonly at: number | null = null,
  ) {
    super(message);
    this.name = "Refusal";
  }
}

/** Anything thrown, as a refusal that can be shown. */
export function refusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof TypeError)
    return new Refusal(
      "The server does not answer.",
      "offline",
      "Training does not depend on it. Start it again: rollbook ui",
    );
  return new Refusal(error instanceof Error ? error.message : String(error), "failed");
}
