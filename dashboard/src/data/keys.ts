/** Keys of metrics: the one to look at first, sections by scope, search. */

import type { KeyInfo } from "../api/names.ts";
import type { Matcher } from "./search.ts";

/** What stands for how well training goes, the most telling first. */
const TELLING = [
  /^(test|eval|evaluation|evaluate)\/.*(return|reward|score|success)(?!.*(std|min|max|length))/i,
  /(^|\/)(episode_)?return(_mean|s)?$/i,
  /ep_rew_mean$|episode_reward_mean$|(^|\/)reward(_mean|\/mean)?$|mean_reward$/i,
  /return|reward|score|success|accuracy/i,
  /loss/i,
  /kl|entropy|variance|length/i,
];

/** Scopes of the machine and of rollbook itself: never what training is about. */
const LATE = ["time", "timings", "host", "system", "rollbook", "samples"];

/** What only counts: where training is, how long it takes. Compared without scope, `_`, blanks, capitals, plural. */
const COUNTS = new Set(
  [
    "env_step gradient_step train_iter epoch episode policy_version step global_step iteration training_iteration",
    "round update num_updates n_updates count learner_step update_step total_steps total_timesteps timesteps",
    "num_timesteps timesteps_total total_env_steps total_env_interacts total_envstep_count total_episode_count",
    "total_frames total_num_steps agent_steps num_env_steps_sampled num_env_steps_sampled_lifetime",
    "num_episodes_lifetime frames num_tokens num_input_tokens_seen episodes_total counters_total_frames",
    "time seconds elapsed_seconds time_elapsed time_total_s total_time uptime walltime wall_time runtime timestamp",
    "fps total_fps sps steps_per_second env_steps_per_second samples_per_second collect_speed train_speed",
    "avg_envstep_per_sec step_inference_rl_update_fps itr cum_steps episodes_so_far timesteps_so_far",
    "train_envsteps_so_far number_of_env_steps_total num_steps_total tcount",
  ]
    .join(" ")
    .split(" ")
    .map(plainly),
);

function plainly(name: string): string {
  return name.toLowerCase().replace(/[_ #]/g, "").replace(/s$/, "");
}

/** Clocks and counters by their canonical name: all of `time/`, and how many updates there were. */
const isCount = ({ key, canonical }: Named): boolean =>
  /^time\/|^update\/count$/.test(canonical ?? "") ||
  COUNTS.has(plainly((key.split("/").at(-1) as string).replace(/^counted_/, "")));

const SPREAD = /(^|[/_])(std|sd|min|max|best)$|(^|\/)seconds$/;

function ranked<K extends Named>(keys: readonly K[]): K[] {
  const most = keys.reduce((n, { runs }) => Math.max(n, runs), 0);
  const rank = ({ key, runs, canonical }: K): number => {
    const at = TELLING.findIndex((telling) => telling.test(key) || telling.test(canonical ?? key));
    return (
      (at < 0 ? TELLING.length : at) +
      (SPREAD.test(key) ? 10 : 0) +
      (LATE.includes(key.split("/")[0] as string) ? 30 : 0) +
      (runs < most * 0.4 ? 20 : 0)
    );
  };
  return keys
    .map((one) => ({ one, rank: rank(one) }))
    .sort((a, b) => a.rank - b.rank || b.one.runs - a.one.runs)
    .map(({ one }) => one);
}

/** The key that shows how training goes, of those that many runs have; null when there is none at all. */
export function telling(keys: readonly Named[]): string | null {
  return ranked(keys)[0]?.key ?? null;
}

/** What stands in the column `return`: the test's, else that of training, else its reward, which is said then. */
export const RETURNS = ["test/return", "train/return", "train/reward"];

/** Keys with their runs, of RETURNS those of all: where each run has another of them, they stand in one column. */
export function asOne<Of extends Named>(keys: readonly Of[]): Of[] {
  const runs = keys.reduce((sum, one) => sum + (RETURNS.includes(one.key) ? one.runs : 0), 0);
  return keys.map((one) => (RETURNS.includes(one.key) ? { ...one, runs } : one));
}

interface Named {
  key: string;
  runs: number;
  canonical?: string | null | undefined;
}

/** What people of this field look at first, one key of each, by its canonical name or by what others call it. */
const LOOKED_AT: { names: string[]; like: RegExp }[] = [
  { names: ["test/return", "train/return", "test/success_rate", "train/reward"], like: /./ }, // `telling` finds it
  {
    names: ["train/length", "test/length", "train/completion_length"],
    like: /(ep|episode)\w*_?len(gth)?(_mean)?$|(^|\/)length(_mean|\/mean)?$/i,
  },
  {
    names: ["update/loss/policy", "update/loss/total", "update/loss/q"],
    like: /(policy|actor|pg)\w*loss|loss\/(policy|pi|actor)|(^|[/_])loss$/i,
  },
  { names: ["update/entropy", "update/loss/entropy"], like: /entropy(?!.*coef)/i },
  {
    names: ["update/approx_kl", "update/kl", "update/kl_to_reference", "update/approx_kl_k1"],
    like: /(^|[/_])kl([/_]|$)/i,
  },
  {
    names: ["update/loss/value", "update/loss/q", "update/loss/q1"],
    like: /(value|critic|vf|q)\w*loss|loss\/(value|v|vf|critic|qf?\d?)$/i,
  },
];

const isLate = (key: string): boolean => LATE.includes(key.split("/")[0] as string);

/**
 * The keys that are pinned when nobody chose: return, length, loss, entropy, KL and value loss where there are such,
 * then what tells most; never clocks and counters, the machine's or rollbook's own.
 */
export function pinnedFirst(keys: readonly Named[], many = 6): string[] {
  const all = ranked(keys.filter((one) => !isLate(one.key) && !isCount(one) && !SPREAD.test(one.key)));
  const [first] = all;
  if (first === undefined) return [];
  const chosen = [first.key];
  const isFree = ({ key, canonical }: Named): boolean => !chosen.includes(key) && !chosen.includes(canonical ?? key);
  for (const { names, like } of LOOKED_AT.slice(1)) {
    const free = all.filter(isFree);
    const byName = names.flatMap((name) => free.filter(({ key, canonical }) => key === name || canonical === name));
    const next = byName[0] ?? free.find(({ key }) => like.test(key));
    if (next !== undefined) chosen.push(next.key);
  }
  for (const one of all) if (chosen.length < many && isFree(one)) chosen.push(one.key);
  return chosen.slice(0, many);
}

export interface Section {
  scope: string;
  keys: KeyInfo[];
  /** How many of this scope there are before the search and without what is pinned. */
  of: number;
}

/** Keys by scope, without those that stand above already: what training is about first, the machine last. */
export function sections(keys: readonly KeyInfo[], search: Matcher | null, above: readonly string[] = []): Section[] {
  const all = new Map<string, Section>();
  for (const info of keys) {
    const scope = info.key.includes("/") ? (info.key.split("/")[0] as string) : "";
    const section = all.get(scope) ?? { scope, keys: [], of: 0 };
    all.set(scope, section);
    section.of += 1;
    if (search === null ? !above.includes(info.key) : search.test(info.key)) section.keys.push(info);
  }
  const late = (scope: string): number => LATE.indexOf(scope) + 1;
  return [...all.values()]
    .filter((section) => section.keys.length > 0)
    .map((section) => ({ section, rank: rank(section) }))
    .sort(
      ({ section: a, rank: i }, { section: b, rank: k }) =>
        late(a.scope) - late(b.scope) || i - k || ALPHABET.compare(a.scope, b.scope),
    )
    .map(({ section }) => ({ ...section, keys: section.keys.sort((a, b) => ALPHABET.compare(a.key, b.key)) }));
}

/** `layer_2` before `layer_10`. Made once: a thousand keys are compared ten thousand times. */
const ALPHABET = new Intl.Collator("en", { numeric: true });

function rank(section: Section): number {
  const at = TELLING.findIndex((telling) => section.keys.some(({ key }) => telling.test(key)));
  return at < 0 ? TELLING.length : at;
}

/** How many of `columns` the first of `many` charts takes, so that the last row of them is full. */
export const heroSpan = (many: number, columns: number): number => columns - ((Math.max(1, many) - 1) % columns);

/**
 * Sections in rows of `columns` charts: a small one shares its row with the next that fits into what is left of it.
 * Each gets how many columns it takes.
 */
export function packed<S extends { keys: readonly unknown[] }>(
  all: readonly S[],
  columns: number,
): (S & { span: number })[] {
  const left = all.map((one) => ({ ...one, span: Math.max(1, Math.min(columns, one.keys.length)) }));
  const out: (S & { span: number })[] = [];
  let room = 0;
  while (left.length > 0) {
    if (room === 0) room = columns;
    const at = left.findIndex(({ span }) => span <= room);
    const [next] = left.splice(Math.max(0, at), 1);
    if (next === undefined) break;
    out.push(next);
    room = at < 0 ? columns - next.span : room - next.span;
  }
  return out;
}

/** `test/return` as its grey scope and its bold name. */
export function split(key: string): { scope: string; name: string } {
  const cut = key.indexOf("/");
  return cut < 0 ? { scope: "", name: key } : { scope: key.slice(0, cut + 1), name: key.slice(cut + 1) };
}

/** The keys of a chart: of an expression, which begins with "=", those in quotes; else its own. */
export const chartKeys = (name: string): string[] =>
  name.startsWith("=") ? [...name.matchAll(/"([^"]+)"/g)].map((match) => match[1] as string) : [name];
