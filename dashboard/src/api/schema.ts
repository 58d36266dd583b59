/** The shapes of the server's questions and answers. Written from its OpenAPI description by `npm run api`; do not edit. */

/** Any JSON value. */
export type Cell = number | string | boolean | null | Cell[] | { [name: string]: Cell };

/** What a health rule found. */
export interface Alert {
  id: string;
  run: string;
  time: number | null;
  x: number | "-Infinity" | "Infinity" | "NaN" | null;
  clocks: { [name: string]: number };
  rule: string;
  level: string;
  message: string;
  evidence: Cell;
  source: string;
  attempt: number | null;
  key?: string;
}

/** An alert of a run; `run` is its id. */
export interface AlertRow {
  run: string;
  project: string;
  name: string;
  time: string;
  seconds: number;
  level: string;
  rule: string;
  key: string;
  message: string;
  clocks: { [name: string]: number };
}

/** The newest alerts of runs, oldest first, and how many there are. */
export interface AlertsAnswer {
  took_ms: number;
  total: number;
  alerts: AlertRow[];
}

/** The alerts of runs, oldest first: what health rules found, one by one. */
export interface AlertsAsk {
  since?: number | null;
  runs?: string[] | null;
}

/** An array in the payload of a frame: value i is b + s * raw[i]. */
export interface Array {
  o: number;
  n: number;
  t: "f4" | "f8" | "i4" | "u1" | "u2" | "u4";
  b?: number;
  s?: number;
}

/** One attempt of a run. */
export interface Attempt {
  n: number;
  parent: number | null;
  started: number | null;
  ended: number | null;
  status: string;
  host: string;
  checkpoint: string | null;
  effective: boolean;
  config_changes: Change[];
  git: { [name: string]: Cell } | null;
}

/** What may be the x-axis. */
export interface Axis {
  x: string;
  label: string;
  kind: "clock" | "relative" | "time";
  runs: number;
}

/** A saved view. */
export interface Board {
  name: string;
  state: { [name: string]: Cell };
  modified?: number;
  first?: boolean;
  saved?: boolean;
}

/** A view to save under a name. */
export interface BoardAsk {
  state: { [name: string]: Cell };
  first?: boolean | null;
}

/** All saved views, by name. */
export interface BoardsAnswer {
  took_ms: number;
  boards: Board[];
}

/** What went on near a point, from every table. */
export interface CauseAnswer {
  took_ms: number;
  run: string;
  name: string;
  seed: number | null;
  status: string;
  attempt: number | null;
  sentences: string[];
  x: string;
  at: number;
  time: number | null;
  clocks: { [name: string]: number };
  window: number;
  value: Value | null;
  unusual: Unusual[];
  looked_at: number;
  alerts: Alert[];
  episodes: NearTable;
  videos: Media[];
  samples: NearTable;
  checkpoint: Checkpoints;
  timings: TimingsAt | null;
  text: TextLine[];
  log_name: string | null;
  log: LogLine[];
  values?: { [name: string]: Cell }[] | null;
  others?: { [name: string]: { [name: string]: Cell }[] };
}

/** A value of the configuration that an attempt changed. */
export interface Change {
  path: string;
  before: Cell;
  after: Cell;
}

/** The checkpoints before and after a point. */
export interface Checkpoints {
  before: { [name: string]: Cell } | null;
  after: { [name: string]: Cell } | null;
}

/** The checkpoints of a run, one row each; those whose files are there. */
export interface CheckpointsAsk {
  where?: string | null;
  order_by?: string | null;
  limit?: number | null;
  attempts?: string | number[];
  search?: string | null;
  offset?: number;
  everything?: boolean;
}

/** The used rollouts of one staleness; of the last one also those that are staler. */
export interface Clipping {
  staleness: number;
  n: number[];
}

/** The colours of these runs as they are kept now: [alone, in a group]; 0: none yet. */
export interface ColorsAnswer {
  took_ms: number;
  colors: { [name: string]: number[] };
}

/** Colours to keep, from 1 to 12. A colour that is kept already stays, unless a person chose another. */
export interface ColorsAsk {
  alone?: { [name: string]: number };
  grouped?: { [name: string]: number };
  chosen?: boolean;
}

/** The columns that the table can show; pending: runs whose keys are still being read; own: see `own_columns`. */
export interface ColumnsAnswer {
  took_ms: number;
  pending: number;
  own: string[];
  config: ConfigColumn[];
  summary: ConfigColumn[];
  metrics: MetricColumn[];
}

/** Of which runs; all without. */
export interface ColumnsAsk {
  runs?: string[] | null;
}

/** The comparison of groups: a sentence first, then what it rests on. */
export interface CompareAnswer {
  took_ms: number;
  key: string;
  x: string;
  at: number | "-Infinity" | "Infinity" | "NaN" | null;
  at_why: string;
  score: string;
  statistic: string;
  level: number;
  sentence: string;
  notes: CompareNote[];
  sentences: string[];
  groups: CompareGroup[];
  pairs: ComparePair[];
  profile: Profile | null;
  plan: PlanRow[];
  parted?: PartedPair[];
  plans?: StoredPlan[];
}

/** Which group is better, how certain that is, and what would decide it. */
export interface CompareAsk {
  metric?: string;
  by?: string | NamedRuns[];
  score?: string;
  at?: number | "common end" | "own end";
  x?: string | null;
  task?: string | null;
  normalise?: string | { [name: string]: [number, number] } | null;
  statistic?: "iqm" | "mean" | "median" | null;
  against?: string | null;
  paired?: boolean;
  delta?: number | null;
  floor?: number | null;
  direction?: "higher" | "lower" | null;
  seed?: number;
  opened?: boolean;
  runs?: string[] | null;
}

/** What a group scores. */
export interface CompareGroup {
  name: string;
  runs: string[];
  n: number;
  missing: LeftOut[];
  centre: number | "-Infinity" | "Infinity" | "NaN" | null;
  low: number | "-Infinity" | "Infinity" | "NaN" | null;
  high: number | "-Infinity" | "Infinity" | "NaN" | null;
  method: string;
  claim: number | null;
  sentence: string;
  seeds: SeedValue[];
}

/** What readers should know besides the numbers. */
export interface CompareNote {
  kind: string;
  sentence: string;
  group?: string;
  field?: string;
  first?: number | "-Infinity" | "Infinity" | "NaN" | null;
}

/** Two groups compared; see `stats.Verdict` for the fields of the verdict. */
export interface ComparePair {
  a: string;
  b: string;
  verdict: "better" | "cannot say" | "same" | "undecided" | "worse";
  outcome: string;
  sentence: string;
  difference: number | "-Infinity" | "Infinity" | "NaN" | null;
  better: number | "-Infinity" | "Infinity" | "NaN" | null;
  winner?: string | null;
  ahead?: string | null;
  won?: number | "-Infinity" | "Infinity" | "NaN" | null;
  of?: number;
  p?: number | "-Infinity" | "Infinity" | "NaN" | null;
  limit?: number | "-Infinity" | "Infinity" | "NaN" | null;
  look?: number | null;
  any_shape?: number | "-Infinity" | "Infinity" | "NaN" | null;
  holds?: boolean | null;
  unseen?: number | "-Infinity" | "Infinity" | "NaN" | null;
  enough?: number | null;
  more?: number | null;
  best?: number | "-Infinity" | "Infinity" | "NaN" | null;
}

/** The configuration of each attempt, oldest first. */
export interface ConfigAnswer {
  took_ms: number;
  attempts: ConfigAttempt[];
}

/** What one attempt of a run was started with, and what that changed. */
export interface ConfigAttempt {
  n: number;
  started: number | null;
  config: { [name: string]: Cell };
  changes: Change[];
  git: { [name: string]: Cell } | null;
  packages: { [name: string]: Cell } | null;
}

/** A field of the configurations. */
export interface ConfigColumn {
  column: string;
  runs: number;
  distinct: number;
  varies: boolean;
  examples: Cell[];
}

/** What rollbook itself cost the run, as far as it was measured; reports: what is known of each cause of drops. */
export interface CostAnswer {
  took_ms: number;
  seconds: number | "-Infinity" | "Infinity" | "NaN" | null;
  share: number | "-Infinity" | "Infinity" | "NaN" | null;
  log_median_us: number | "-Infinity" | "Infinity" | "NaN" | null;
  log_p99_us: number | "-Infinity" | "Infinity" | "NaN" | null;
  keeper_seconds: number | "-Infinity" | "Infinity" | "NaN" | null;
  keeper_bytes: number | "-Infinity" | "Infinity" | "NaN" | null;
  rows: number;
  refused: number;
  lost: number;
  bytes: number;
  drops: { [name: string]: number };
  reports: { [name: string]: string };
  metrics: { [name: string]: number | "-Infinity" | "Infinity" | "NaN" | null };
}

/** The curve of a group in the header of a frame. */
export interface CurveEntry {
  group: string;
  key: string;
  x: string;
  kind: "curve" | "none";
  n?: number;
  arrays?: { [name: string]: Array };
  statistic?: string;
  level?: number;
  band?: string;
  method?: string;
  claim?: number | null;
  sentence?: string;
  remarks?: string[];
  notes?: string[];
  seeds?: number;
  missing?: string[];
  preliminary?: boolean;
  error?: EntryError | null;
  version?: string;
}

/** A key of groups of runs along an axis: centre, interval and the number of runs at each point. */
export interface CurvesAsk {
  keys?: string[];
  by?: string | NamedRuns[] | null;
  x?: string | null;
  start?: number | null;
  stop?: number | null;
  points?: number;
  statistic?: "iqm" | "mean" | "median";
  level?: number;
  whole_curve?: boolean;
  task?: string | null;
  normalise?: string | { [name: string]: [number, number] } | null;
  span?: "all" | "any";
  spacing?: "linear" | "log";
  interpolation?: "linear" | "none" | "previous";
  window?: number | null;
  reduce?: "max" | "mean" | "median" | "min";
  max_gap?: number | null;
  crashed_as?: "count" | "drop" | "floor" | "hold";
  floor?: number | null;
  nan?: "drop" | "floor" | "keep" | "refuse";
  backwards?: "refuse" | "restart" | "sort";
  ties?: "last" | "mean";
  draws?: number;
  seed?: number;
  refine?: boolean;
  runs?: string[] | null;
}

/** It is gone. */
export interface Deleted {
  took_ms: number;
  name: string;
}

/** What differs between groups, differences first. */
export interface DiffAnswer {
  took_ms: number;
  groups: string[];
  rows: DiffRow[];
  equal: number;
  sentences: string[];
}

/** What differs between runs, or groups of them: configuration, code, packages, machine. */
export interface DiffAsk {
  metric?: string | null;
  score?: string;
  by?: string | NamedRuns[] | null;
  kinds?: ("attempt" | "code" | "config" | "machine" | "packages")[] | null;
  runs?: string[] | null;
}

/** A thing that may differ between groups. */
export interface DiffRow {
  kind: string;
  name: string;
  values: Cell[];
  differs: boolean;
  found?: DiffValue[];
  explained?: number | "-Infinity" | "Infinity" | "NaN" | null;
}

/** A value, how many runs have it, and the mean of their scores. */
export interface DiffValue {
  value: string;
  n: number;
  mean: number | "-Infinity" | "Infinity" | "NaN" | null;
}

/** The runs that are drawn, in the order of the table, and what they hold; of very many runs, what some hold. */
export interface Drawn {
  runs: string[];
  keys: KeysAnswer;
  is_part?: boolean;
}

/** The runs as they are now. */
export interface EditAnswer {
  took_ms: number;
  runs: TableRow[];
  refused: LeftOut[];
}

/** Changes to the manifests of some runs. */
export interface EditAsk {
  runs: string[];
  set: Fields;
}

/** Why one entry of many is empty; the others are not. */
export interface EntryError {
  code: string;
  message: string;
  hint?: string | null;
}

/** One episode with what belongs to it. */
export interface EpisodeAnswer {
  took_ms: number;
  id: string;
  row: { [name: string]: Cell };
  rank: Rank | null;
  clocks: { [name: string]: number };
  start_clocks: { [name: string]: number };
  rewards: { [name: string]: Cell }[];
  media: Media[];
  alerts: Alert[];
  checkpoint: { [name: string]: Cell } | null;
  previous: string | null;
  next: string | null;
  traces: Trace[];
  steps: number;
  replay_line: string | null;
}

/** A window of the episodes. Rows have at least episode_id, return, length, outcome, video, traces, time, clocks. */
export interface EpisodesAnswer {
  took_ms: number;
  total: number;
  matched: number;
  offset: number;
  columns: TableColumn[];
  rows: { [name: string]: Cell }[];
}

/** The episodes of a run, one row each. */
export interface EpisodesAsk {
  where?: string | null;
  order_by?: string | null;
  limit?: number | null;
  attempts?: string | number[];
  search?: string | null;
  offset?: number;
  outcome?: ("cut" | "terminated" | "truncated")[];
  video?: boolean;
  traces?: boolean;
}

/** The body of every answer with status 400 and above. */
export interface ErrorBody {
  error: ErrorWords;
}

/** Why there is no answer. */
export interface ErrorWords {
  code: string;
  message: string;
  hint?: string | null;
  at?: number | null;
}

/** What ended a run before its time. */
export interface Failure {
  type: string;
  message: string;
  traceback: string;
  stderr: string;
}

/** What became of the rollouts over training. */
export interface FatesAnswer {
  took_ms: number;
  x: string;
  starts: (number | "-Infinity" | "Infinity" | "NaN" | null)[];
  width: number | "-Infinity" | "Infinity" | "NaN" | null;
  total: number;
  layers: FatesLayer[];
  passes: Passes;
  curves: { [name: string]: (number | "-Infinity" | "Infinity" | "NaN" | null)[] };
  stale: { [name: string]: Cell }[];
  clipped_from: number[];
  clipping: Clipping[];
  tools: { [name: string]: Cell }[];
  words: { [name: string]: Cell }[];
  gaps: { [name: string]: Cell }[];
  tokens: { [name: string]: Cell }[];
  trimmed: string;
}

/** The rollouts of one reason in each stretch. */
export interface FatesLayer {
  reason: string;
  n: number[];
  total: number;
  tokens: number | "-Infinity" | "Infinity" | "NaN" | null;
  first: number | "-Infinity" | "Infinity" | "NaN" | null;
}

/** What to set; what is left out stays. */
export interface Fields {
  name?: string | null;
  notes?: string | null;
  tags?: string[] | null;
  add_tags?: string[];
  remove_tags?: string[];
  group?: string | null;
  archived?: boolean | null;
}

/** A file of a run. */
export interface FileEntry {
  path: string;
  bytes: number;
  modified: number;
  kind: "checkpoint" | "config" | "data" | "log" | "media" | "other";
}

/** The files of a run and its checkpoints. */
export interface FilesAnswer {
  took_ms: number;
  files: FileEntry[];
  checkpoints: { [name: string]: Cell }[];
  bytes: number;
  truncated: boolean;
}

/** What is wrong, once for all runs that have it. */
export interface Finding {
  rule: string;
  level: string;
  message: string;
  runs: FindingRun[];
  many: number;
}

/** Where something was found: the position on the run's own axis, and the key that it is about, if they are known. */
export interface FindingRun {
  run: string;
  name: string;
  seed: number | null;
  project: string;
  status: string;
  time: number | null;
  axis: string;
  x: number | "-Infinity" | "Infinity" | "NaN" | null;
  key: string;
}

/** What is wrong with runs. */
export interface FindingsAnswer {
  took_ms: number;
  total: number;
  findings?: Finding[];
  looked_at?: number;
  quiet?: number;
  sentences?: string[];
}

/** What is wrong with runs, by health rules and how they ended: each thing once for all that have it. */
export interface FindingsAsk {
  since?: number | null;
  runs?: string[] | null;
}

/** The smallest difference that a number of seeds finds; null: none, however large. */
export interface FoundBySeeds {
  seeds: number;
  difference: number | "-Infinity" | "Infinity" | "NaN" | null;
}

/** The completions of one prompt at one moment. */
export interface GroupAnswer {
  took_ms: number;
  group: string;
  prompt: string | null;
  clocks: { [name: string]: number };
  columns: TableColumn[];
  rows: SampleRow[];
  right: number | null;
  mean: number | "-Infinity" | "Infinity" | "NaN" | null;
  sd: number | "-Infinity" | "Infinity" | "NaN" | null;
}

/** What is wrong, what was looked at and is quiet. */
export interface HealthAnswer {
  took_ms: number;
  alerts: Alert[];
  quiet: QuietRule[];
  rules: number;
  promise: string | null;
  host_keys: string[];
}

/** What the page has to know first. */
export interface Hello {
  took_ms: number;
  version: string;
  server: string;
  title: string;
  roots: string[];
  runs: number;
  live: number;
  writable: boolean;
  labels: boolean;
  edit_token: string;
  only: string | null;
  limits: Limits;
  colors: { [name: string]: number[] };
}

/** Histograms of one key. */
export interface HistogramsAnswer {
  took_ms: number;
  keys: string[];
  key: string;
  x: string;
  total: number;
  edges: number[];
  positions: (number | "-Infinity" | "Infinity" | "NaN" | null)[];
  counts: number[][];
  low: (number | "-Infinity" | "Infinity" | "NaN" | null)[];
  high: (number | "-Infinity" | "Infinity" | "NaN" | null)[];
  mean: (number | "-Infinity" | "Infinity" | "NaN" | null)[];
}

/** One prompt or item over all of training. */
export interface HistoryAnswer {
  took_ms: number;
  item: string;
  x: string;
  times_seen: number;
  points: HistoryPoint[];
  groups: HistoryGroup[];
  truncated: boolean;
}

/** What a prompt scored in one batch. */
export interface HistoryGroup {
  x: number | "-Infinity" | "Infinity" | "NaN" | null;
  n: number;
  mean: number | "-Infinity" | "Infinity" | "NaN" | null;
  all_equal: boolean;
}

/** One time that a prompt was seen. */
export interface HistoryPoint {
  id: string;
  x: number | "-Infinity" | "Infinity" | "NaN" | null;
  time: number | null;
  reward: number | "-Infinity" | "Infinity" | "NaN" | null;
  advantage: number | "-Infinity" | "Infinity" | "NaN" | null;
  batch: number | null;
  text: Cell;
}

/** Ids in the requested order; "" for rows that do not exist. */
export interface IdsAnswer {
  took_ms: number;
  ids: string[];
}

/** A key of metrics. */
export interface Key {
  key: string;
  scope: string;
  name: string;
  runs: number;
  canonical: string | null;
}

/** What the chosen runs hold. */
export interface KeysAnswer {
  took_ms: number;
  keys: Key[];
  axes: Axis[];
  default_x: string;
  tables: { [name: string]: number };
}

/** Of which runs. */
export interface KeysAsk {
  runs: string[];
}

/** What was written. */
export interface LabelAnswer {
  took_ms: number;
  files: string[];
  labelled: number;
  refused: LeftOut[];
}

/** Labels for some runs. */
export interface LabelAsk {
  runs: string[];
  fields: { [name: string]: string };
}

/** A run that was left out, and why. */
export interface LeftOut {
  run: string;
  why: string;
}

/** How much may be asked for at once. */
export interface Limits {
  points: number;
  rows: number;
  runs: number;
  series: number;
}

/** Lines of a log. */
export interface LogAnswer {
  took_ms: number;
  name: string;
  lines: LogLine[];
  start: number;
  end: number;
  size: number;
}

/** A log that can be read. */
export interface LogFile {
  name: string;
  label: string;
  bytes: number;
  kind: "file" | "text";
}

/** A line of a log file. */
export interface LogLine {
  offset: number;
  text: string;
  time: number | null;
}

/** The logs of a run. */
export interface LogsAnswer {
  took_ms: number;
  logs: LogFile[];
}

/** A checkpoint, alert, note or begin of an attempt on the axis. */
export interface Mark {
  run: string;
  kind: "alert" | "attempt" | "checkpoint" | "note";
  x: number | "-Infinity" | "Infinity" | "NaN" | null;
  time: number | null;
  id: string;
  label: string;
  text: string;
  level: string | null;
}

/** Marks in order of x. */
export interface MarksAnswer {
  took_ms: number;
  marks: Mark[];
  truncated: boolean;
}

/** Of which runs, on which axis. */
export interface MarksAsk {
  runs: string[];
  x?: string | null;
  start?: number | null;
  stop?: number | null;
}

/** A picture or video. */
export interface Media {
  id: string;
  key: string;
  kind: string;
  url: string | null;
  path: string;
  width: number | null;
  height: number | null;
  frames: number | null;
  fps: number | null;
  bytes: number | null;
  episode_id: string | null;
  time: number | null;
  x: number | "-Infinity" | "Infinity" | "NaN" | null;
  there: boolean;
}

/** A window of the pictures and videos. */
export interface MediaAnswer {
  took_ms: number;
  total: number;
  keys: string[];
  media: Media[];
}

/** The pictures, videos and figures of a run. */
export interface MediaAsk {
  where?: string | null;
  order_by?: string | null;
  limit?: number | null;
  attempts?: string | number[];
  search?: string | null;
  offset?: number;
  kind?: "figure" | "image" | "video" | null;
  key?: string | null;
}

/** A key of metrics, how many of the runs that were looked at have it, and its canonical name, if it has one. */
export interface MetricColumn {
  key: string;
  runs: number;
  canonical: string | null;
}

/** Runs that are taken together. */
export interface NamedRuns {
  name: string;
  runs: string[];
}

/** The nearest row of a table that has none near the point. */
export interface Nearest {
  id: string;
  x: number | "-Infinity" | "Infinity" | "NaN" | null;
  away: number | "-Infinity" | "Infinity" | "NaN" | null;
}

/** Rows of a table near a point, in order. */
export interface NearTable {
  columns: TableColumn[];
  rows: { [name: string]: Cell }[];
  total_in_window: number;
  nearest: Nearest | null;
}

/** A run to open first. */
export interface NewestAnswer {
  took_ms: number;
  run: string;
  has: boolean;
  looked: number;
  of: number;
}

/** New and repeated samples over training. */
export interface NoveltyAnswer {
  took_ms: number;
  x: string;
  points: NoveltyPoint[];
}

/** How much was new in a stretch. */
export interface NoveltyPoint {
  x: number | "-Infinity" | "Infinity" | "NaN" | null;
  rows: number;
  new: number;
  repeated: number;
}

/** One rollout with its turns, all its fates, and its task over training. */
export interface OneRolloutAnswer {
  took_ms: number;
  id: string;
  cells: { [name: string]: Cell };
  prompt: Cell;
  messages: string | null;
  tools: string | null;
  turns: RolloutTurn[];
  tokens: RolloutTokens | null;
  fates: { [name: string]: Cell }[];
  history: RolloutVersion[];
  turns_left_out: number;
  odd_lists: string[];
}

/** One sample, its texts whole. */
export interface OneSampleAnswer {
  took_ms: number;
  id: string;
  cells: { [name: string]: Cell };
  group: string | null;
  clocks: { [name: string]: number };
  tokens: Tokens | null;
}

/** Another run shown here: its id in the API and its name. */
export interface OtherRun {
  run: string;
  name: string;
  seed: number | null;
}

/** From where on two groups stay apart at each point; x: null where they do not. */
export interface PartedPair {
  a: string;
  b: string;
  ahead: string | null;
  x: number | "-Infinity" | "Infinity" | "NaN" | null;
  last: number | "-Infinity" | "Infinity" | "NaN" | null;
  sentence: string;
}

/** How many rollouts solved their task in each stretch. */
export interface Passes {
  n: number[];
  solved: number[];
  low: (number | "-Infinity" | "Infinity" | "NaN" | null)[];
  high: (number | "-Infinity" | "Infinity" | "NaN" | null)[];
}

/** The uncommitted changes of the program's code when the newest attempt began. */
export interface PatchAnswer {
  took_ms: number;
  text: string;
  file: string;
  left_out: string[];
  untracked: string[];
  files_untracked: number;
}

/** One look at a pair; better: who won it, or null. */
export interface PlanLook {
  a: string;
  b: string;
  n_a: number;
  n_b: number;
  p: number | "-Infinity" | "Infinity" | "NaN" | null;
  limit: number | "-Infinity" | "Infinity" | "NaN" | null;
  better: string | null;
}

/** Whether a group has enough seeds; more: how many more would decide the pair that is closest to it. */
export interface PlanRow {
  group: string;
  n: number;
  sd: number | "-Infinity" | "Infinity" | "NaN" | null;
  more: number;
  todo: string;
}

/** The plans stored with the runs. */
export interface PlansAnswer {
  took_ms: number;
  plans: StoredPlan[];
}

/** The plans stored with runs, with their looks and verdicts. */
export interface PlansAsk {
  runs?: string[] | null;
}

/** The verdict of a plan about a pair at its last look. */
export interface PlanVerdict {
  a: string;
  b: string;
  outcome: string;
  better: string | null;
  more: number | null;
  sentence: string;
  best?: number | "-Infinity" | "Infinity" | "NaN" | null;
}

/** The share of runs above a score, by group. */
export interface Profile {
  tau: number[];
  groups: { [name: string]: (number | "-Infinity" | "Infinity" | "NaN" | null)[] };
}

/** One prompt over training; evaluations do not count. */
export interface PromptRow {
  id: string;
  prompt: string | null;
  rollouts: number;
  groups: number;
  solved: number;
  rate: number | "-Infinity" | "Infinity" | "NaN" | null;
  low: number | "-Infinity" | "Infinity" | "NaN" | null;
  high: number | "-Infinity" | "Infinity" | "NaN" | null;
  recent_rollouts: number;
  recent_solved: number;
  recent_rate: number | "-Infinity" | "Infinity" | "NaN" | null;
  recent_low: number | "-Infinity" | "Infinity" | "NaN" | null;
  recent_high: number | "-Infinity" | "Infinity" | "NaN" | null;
  tried: number[];
  solved_in: number[];
  first: number | null;
  last: number | null;
  best: number | "-Infinity" | "Infinity" | "NaN" | null;
  example: string;
}

/** A window of the prompts. */
export interface PromptsAnswer {
  took_ms: number;
  x: string;
  recent_from: number | null;
  begin: number | null;
  width: number | null;
  above: number | "-Infinity" | "Infinity" | "NaN" | null;
  total: number;
  never: number;
  sometimes: number;
  always: number;
  matched: number;
  offset: number;
  rows: PromptRow[];
}

/** The prompts of the rollouts, one row each: how often each was tried and solved; the least solved come first. */
export interface PromptsAsk {
  where?: string | null;
  order_by?: string | null;
  limit?: number | null;
  attempts?: string | number[];
  search?: string | null;
  offset?: number;
  x?: "gradient_step" | "policy_version" | null;
  mode?: string | null;
  solved?: string | number | null;
  only?: "always" | "never" | "sometimes" | null;
  stretches?: number;
}

/** A rule that looked and found nothing. */
export interface QuietRule {
  rule: string;
  label: string;
  checked: string;
}

/** How many episodes returned less, how many the same (this one included), and the number of episodes. */
export interface Rank {
  lower: number;
  equal: number;
  of: number;
}

/** How far the answers have come that are being made: runs read, of how many; 0 of 0 where none reads many. */
export interface ReadingAnswer {
  took_ms: number;
  done: number;
  of: number;
}

/** Groups with the same fate. */
export interface Reason {
  reason: string;
  groups: number;
  rows: number;
  ids: string[];
}

/** Runs to move into the bin beside their project. */
export interface RemoveAsk {
  runs: string[];
  dry_run?: boolean;
}

/** What went into the bin, or would. */
export interface Removed {
  took_ms: number;
  ids: string[];
  bytes: number;
  refused: LeftOut[];
}

/** Ids of runs in the bins of the folders that the page shows. */
export interface RestoreAsk {
  ids: string[];
}

/** The runs that are back, and why others are not. */
export interface Restored {
  took_ms: number;
  ids: string[];
  refused: LeftOut[];
}

/** The matching rollouts of a group. */
export interface RolloutGroup {
  n: number;
  marks: string;
  mean: number | "-Infinity" | "Infinity" | "NaN" | null;
  spread: number | "-Infinity" | "Infinity" | "NaN" | null;
  stale: number | "-Infinity" | "Infinity" | "NaN" | null;
  turns: number | "-Infinity" | "Infinity" | "NaN" | null;
  tokens: number | "-Infinity" | "Infinity" | "NaN" | null;
  fates: { [name: string]: number };
}

/** One rollout with its newest fate: its id, and its cells. With by_group, the newest one of its `group`. */
export interface RolloutRow {
  id: string;
  cells: { [name: string]: Cell };
  group?: RolloutGroup | null;
}

/** A window of the rollouts. */
export interface RolloutsAnswer {
  took_ms: number;
  total: number;
  matched: number;
  groups?: number | null;
  offset: number;
  columns: TableColumn[];
  rows: RolloutRow[];
  fates?: { [name: string]: number };
}

/** The rollouts of a run, one row each, with their prompt and their newest fate. */
export interface RolloutsAsk {
  where?: string | null;
  order_by?: string | null;
  limit?: number | null;
  attempts?: string | number[];
  search?: string | null;
  offset?: number;
  group?: string | null;
  task?: string | null;
  by_group?: boolean;
  solved?: string | number | null;
}

/** The tokens of a turn. */
export interface RolloutTokens {
  text: string[];
  texts: string[];
  columns: { [name: string]: (number | "-Infinity" | "Infinity" | "NaN" | null)[] };
}

/** One turn. */
export interface RolloutTurn {
  turn: number;
  parent: number | null;
  role: string;
  name: string | null;
  text: string | null;
  length: number | null;
  calls: string | null;
  n_tokens: number | null;
  trained: boolean | null;
  trimmed: boolean;
  tokens_trimmed: boolean;
  seconds: number | "-Infinity" | "Infinity" | "NaN" | null;
  finish_reason: string | null;
  error: string | null;
  reward: number | "-Infinity" | "Infinity" | "NaN" | null;
  policy_version: number | null;
  tokens: RolloutTokens | null;
}

/** A task at one version of the policy. */
export interface RolloutVersion {
  version: number | null;
  n: number;
  mean: number | "-Infinity" | "Infinity" | "NaN" | null;
  solved: number;
  low: number | "-Infinity" | "Infinity" | "NaN" | null;
  high: number | "-Infinity" | "Infinity" | "NaN" | null;
  used: number;
}

/** Rows of any table of a run, with the columns that identify each row. */
export interface RowsAsk {
  table: string;
  where?: string | null;
  order_by?: string | null;
  limit?: number | null;
  attempts?: string | number[];
  search?: string | null;
  offset?: number;
}

/** Everything that is known about a run, except its rows. */
export interface RunAnswer {
  took_ms: number;
  run: string;
  id: string;
  path: string;
  project: string;
  name: string;
  own: string;
  seed: number | null;
  group: string | null;
  job_type: string | null;
  tags: string[];
  notes: string;
  archived: boolean;
  status: string;
  why: string | null;
  failure: Failure | null;
  created: number | null;
  ended: number | null;
  updated: number | null;
  host: string;
  made_by: string;
  command: string[];
  python: string;
  rollbook: string;
  git: { [name: string]: Cell };
  packages: { [name: string]: Cell };
  total: { [name: string]: Cell };
  clocks: string[];
  x: string;
  parent: string | null;
  forked_from: string | null;
  parent_run: OtherRun | null;
  forked_run: OtherRun | null;
  config: { [name: string]: Cell };
  summary: { [name: string]: Cell };
  drops: { [name: string]: number };
  attempts: Attempt[];
  tables: { [name: string]: number };
  problems: string[];
  remarks: string[];
  resume_line: string;
  resume_command: string;
  worked: number;
}

/** A window of the table of runs. */
export interface RunsAnswer {
  took_ms: number;
  total: number;
  matched: number;
  archived: number;
  live: number;
  rows_total: number;
  offset: number;
  rows: TableRow[];
  version: string;
  pending: number;
  did_you_mean?: string | null;
  conditions?: string[];
  unreadable?: string[];
  unreadable_total?: number;
  binned?: number;
  bin_of?: string;
  drawn?: Drawn | null;
}

/** Which rows of the table of runs. */
export interface RunsAsk {
  filter?: string | null;
  search?: string | null;
  runs?: string[] | null;
  sort?: Sort[];
  group_by?: string[] | null;
  sections?: boolean | null;
  open?: string[];
  columns?: string[];
  archived?: boolean;
  offset?: number;
  limit?: number;
  drawn?: string[];
  draw_first?: number;
}

/** One sample: its name in the API, and its cells. */
export interface SampleRow {
  id: string;
  cells: { [name: string]: Cell };
}

/** A window of the samples. */
export interface SamplesAnswer {
  took_ms: number;
  total: number;
  matched: number;
  offset: number;
  columns: TableColumn[];
  rows: SampleRow[];
}

/** The logged samples: what a model generated or was trained on. */
export interface SamplesAsk {
  where?: string | null;
  order_by?: string | null;
  limit?: number | null;
  attempts?: string | number[];
  search?: string | null;
  offset?: number;
  unique?: boolean;
  columns?: string[] | null;
}

/** The header of the scatter. */
export interface ScatterEntry {
  x: string;
  y: string;
  n: number;
  of: number;
  thinned: boolean;
  arrays: { [name: string]: Cell };
}

/** How many seeds each group needs; see `rollbook.compare.seeds.SeedPlan`. */
export interface SeedsAnswer {
  took_ms: number;
  std: number;
  power: number;
  difference: number | null;
  seeds_needed: number | null;
  fewest: number;
  pairs_compared: number;
  detectable: FoundBySeeds[];
  sentences: string[];
}

/** How many seeds each group needs, and which difference a number of seeds can find. */
export interface SeedsAsk {
  metric?: string;
  by?: string | NamedRuns[];
  score?: string;
  against?: string | null;
  difference?: number | null;
  power?: number;
  runs?: string[] | null;
}

/** What one run scores. */
export interface SeedValue {
  run: string;
  seed: number | null;
  value: number | "-Infinity" | "Infinity" | "NaN" | null;
  counted: boolean;
  rows?: number;
  of?: number;
  non_finite?: number;
  ends_in_nan?: boolean;
}

/** Keys of runs along an axis, each run for itself: rows as they were logged, or points that keep extremes. */
export interface SeriesAsk {
  keys: string[];
  x?: string | null;
  points?: number | null;
  start?: number | null;
  stop?: number | null;
  attempts?: "all" | "effective" | number[];
  fields?: ("count" | "max" | "mean" | "min")[];
  ghosts?: boolean;
  runs?: string[] | null;
}

/** One curve in the header of a frame. */
export interface SeriesEntry {
  run: string;
  key: string;
  x: string;
  kind: "envelope" | "none" | "raw";
  n?: number;
  rows?: number;
  arrays?: { [name: string]: Array };
  bad?: { [name: string]: Array } | null;
  span?: [number, number] | null;
  y_span?: [number, number] | null;
  robust?: [number, number] | null;
  ghost?: number | null;
  inferred?: number;
  error?: EntryError | null;
  notes?: string[];
  version?: string;
}

/** Prompts in both runs, from the largest loss of the other run to its largest gain. */
export interface SharedPromptsAnswer {
  took_ms: number;
  sentences: string[];
  measure: string;
  note: string;
  parts: string[];
  above: (number | "-Infinity" | "Infinity" | "NaN" | null)[];
  shared: number;
  only: number[];
  mean: (number | "-Infinity" | "Infinity" | "NaN" | null)[];
  better: number;
  worse: number;
  rows: SharedPromptsRow[];
}

/** One prompt in both runs; the second number of each pair is the other run's. */
export interface SharedPromptsRow {
  prompt: string | null;
  n: number[];
  mean: (number | "-Infinity" | "Infinity" | "NaN" | null)[];
  solved: number[];
  example: string[];
}

/** One column to sort by. */
export interface Sort {
  column: string;
  descending?: boolean;
}

/** [lane, depth, number of the name, start, end, how many short ones it stands for]. */
export type Span = [number, number, number, number, number, number];

/** Rows; more: whether there are more than were asked for. */
export interface SqlAnswer {
  took_ms: number;
  columns: TableColumn[];
  rows: Cell[][];
  more: boolean;
}

/** A question in SQL about one run (its tables) or several (the same, with a column run). */
export interface SqlAsk {
  runs: string[];
  query: string;
  limit?: number;
}

/** A stage near the point, and its share of the time. */
export interface StageAt {
  name: string;
  seconds: number;
  share: number;
}

/** A stage. */
export interface StageRow {
  name: string;
  depth: number;
  total: number;
  own: number;
  share: number;
  median: number | "-Infinity" | "Infinity" | "NaN" | null;
  p99: number | "-Infinity" | "Infinity" | "NaN" | null;
  calls: number;
}

/** Seconds of each stage (its own) per stretch of the axis. */
export interface StagesOver {
  x: (number | "-Infinity" | "Infinity" | "NaN" | null)[];
  width: number;
  seconds: { [name: string]: number[] };
  other: number[] | null;
}

/** Where it is; null: there is none. */
export interface StepAnswer {
  took_ms: number;
  at: number | "-Infinity" | "Infinity" | "NaN" | null;
}

/** Readings of the axis per second of wall time. */
export interface StepsASecond {
  now: number | "-Infinity" | "Infinity" | "NaN" | null;
  x: (number | "-Infinity" | "Infinity" | "NaN" | null)[];
  y: (number | "-Infinity" | "Infinity" | "NaN" | null)[];
}

/** A comparison that was planned beforehand and is stored with the runs. */
export interface StoredPlan {
  name: string;
  metric: string;
  by: string;
  score: string;
  arms: string[];
  seeds: number;
  first_look: number | null;
  alpha: number;
  looks: PlanLook[];
  verdicts: PlanVerdict[];
}

/** A sweep: the answer first, then what it rests on. */
export interface SweepAnswer {
  took_ms: number;
  project: string;
  projects: SweepProject[];
  key: string;
  keys: string[];
  x: string;
  at: number | "-Infinity" | "Infinity" | "NaN" | null;
  at_why: string;
  score: string;
  better: "higher" | "lower";
  sentence: string;
  todo: string;
  notes: string[];
  seeds: number | "-Infinity" | "Infinity" | "NaN" | null;
  chance: number | "-Infinity" | "Infinity" | "NaN" | null;
  settings: SweepSetting[];
  configurations: TriedConfiguration[];
  left_out: number;
}

/** Which setting of a sweep goes along with a score, which configuration may be the best, and what to run next. */
export interface SweepAsk {
  metric?: string;
  project?: string;
  score?: string;
  at?: number | "common end" | "own end";
  x?: string | null;
  direction?: "higher" | "lower" | null;
  seed?: number;
  filter?: string | null;
  search?: string | null;
  runs?: string[] | null;
}

/** Runs that were started for one question. */
export interface SweepProject {
  project: string;
  runs: number;
  configurations: number;
}

/** A setting that varies, the most important first. */
export interface SweepSetting {
  column: string;
  together: string[];
  share: number | "-Infinity" | "Infinity" | "NaN" | null;
  low: number | "-Infinity" | "Infinity" | "NaN" | null;
  high: number | "-Infinity" | "Infinity" | "NaN" | null;
  alone: number | "-Infinity" | "Infinity" | "NaN" | null;
  goes_with: string;
  alike: boolean;
  levels: number;
  why: string;
}

/** A column of a table. */
export interface TableColumn {
  name: string;
  type: string;
}

/** A window of a table's rows. */
export interface TablePage {
  took_ms: number;
  total: number;
  matched: number;
  offset: number;
  columns: TableColumn[];
  rows: { [name: string]: Cell }[];
}

/** A row of the table: a section (a project), a group, or a run. */
export interface TableRow {
  kind: "group" | "run" | "section";
  id: string;
  name: string;
  run?: string | null;
  project?: string;
  seed?: number | null;
  own?: string;
  group?: string | null;
  job_type?: string | null;
  status?: string;
  counts?: { [name: string]: number };
  created?: number | null;
  ended?: number | null;
  updated?: number | null;
  host?: string;
  tags?: string[];
  notes?: string;
  archived?: boolean;
  attempts?: number;
  x?: string;
  at?: number | null;
  total?: number | null;
  runs?: string[];
  run_count?: number;
  values?: { [name: string]: Cell };
  cells?: { [name: string]: Cell };
  pending?: string[];
  ends_in_nan?: { [name: string]: number };
  damaged?: string;
  open?: boolean;
  done?: number | null;
  section?: string;
  member_of?: string | null;
  alerts?: number;
}

/** A window of the texts. */
export interface TextAnswer {
  took_ms: number;
  total: number;
  keys: string[];
  rows: TextLine[];
}

/** The logged texts of a run; notes have the key "note". */
export interface TextAsk {
  where?: string | null;
  order_by?: string | null;
  limit?: number | null;
  attempts?: string | number[];
  search?: string | null;
  offset?: number;
  key?: string | null;
}

/** A logged text or note. */
export interface TextLine {
  time: number | null;
  key: string;
  text: string;
  x: number | "-Infinity" | "Infinity" | "NaN" | null;
  attempt?: number | null;
}

/** Stages as they followed each other. */
export interface TimelineAnswer {
  took_ms: number;
  since: number | null;
  until: number | null;
  first: number | null;
  last: number | null;
  names: string[];
  lanes: string[];
  spans: Span[];
}

/** Where the time goes: stages, and how that changed. */
export interface TimingsAnswer {
  took_ms: number;
  x: string;
  stages: StageRow[];
  over: StagesOver;
  steps_per_second: StepsASecond;
}

/** Where the time went near the point, and how long the same usually takes. */
export interface TimingsAt {
  seconds: number | "-Infinity" | "Infinity" | "NaN" | null;
  median: number | "-Infinity" | "Infinity" | "NaN" | null;
  stages: StageAt[];
}

/** A completion token by token. */
export interface Tokens {
  text: string[];
  columns: { [name: string]: (number | "-Infinity" | "Infinity" | "NaN" | null)[] };
}

/** A quantity of every step that was kept. */
export interface Trace {
  name: string;
  group: "action" | "info" | "observation" | "reward" | "value";
}

/** The header of the traces. */
export interface TracesEntry {
  episode: string;
  n: number;
  t: Cell;
  arrays: { [name: string]: Cell };
}

/** A configuration; its values are in the order of the settings. */
export interface TriedConfiguration {
  name: string;
  group: string;
  runs: string[];
  values: Cell[];
  mean: number | "-Infinity" | "Infinity" | "NaN" | null;
  std: number | "-Infinity" | "Infinity" | "NaN" | null;
  may_be_best: boolean;
  seeds: TriedSeed[];
  crashed: number;
  running: number;
  without_score: number;
}

/** A run that counts, and its score. */
export interface TriedSeed {
  run: string;
  seed: number | null;
  value: number | "-Infinity" | "Infinity" | "NaN" | null;
}

/** What became of the groups of one batch. */
export interface UnusedAnswer {
  took_ms: number;
  x: string;
  at: number | "-Infinity" | "Infinity" | "NaN" | null;
  groups: number;
  reasons: Reason[];
}

/** A key that left its usual range. */
export interface Unusual {
  key: string;
  value: number | "-Infinity" | "Infinity" | "NaN" | null;
  median: number | "-Infinity" | "Infinity" | "NaN" | null;
  low: number | "-Infinity" | "Infinity" | "NaN" | null;
  high: number | "-Infinity" | "Infinity" | "NaN" | null;
  times: number | "-Infinity" | "Infinity" | "NaN" | null;
  at: number | "-Infinity" | "Infinity" | "NaN" | null;
}

/** A key's value at the point (the nearest row), and the one before it. */
export interface Value {
  key: string;
  value: number | "-Infinity" | "Infinity" | "NaN" | null;
  before: number | "-Infinity" | "Infinity" | "NaN" | null;
  at: number | "-Infinity" | "Infinity" | "NaN" | null;
}

/** What is wrong with the files of a run, in words; none if it is sound. */
export interface VerifiedRun {
  run: string;
  id: string;
  problems: string[];
}

/** What is wrong with the files of runs, run by run. */
export interface VerifyAnswer {
  took_ms: number;
  runs: VerifiedRun[];
  unread: string[];
  sentences: string[];
}

/** What is wrong with the files of runs: what cannot be read or sealed, what is missing, what cannot be right. */
export interface VerifyAsk {
  quick?: boolean;
  runs?: string[] | null;
}
