/** The server's shapes under the names that the page uses, and the few that are only the page's. */

import type {
  Attempt,
  Cell,
  Change,
  TableColumn,
  CostAnswer,
  EpisodeAnswer,
  EpisodesAsk,
  PromptsAsk,
  RolloutsAsk,
  Hello as LiveHello,
  HistoryAnswer,
  Media as SentMedia,
  OneSampleAnswer,
  RunAnswer,
  SamplesAsk,
  Sort,
  TimelineAnswer,
} from "./schema.ts";

export type {
  Alert,
  FindingsAnswer,
  Board,
  BoardsAnswer,
  CauseAnswer as Cause,
  Cell,
  ColorsAnswer,
  ColorsAsk as ColorsQuery,
  ColumnsAnswer,
  ConfigAnswer,
  PatchAnswer,
  RemoveAsk,
  Removed,
  Restored,
  EditAnswer,
  EditAsk as EditQuery,
  LabelAnswer,
  LabelAsk as LabelQuery,
  EpisodesAnswer,
  Finding,
  ErrorWords as ErrorBody,
  MediaAnswer,
  FatesAnswer as Fates,
  PromptRow,
  PromptsAnswer,
  SharedPromptsAnswer as SharedPrompts,
  SharedPromptsRow,
  FilesAnswer,
  GroupAnswer as SampleGroup,
  HealthAnswer as Health,
  HistogramsAnswer,
  Key as KeyInfo,
  KeysAnswer,
  LogAnswer,
  LogLine,
  LogsAnswer,
  CompareAnswer,
  CompareAsk as CompareQuery,
  CompareNote,
  CurvesAsk as CurvesQuery,
  DiffAnswer,
  NamedRuns as GroupOf,
  MarksAnswer as Marks,
  NewestAnswer,
  ReadingAnswer,
  NoveltyAnswer as Novelty,
  OneRolloutAnswer as OneRollout,
  RolloutGroup,
  RolloutRow,
  RolloutsAnswer,
  RolloutTokens,
  RolloutTurn,
  RolloutVersion,
  RunsAnswer as SentRuns,
  RunsAsk as RunsQuery,
  SampleRow as SampleCells,
  SamplesAnswer,
  SeriesAsk as SeriesQuery,
  Sort as SortBy,
  SqlAnswer,
  SqlAsk as SqlQuery,
  StepAnswer,
  StoredPlan,
  SweepAnswer,
  SweepAsk as SweepQuery,
  SweepSetting,
  TableRow as SentRow,
  TextAnswer,
  TimingsAnswer as Timings,
  Tokens,
  UnusedAnswer as Unused,
} from "./schema.ts";

export type Obj = { [column: string]: Cell };
export type Num = number | "NaN" | "Infinity" | "-Infinity" | null;
export type ColumnInfo = TableColumn;
export type ConfigChange = Change;
export type RunAttempt = Attempt;
export type RunDetail = RunAnswer;
export type EpisodeDetail = EpisodeAnswer;
export type SampleRow = OneSampleAnswer;
export type SampleHistory = HistoryAnswer;
export type Cost = CostAnswer;
export type Media = SentMedia;

/** A stretch of one stage on the timeline; `merged` short ones where they are too short to tell apart. */
export interface Span {
  lane: number;
  depth: number;
  name: number;
  start: number;
  end: number;
  merged: number;
}
/** The timeline; null where nothing was timed. */
export interface Timeline extends Omit<TimelineAnswer, "spans" | "since" | "until" | "first" | "last"> {
  since: number;
  until: number;
  first: number;
  last: number;
  spans: Span[];
}

/** What a static copy says besides. */
export interface Hello extends LiveHello {
  static?: { made: number; points: number; note: string };
}

/** A metric of a group, or a configuration that differs inside it. */
export interface GroupCell {
  centre?: Num;
  low?: Num;
  high?: Num;
  n?: number;
  method?: string;
  sentence?: string;
  distinct?: number;
  values?: Cell[];
}

export interface SectionRow {
  kind: "section";
  id: string;
  name: string;
  runs: number;
  live: number;
  total: { [clock: string]: number } | null;
}

export interface GroupRow {
  kind: "group";
  id: string;
  name: string;
  values: { [column: string]: Cell };
  runs: string[];
  status: { [status: string]: number };
  cells: { [column: string]: Cell | GroupCell };
  /** Column -> how many of its runs end in NaN or infinity, where the cell does not show it. */
  nan: { [column: string]: number };
  open: boolean;
  done: number | null;
  x: string;
  at: number | null;
  section: string;
  damaged: string;
}

export interface RunRow {
  kind: "run";
  run: string;
  id: string;
  project: string;
  name: string;
  /** What tells it from other runs of its name and seed. */
  own: string;
  seed: number | null;
  group: string | null;
  status: string;
  created: number;
  ended: number | null;
  updated: number;
  host: string;
  tags: string[];
  notes: string;
  archived: boolean;
  attempts: number;
  x: string;
  at: number | null;
  total: number | null;
  cells: { [column: string]: Cell };
  nan: { [column: string]: number };
  member_of: string | null;
  alerts: number;
  /** What of it cannot be read; empty where all is well. */
  damaged: string;
}

/** A row of the runs table with nothing left out. */
export type Row = SectionRow | GroupRow | RunRow;

export interface RunsAnswer extends Omit<import("./schema.ts").RunsAnswer, "rows"> {
  rows: Row[];
}

/** A window of a table as the page thinks of it: columns that are sorted by, and a rectangle of the scatter. */
export interface Sorted {
  limit?: number;
  sort?: Sort[];
  box?: { x: string; x0: number; x1: number; y: string; y0: number; y1: number };
}
export type EpisodesQuery = Omit<EpisodesAsk, "order_by" | "limit"> & Sorted;
export type SamplesQuery = Omit<SamplesAsk, "order_by" | "limit"> & Sorted;
export type RolloutsQuery = Omit<RolloutsAsk, "order_by" | "limit" | "solved"> & Sorted;
/** `above`: a rollout with a reward above this solved its prompt. */
export type PromptsQuery = Omit<PromptsAsk, "order_by" | "limit" | "solved"> & Sorted & { above?: number };
