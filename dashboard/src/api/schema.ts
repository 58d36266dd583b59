/** The shapes of the server's answers. Written by `npm run api` from its OpenAPI description; do not edit. */

export type Num = number | "NaN" | "Infinity" | "-Infinity" | null;
export interface CutText {
  text: string;
  length: number;
}
export type Cell = Num | string | boolean | Cell[] | { [key: string]: Cell };
export interface ErrorBody {
  code: string;
  message: string;
  hint: string | null;
  at: number | null;
}
export interface Hello {
  version: string;
  title: string;
  roots: string[];
  runs: number;
  live: number;
  writable: boolean;
  edit_token: string;
  notebook: boolean;
  only: string | null;
  limits: { points: number; rows: number; series: number };
  static?: { made: number; points: number; note: string };
  took_ms: number;
}
export interface SortBy {
  column: string;
  descending?: boolean;
}
export interface RunsQuery {
  filter?: string;
  search?: string;
  sort?: SortBy[];
  group_by?: string[] | null;
  sections?: boolean;
  open?: string[];
  columns?: string[];
  archived?: boolean;
  offset?: number;
  limit?: number;
}
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
  open: boolean;
  section: string;
}
export interface RunRow {
  kind: "run";
  run: string;
  id: string;
  project: string;
  name: string;
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
  member_of: string | null;
  alerts: number;
}
export type Row = SectionRow | GroupRow | RunRow;
export interface RunsAnswer {
  total: number;
  matched: number;
  archived: number;
  live: number;
  rows_total: number;
  offset: number;
  rows: Row[];
  version: string;
  pending: number;
  did_you_mean: string | null;
  took_ms: number;
}
export interface ColumnsAnswer {
  config: { column: string; runs: number; distinct: number; varies: boolean; examples: Cell[] }[];
  metrics: { key: string; runs: number }[];
  took_ms: number;
}
export interface ConfigChange {
  path: string;
  before: Cell;
  after: Cell;
}
export interface Attempt {
  n: number;
  parent: number | null;
  started: number;
  ended: number | null;
  status: string;
  host: string;
  checkpoint: string | null;
  effective: boolean;
  config_changes: ConfigChange[];
  git: { [key: string]: Cell } | null;
}
export interface RunDetail {
  run: string;
  id: string;
  path: string;
  project: string;
  name: string;
  seed: number | null;
  group: string | null;
  job_type: string | null;
  tags: string[];
  notes: string;
  archived: boolean;
  status: string;
  why: string | null;
  created: number;
  ended: number | null;
  updated: number;
  host: string;
  command: string[];
  python: string | null;
  rollbook: string | null;
  git: { [key: string]: Cell } | null;
  packages: { [name: string]: string } | null;
  total: { [clock: string]: number } | null;
  clocks: string[];
  x: string;
  parent: string | null;
  forked_from: Cell;
  config: { [key: string]: Cell };
  summary: { [key: string]: Cell };
  drops: { [cause: string]: number };
  attempts: Attempt[];
  tables: { [table: string]: number };
  problems: string[];
  resume_line: string;
  took_ms: number;
}
export interface KeyInfo {
  key: string;
  scope: string;
  name: string;
  runs: number;
  canonical: string | null;
}
export interface AxisInfo {
  x: string;
  label: string;
  kind: string;
  runs: number;
}
export interface KeysAnswer {
  keys: KeyInfo[];
  axes: AxisInfo[];
  default_x: string;
  tables: { [table: string]: number };
  took_ms: number;
}
export interface SeriesQuery {
  runs: string[];
  keys: string[];
  x?: string | null;
  points?: number;
  fields?: string[];
  start?: number;
  stop?: number;
  ghosts?: boolean;
}
export interface GroupOf {
  name: string;
  runs: string[];
}
export interface CurvesQuery {
  groups: GroupOf[];
  keys: string[];
  x?: string | null;
  points?: number;
  start?: number;
  stop?: number;
  statistic?: string;
  level?: number;
}
export interface MarkRow {
  run: string;
  kind: "checkpoint" | "alert" | "note" | "attempt";
  x: Num;
  time: number;
  id: string;
  label: string;
  text: string;
  level: string | null;
}
export interface Marks {
  marks: MarkRow[];
  took_ms: number;
}
export interface Alert {
  id: string;
  time: number;
  x: Num;
  clocks: { [clock: string]: number };
  rule: string;
  level: string;
  message: string;
  evidence: Cell;
  source: string;
  attempt: number;
}
export interface Media {
  id: string;
  key: string;
  kind: "image" | "video" | "figure";
  url: string;
  path: string;
  width: number | null;
  height: number | null;
  frames: number | null;
  fps: number | null;
  bytes: number | null;
  episode_id: string | null;
  time: number;
  x: Num;
  there: boolean;
}
export type Obj = { [column: string]: Cell };
export interface ColumnInfo {
  name: string;
  type: string;
}
export interface Cause {
  run: string;
  name: string;
  seed: number | null;
  status: string;
  attempt: number;
  x: string;
  at: number;
  time: number;
  clocks: { [clock: string]: number };
  window: number;
  value: { key: string; value: Num; before: Num; at: Num } | null;
  unusual: { key: string; value: Num; median: Num; times: Num; low: Num; high: Num }[];
  alerts: Alert[];
  episodes: { rows: Obj[]; columns: string[]; total_in_window: number; nearest: { id: string; x: number; away: number } | null };
  films: Media[];
  samples: { columns: ColumnInfo[]; rows: Obj[]; total_in_window: number };
  checkpoint: { before: Obj | null; after: Obj | null };
  timings: { seconds: Num; median: Num; stages: { name: string; seconds: number; share: number }[] };
  text: { time: number; key: string; text: string; x: Num }[];
  log: { name: string; lines: LogLine[] } | null;
  took_ms: number;
}
export interface StepAnswer {
  at: Num;
}
export interface EpisodesQuery {
  where?: string;
  outcome?: string[];
  film?: boolean;
  traces?: boolean;
  box?: { x: string; x0: number; x1: number; y: string; y0: number; y1: number };
  sort?: SortBy[];
  offset?: number;
  limit?: number;
}
export interface EpisodesAnswer {
  total: number;
  matched: number;
  offset: number;
  columns: ColumnInfo[];
  rows: Obj[];
  took_ms: number;
}
export interface EpisodeDetail {
  row: Obj;
  rank: { lower: number; of: number } | null;
  clocks: { [clock: string]: number };
  start_clocks: { [clock: string]: number } | null;
  rewards: Obj[];
  media: Media[];
  alerts: Alert[];
  checkpoint: Obj | null;
  previous: string | null;
  next: string | null;
  traces: { name: string; group: string; unit: string | null }[];
  steps: number;
  replay_line: string | null;
  took_ms: number;
}
export interface SamplesQuery {
  search?: string;
  where?: string;
  sort?: SortBy[];
  offset?: number;
  limit?: number;
  columns?: string[];
  unique?: boolean;
}
export interface SampleCells {
  id: string;
  cells: Obj;
}
export interface SamplesAnswer {
  total: number;
  matched: number;
  offset: number;
  columns: ColumnInfo[];
  rows: SampleCells[];
  took_ms: number;
}
export interface Tokens {
  text: string[];
  columns: { [name: string]: Num[] };
}
export interface SampleRow {
  id: string;
  cells: Obj;
  group: string | null;
  at: { [clock: string]: number };
  tokens: Tokens | null;
}
export interface SampleGroup {
  group: string;
  prompt: string | null;
  clocks: { [clock: string]: number };
  rows: SampleCells[];
  columns: ColumnInfo[];
  right: number | null;
  mean: Num;
  sd: Num;
  took_ms: number;
}
export interface SampleHistory {
  item: string;
  times_seen: number;
  points: { id: string; x: Num; time: number; reward: Num; advantage: Num; batch: Cell; text: CutText | string | null }[];
  groups: { x: Num; n: number; mean: Num; all_equal: boolean }[];
  took_ms: number;
}
export interface Novelty {
  x: string;
  points: { x: Num; rows: number; new: number; repeated: number; share_new: Num }[];
  took_ms: number;
}
export interface Unused {
  at: Num;
  groups: number;
  reasons: { reason: string; groups: number; rows: number; ids: string[] }[];
  took_ms: number;
}
export interface Timings {
  x: string;
  stages: { name: string; depth: number; total: number; own: number; share: number; median: Num; p99: Num; calls: number }[];
  over: { x: number[]; width: number[]; seconds: { [stage: string]: Num[] }; other: Num[] | null };
  steps_per_second: { now: Num; x: number[]; y: Num[] };
  took_ms: number;
}
export interface Timeline {
  since: number;
  until: number;
  first: number;
  last: number;
  names: string[];
  spans: { lane: number; writer: string; depth: number; name: number; start: number; end: number; merged: number }[];
  took_ms: number;
}
export interface Cost {
  seconds: Num;
  share: Num;
  log_us: { median: Num; p99: Num } | null;
  keeper: { cpu_seconds: Num; memory_bytes: Num } | null;
  rows: number;
  refused: number;
  lost: number;
  bytes: number;
  bytes_a_value: Num;
  drops: { [cause: string]: number };
  took_ms: number;
}
export interface CompareQuery {
  groups: GroupOf[];
  key: string;
  x?: string | null;
  at?: number | null;
  statistic?: string;
  level?: number;
  plan?: number[] | null;
}
export interface CompareAnswer {
  key: string;
  x: string;
  at: Num;
  at_why: string;
  statistic: string;
  level: number;
  sentence: string;
  notes: string[];
  groups: {
    name: string;
    runs: string[];
    n: number;
    missing: { run: string; why: string }[];
    centre: Num;
    low: Num;
    high: Num;
    method: string;
    claim: Num;
    sentence: string;
    seeds: { run: string; seed: number | null; value: Num }[];
  }[];
  pairs: {
    a: string;
    b: string;
    verdict: string;
    sentence: string;
    difference: Num;
    low: Num;
    high: Num;
    better: Num;
    better_low: Num;
    better_high: Num;
    look: string | null;
  }[];
  profile: { tau: number[]; groups: { [name: string]: Num[] } } | null;
  parted: { x: number[]; a: string; b: string; centre: Num[]; low: Num[]; high: Num[]; sentence: string } | null;
  plan: { group: string; n: number; next_look: Num; sd: Num; probability: Num; todo: string; command: string | null }[];
  took_ms: number;
}
export interface DiffAnswer {
  rows: { path: string; values: Cell[]; differs: boolean }[];
  equal: number;
  git: Cell[];
  took_ms: number;
}
export interface Health {
  alerts: Alert[];
  quiet: { rule: string; label: string; checked: string }[];
  rules: number;
  promise: string | null;
  host_keys: string[];
  took_ms: number;
}
export interface AlertsAnswer {
  total: number;
  by_run: { [run: string]: { [level: string]: number } };
  newest: (Alert & { run: string })[];
  took_ms: number;
}
export interface LogsAnswer {
  logs: { name: string; label: string; bytes: number; kind: string }[];
}
export interface LogLine {
  offset: number;
  text: string;
  time: Num;
}
export interface LogAnswer {
  name: string;
  lines: LogLine[];
  start: number;
  end: number;
  size: number;
  took_ms: number;
}
export interface FilesAnswer {
  files: { path: string; bytes: number; modified: number; kind: string }[];
  checkpoints: Obj[];
  bytes: number;
  truncated: boolean;
}
export interface MediaAnswer {
  total: number;
  media: Media[];
}
export interface TextAnswer {
  total: number;
  rows: { time: number; key: string; text: string; clocks: { [clock: string]: number }; attempt: number }[];
}
export interface ConfigAnswer {
  attempts: { n: number; started: number; config: { [key: string]: Cell }; changes: ConfigChange[]; git: { [key: string]: Cell } | null; packages: { [name: string]: string } | null }[];
}
export interface Board {
  name: string;
  state: { [key: string]: Cell };
  modified?: number;
}
export interface BoardsAnswer {
  boards: Board[];
}
export interface EditQuery {
  runs: string[];
  set?: { name?: string; notes?: string; tags?: string[]; group?: string; archived?: boolean };
  add_tags?: string[];
  remove_tags?: string[];
}
export interface EditAnswer {
  runs: RunRow[];
  refused: { run: string; why: string }[];
}
export interface SqlQuery {
  runs: string[];
  query: string;
  limit?: number;
}
export interface SqlAnswer {
  columns: ColumnInfo[];
  rows: Cell[][];
  more: boolean;
  took_ms: number;
}
