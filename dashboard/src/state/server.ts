/** The live server: `rollbook ui`. Every address is relative to the page. */

import type * as api from "../api/names.ts";
import { FrameReader, type Frame } from "../data/frames.ts";
import { rowOf, type SentRow } from "../data/rows.ts";
import { timelineOf } from "../data/timeline.ts";
import { Refusal, type ScatterEntry, type Source, type Stream, type TraceEntry } from "./source.ts";

type Params = Record<string, string | number | null | undefined>;

function address(path: string, params: Params = {}): string {
  const words = Object.entries(params).filter(
    (pair): pair is [string, string | number] => pair[1] !== null && pair[1] !== undefined,
  );
  const query = new URLSearchParams(words.map(([name, v]): [string, string] => [name, String(v)])).toString();
  return `api/${path}${query === "" ? "" : `?${query}`}`;
}

const part = encodeURIComponent;

async function answer(response: Response): Promise<Response> {
  if (response.ok) return response;
  const body = (await response.json().catch(() => null)) as { error?: api.ErrorBody } | null;
  const error = body?.error;
  if (error) throw new Refusal(error.message, error.code, error.hint ?? null, error.at ?? null);
  throw new Refusal(
    `The server answered ${response.status} to ${new URL(response.url).pathname}.`,
    "failed",
    "Its terminal says more.",
  );
}

async function get<T>(path: string, params?: Params, signal?: AbortSignal): Promise<T> {
  const response = await answer(await fetch(address(path, params), signal ? { signal } : {}));
  return (await response.json()) as T;
}

async function send<T>(
  method: string,
  path: string,
  body: unknown,
  extra: { signal?: AbortSignal | undefined; headers?: Record<string, string> } = {},
): Promise<T> {
  const response = await answer(await post(method, path, body, extra));
  return (response.status === 204 ? undefined : await response.json()) as T;
}

function post(
  method: string,
  path: string,
  body: unknown,
  extra: { signal?: AbortSignal | undefined; headers?: Record<string, string> },
): Promise<Response> {
  return fetch(address(path), {
    method,
    headers: { "Content-Type": "application/json", ...extra.headers },
    body: body === undefined ? null : JSON.stringify(body),
    signal: extra.signal ?? null,
  });
}

async function stream<Entry>(response: Response, on: Stream<Entry>): Promise<void> {
  const reader = (await answer(response)).body?.getReader();
  const frames = new FrameReader<Entry>();
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    for (const frame of frames.push(value)) on(frame);
  }
  if (frames.unfinished)
    throw new Refusal("The answer was cut off.", "offline", "It is asked for again when the server answers.");
}

async function single<Entry>(path: string, params: Params): Promise<Frame<Entry>> {
  const got: Frame<Entry>[] = [];
  await stream<Entry>(await fetch(address(path, params)), (frame) => got.push(frame));
  const [first] = got;
  if (!first) throw new Refusal("The server sent an empty answer.", "failed");
  return first;
}

const NEWEST = 'time desc, writer desc, lane desc, seq desc, "index" desc';
const NEWEST_ROLLOUTS = 'time desc, seq desc, "index" desc'; // all that a server keeps of their order

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** A window of a table in the words of the server; the newest come first where nothing else is asked for. */
function inSql<Query extends api.Sorted & { where?: string | null }>(
  { sort, box, ...query }: Query,
  usual: string | null = NEWEST,
): object {
  const place = (name: string): string =>
    name === "time" ? "epoch_us(time) / 1e6" : `try_cast(${quoted(name)} as double)`;
  const inside = box && [
    `${place(box.x)} between ${box.x0} and ${box.x1}`,
    `${place(box.y)} between ${box.y0} and ${box.y1}`,
  ];
  const where = [...(query.where ? [`(${query.where}\n)`] : []), ...(inside ?? [])].join(" and ");
  const by = (sort ?? []).map(({ column, descending }) => quoted(column) + (descending ? " desc" : ""));
  return { ...query, ...(where === "" ? {} : { where }), order_by: by.length > 0 ? by.join(", ") : usual };
}

export class Server implements Source {
  readonly live = true;
  private token = "";

  async hello(): Promise<api.Hello> {
    const hello = await get<api.Hello>("hello");
    this.token = hello.edit_token;
    return hello;
  }
  runs = async (query: api.RunsQuery, signal?: AbortSignal): Promise<api.RunsAnswer> => {
    const answer = await send<Omit<api.RunsAnswer, "rows"> & { rows: SentRow[] }>("POST", "runs", query, { signal });
    return { ...answer, rows: answer.rows.map(rowOf) };
  };
  columns = (runs?: string[]) => send<api.ColumnsAnswer>("POST", "columns", runs ? { runs } : {});
  keys = (runs: string[]) => send<api.KeysAnswer>("POST", "keys", { runs });
  reading = () => get<api.ReadingAnswer>("reading", {});
  newest = async (table: string) => (await get<api.NewestAnswer>("newest", { table })).run;
  run = (run: string) => get<api.RunDetail>(`runs/${part(run)}`);
  series: Source["series"] = async (query, on, signal) => stream(await post("POST", "series", query, { signal }), on);
  curves: Source["curves"] = async (query, on, signal) => stream(await post("POST", "curves", query, { signal }), on);
  marks = (runs: string[], x: string | null) => send<api.Marks>("POST", "marks", { runs, x });
  cause: Source["cause"] = (run, x, at, key, window) => get(`runs/${part(run)}/cause`, { x, at, key, window });
  step: Source["step"] = (run, x, at, key, by) => get(`runs/${part(run)}/step`, { x, at, key, by });
  episodes: Source["episodes"] = (run, query) => send("POST", `runs/${part(run)}/episodes`, inSql(query));
  scatter: Source["scatter"] = (run, x, y) => single<ScatterEntry>(`runs/${part(run)}/scatter`, { x, y });
  episodeIds: Source["episodeIds"] = (run, rows) =>
    get(`runs/${part(run)}/episode-ids?${rows.map((row) => `rows=${row}`).join("&")}`);
  episode: Source["episode"] = (run, episode) => get(`runs/${part(run)}/episodes/${part(episode)}`);
  traces: Source["traces"] = (run, episode, names) => {
    const query = names.map((name) => `names=${part(name)}`).join("&");
    return single<TraceEntry>(
      `runs/${part(run)}/episodes/${part(episode)}/traces${query === "" ? "" : `?${query}`}`,
      {},
    );
  };
  rollouts: Source["rollouts"] = (run, query, signal) =>
    send("POST", `runs/${part(run)}/rollouts`, inSql(query, NEWEST_ROLLOUTS), { signal });
  rollout = (run: string, id: string) => get<api.OneRollout>(`runs/${part(run)}/rollouts/${part(id)}`);
  fates: Source["fates"] = (run, only) =>
    get(
      `runs/${part(run)}/fates`,
      only === undefined ? {} : only === "brief" || only === "counts" ? { [only]: "true" } : { part: only },
    );
  prompts: Source["prompts"] = (run, { above, ...query }, signal) =>
    send(
      "POST",
      `runs/${part(run)}/prompts`,
      { ...inSql(query, null), ...(above == null ? {} : { solved: above }) },
      {
        signal,
      },
    );
  sharedPrompts = (run: string, other: string, asked: { part?: string; above?: number }) =>
    get<api.SharedPrompts>(`runs/${part(run)}/shared-prompts`, { other, ...asked });
  samples: Source["samples"] = (run, query, signal) =>
    send("POST", `runs/${part(run)}/samples`, inSql(query), { signal });
  sample: Source["sample"] = (run, id) => get(`runs/${part(run)}/sample`, { id });
  sampleGroup: Source["sampleGroup"] = (run, id) => get(`runs/${part(run)}/sample/group`, { id });
  sampleHistory: Source["sampleHistory"] = (run, id) => get(`runs/${part(run)}/sample/history`, { id });
  novelty: Source["novelty"] = (run) => get(`runs/${part(run)}/novelty`);
  unused: Source["unused"] = (run, at) => get(`runs/${part(run)}/unused`, { at });
  timings: Source["timings"] = (run, x) => get(`runs/${part(run)}/timings`, { x });
  timeline: Source["timeline"] = async (run, since, until, pixels, signal) =>
    timelineOf(await get(`runs/${part(run)}/timeline`, { since, until, pixels }, signal));
  cost: Source["cost"] = (run) => get(`runs/${part(run)}/cost`);
  compare: Source["compare"] = (query) => send("POST", "compare", query);
  sweep: Source["sweep"] = (query) => send("POST", "sweep", query);
  diff: Source["diff"] = (groups) => send("POST", "diff", { by: groups, kinds: ["config"] });
  health: Source["health"] = (run) => get(`runs/${part(run)}/health`);
  findings: Source["findings"] = () => send("POST", "findings", {});
  logs: Source["logs"] = (run) => get(`runs/${part(run)}/logs`);
  log: Source["log"] = (run, name, where) => get(`runs/${part(run)}/log`, { name, ...where });
  files: Source["files"] = (run) => get(`runs/${part(run)}/files`);
  patch: Source["patch"] = (run) => get(`runs/${part(run)}/patch`);
  media: Source["media"] = (run) => send("POST", `runs/${part(run)}/media`, { limit: 1000, order_by: NEWEST });
  text: Source["text"] = (run) => send("POST", `runs/${part(run)}/text`, { limit: 1000, order_by: NEWEST });
  histograms: Source["histograms"] = (run, key) =>
    get(`runs/${part(run)}/histograms`, key === undefined ? {} : { key });
  config: Source["config"] = (run) => get(`runs/${part(run)}/config`);
  boards: Source["boards"] = () => get("boards");
  saveBoard: Source["saveBoard"] = (board) =>
    this.change("PUT", `boards/${part(board.name)}`, { state: board.state, first: board.first ?? null });
  removeBoard: Source["removeBoard"] = (name) => this.change("DELETE", `boards/${part(name)}`, undefined);
  remove: Source["remove"] = (query) => this.change("POST", "remove", query);
  restore: Source["restore"] = (ids) => this.change("POST", "restore", { ids });
  edit: Source["edit"] = (query) => this.change("POST", "edit", query);
  label: Source["label"] = (query) => this.change("POST", "label", query);
  keepColors: Source["keepColors"] = (query) => this.change("PUT", "colors", query);
  sql: Source["sql"] = (query) => send("POST", "sql", query);
  fileAddress = (run: string, path: string) => `files/${part(run)}/${path.split("/").map(part).join("/")}`;
  csvAddress = (runs: string[], keys: string[], x: string | null) => {
    const words = [
      ...runs.map((run) => ["run", run]),
      ...keys.map((key) => ["key", key]),
      ...(x === null ? [] : [["x", x]]),
    ];
    return `api/export.csv?${new URLSearchParams(words).toString()}`;
  };

  private change<T>(method: string, path: string, body: unknown): Promise<T> {
    return send<T>(method, path, body, { headers: { "X-Rollbook-Edit": this.token } });
  }
}
