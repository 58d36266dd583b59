import { afterEach, expect, test, vi } from "vitest";
import { Copy } from "./copy.ts";

const rows = [3, 2, 1].map((n) => ({ id: `s${n}`, cells: { reward: n, group: n > 1 ? "g" : "h" } }));
const episodes = [3, 2, 1].map((n) => ({ episode_id: `e${n}`, video: n === 2, return: n }));
const FILES: { [path: string]: unknown } = {
  "runs/r/samples.json": { total: 9, matched: 9, offset: 0, columns: [], rows },
  "runs/r/ids.json": { ids: ["e1", "e2", "e3"], videos: 4, traced: 0 },
  "marks.json": { marks: [{ run: "r", x: 1 }], axes: { r: "env_step" } },
  "runs/r/episodes.json": { total: 9, matched: 9, offset: 0, columns: [], rows: episodes },
  "runs/r/rollouts.json": { total: 9, matched: 9, offset: 0, columns: [], rows, fates: { used: 9 } },
  "runs/r/groups.json": {
    total: 9,
    matched: 9,
    groups: 4,
    offset: 0,
    columns: [],
    rows: [{ ...rows[0], group: { n: 2 } }],
  },
  "runs/r/prompts.json": { total: 1, never: 1, sometimes: 0, always: 0, rows: [{ id: "p", solved: 0, rollouts: 4 }] },
  "compare/index.json": [{ key: "loss", runs: [["a"], ["b"]], file: "0.json" }],
  "compare/0.json": { sentence: "a is ahead" },
  "sweep/index.json": [{ project: "p", key: "loss", file: "0.json" }],
  "sweep/0.json": { project: "p" },
  "curves/index.json": {},
};

vi.stubGlobal("fetch", (path: string) =>
  Promise.resolve(
    path.replace("data/", "") in FILES
      ? new Response(JSON.stringify(FILES[path.replace("data/", "")]))
      : new Response("", { status: 404 }),
  ),
);
afterEach(() => vi.clearAllMocks());

const copy = new Copy();
const by = [
  { name: "one", runs: ["a"] },
  { name: "two", runs: ["b"] },
];

test("a copy answers the questions that it has recorded", async () => {
  expect((await copy.samples("r", { limit: 2 })).rows.map(({ id }) => id)).toEqual(["s3", "s2"]);
  expect((await copy.rollouts("r", { by_group: true })).groups).toBe(4);
  expect((await copy.rollouts("r", { group: "s3" })).rows.map(({ id }) => id)).toEqual(["s3", "s2"]);
  const filmed = await copy.episodes("r", { video: true, limit: 1 });
  expect([filmed.matched, filmed.rows.map((row) => row["episode_id"])]).toEqual([4, ["e2"]]);
  expect((await copy.marks(["r"], "env_step")).marks).toHaveLength(1);
  expect((await copy.marks(["r"], "episode")).marks).toEqual([]);
  expect((await copy.prompts("r", { only: "never" })).matched).toBe(1);
  expect(await copy.compare({ metric: "loss", by, opened: true, statistic: "iqm" })).toEqual({
    sentence: "a is ahead",
  });
  expect(await copy.sweep({ metric: "loss", project: "p" })).toEqual({ project: "p" });
});

test.each([
  ["samples by words", () => copy.samples("r", { search: "four" })],
  ["samples by a condition", () => copy.samples("r", { where: "reward > 1" })],
  ["samples in another order", () => copy.samples("r", { sort: [{ column: "reward" }], limit: 1 })],
  ["each sample once", () => copy.samples("r", { unique: true })],
  ["rollouts by words", () => copy.rollouts("r", { search: "four" })],
  ["rollouts of a fate", () => copy.rollouts("r", { where: "used and reason is null" })],
  ["rollouts in another order", () => copy.rollouts("r", { sort: [{ column: "reward" }] })],
  ["groups in another order", () => copy.rollouts("r", { by_group: true, sort: [{ column: "reward" }] })],
  ["the group of a rollout that is not among the newest as a whole", () => copy.rollouts("r", { group: "s1" })],
  ["more episodes than are here", () => copy.episodes("r", { video: true, limit: 100 })],
  ["episodes by a condition", () => copy.episodes("r", { where: '"return" > 1' })],
  ["solved above another number", () => copy.prompts("r", { above: 0.9 })],
  ["a comparison of medians", () => copy.compare({ metric: "loss", by, statistic: "median" })],
  ["a comparison at another place", () => copy.compare({ metric: "loss", by, at: 50 })],
  ["a comparison by another score", () => copy.compare({ metric: "loss", by, score: "last" })],
  ["a comparison of other groups", () => copy.compare({ metric: "loss", by: by.slice(1) })],
  ["a sweep of the runs that fit", () => copy.sweep({ metric: "loss", search: "seed 1" })],
  ["a sweep by another score", () => copy.sweep({ metric: "loss", score: "best" })],
  ["curves of medians", () => copy.curves({ by, keys: ["loss"], statistic: "median" }, () => undefined)],
  ["a log by words", () => copy.log("r", "train.log", { search: "nan" })],
  ["what happened at a point", () => copy.cause("r", "env_step", 1, "loss", null)],
  ["SQL", () => copy.sql()],
])("a copy says that it has no answer: %s", async (_, ask: () => Promise<unknown>) => {
  await expect(ask()).rejects.toMatchObject({ code: "static", hint: expect.stringContaining("rollbook") as string });
});
