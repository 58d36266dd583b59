/** The rows of the runs table: asked for in windows, refreshed when the server says that something changed. */

import { computed, effect, signal } from "@preact/signals";
import type { GroupRow, Row, RunRow, RunsAnswer, SortBy } from "../../api/names.ts";
import { askedOf } from "../../data/search.ts";
import { colorsOfValues, dashOf, type Drawn, type Owner } from "../../data/colors.ts";
import { fullName, shortNames, withIds } from "../../data/names.ts";
import { address, addressOf, joined, say } from "../../state/address.ts";
import { colors, colorsKnown } from "../../state/colors.ts";
import type { Entity } from "../../state/feed.ts";
import { source } from "../../state/here.ts";
import { hear, reborn } from "../../state/live.ts";
import { Windows } from "../../state/windows.ts";
import * as view from "./view.ts";

const FIRST = 5;
/** So many are all drawn: a study of a few groups is seen whole. */
const FEW = 8;
const firstOf = (ids: readonly string[]): readonly string[] => (ids.length > FEW ? ids.slice(0, FIRST) : ids);

/** How a run is called among others; among those of its group, `short`. */
export const runName = (row: { name: string; own: string; seed: number | null }, short = false): string =>
  short && row.seed !== null ? `seed ${row.seed}` : fullName(row);

export const rowId = (row: Row): string => (row.kind === "run" ? row.run : row.id);

export const columnsWanted = signal<string[]>([]);
const pinned = signal<Row[]>([]);
export const pointerInside = signal(false);
/** Newer rows are known whose order waits until the pointer has left. */
export const orderWaits = signal(false);

type TableAnswer = RunsAnswer & { total: number; runs: number; selects: string };

function sortOf(text: string): SortBy[] {
  if (text === "") return [];
  const descending = text.startsWith("-");
  const column = descending ? text.slice(1) : text;
  // The test's return first, then, of runs without one, that of training.
  const by = column === "return" ? ["last:test/return", "last:train/return"] : [column];
  return by.map((one) => ({ column: one, descending }));
}

const groups = (text: string): string[] | null => (text === "none" ? null : text.split(",").filter((c) => c !== ""));

/** The text over the table, and what was found elsewhere: a condition, words. */
const asked = computed(() => {
  const { filter = "", search = "" } = askedOf(view.filter.value);
  return { filter, search: [search, view.search.value].filter((words) => words !== "").join(" ") };
});

export const query = computed(() => ({
  ...asked.value,
  sort: sortOf(view.sort.value),
  group_by: groups(view.grouping.value),
  open: view.opened.value,
  archived: view.archived.value === "1",
  columns: columnsWanted.value,
}));

/** What is asked, as a text: equal questions are one, however often the address changes beside them. */
const question = computed(() => JSON.stringify(query.value));

/** What of it decides which rows there are and how they lie; cells do not. */
const layout = computed(() => JSON.stringify({ ...query.value, columns: [] }));

/** What of the question decides which runs there are; order and cells do not. */
const selects = computed(() =>
  JSON.stringify([view.filter.value, view.search.value, view.grouping.value, view.archived.value]),
);

async function ask(offset: number, limit: number, signal: AbortSignal): Promise<TableAnswer> {
  const { filter, search, ...rest } = query.peek();
  const now = selects.peek();
  const first =
    table.answer.peek() === null
      ? {
          drawn: drawn.peek().map(({ id }) => id),
          draw_first: FEW,
        }
      : {};
  const answer = await source.runs(
    { ...rest, ...first, offset, limit, ...(filter === "" ? {} : { filter }), ...(search === "" ? {} : { search }) },
    signal,
  );
  await colorsKnown;
  for (const row of answer.rows) known.set(rowId(row), row);
  if (!signal.aborted && now === table.answer.peek()?.selects) follow(answer.rows);
  return { ...answer, runs: answer.total, total: answer.rows_total, selects: now };
}

/** Every row seen so far, by its id. */
const known = new Map<string, Row>();
export const table = new Windows<Row, TableAnswer>(ask);

/** The rows on the screen are those of an earlier question; the answer to this one is on its way. */
export const isBehind = computed(
  () => table.answer.value !== null && table.error.value === null && table.answer.value.selects !== selects.value,
);

export function startTable(): () => void {
  let laid = "";
  const stops = [
    effect(() => {
      // the address came from elsewhere: a link, a reload, the way back
      const said = view.unchosen.value;
      if (said.length === 0 || view.written(said) === view.written(held.peek().rows)) return;
      arrived = true;
      held.value = { selects: selects.peek(), rows: said };
    }),
    effect(() => {
      const asked = selects.value;
      const rows = firstRows.value;
      if (rows.length === 0 || table.answer.value?.selects !== asked) return;
      if (held.peek().selects !== asked) held.value = { selects: asked, rows };
      else if (arrived) held.value = { selects: asked, rows: filledUp(rows) };
      arrived = false;
    }),
    effect(() => {
      const auto = view.drawn.value.length > 0 ? "" : view.written(held.value.rows);
      // While one goes to another page, its address is there before this one is gone.
      if (address.peek().page === "runs" && auto !== view.written(view.unchosen.peek())) say({ auto });
    }),
    effect(() => {
      // a colour out of a link is that of its run from now on, where it had none
      void table.changed.value;
      for (const { id, color } of view.drawn.value) if (known.has(id)) colors.offer(owner(id), color);
    }),
    effect(() => {
      void question.value;
      const now = `${layout.value} ${reborn.value}`;
      if (now === laid) void table.renew();
      else void table.again();
      laid = now;
    }),
    effect(() => void askPinned(view.pinnedRuns.value)),
    hear("runs", () => void refresh()),
    effect(() => {
      if (!pointerInside.value && orderWaits.peek()) {
        orderWaits.value = false;
        void table.again();
      }
    }),
  ];
  return () => stops.forEach((stop) => stop());
}

/** Live rows never move what is under the pointer: cells are renewed in place, the order when the pointer has left. */
async function refresh(): Promise<void> {
  if (!pointerInside.peek() && document.querySelector(".grid :popover-open") === null) return table.renew();
  orderWaits.value = true;
  const answer = await ask(0, 200, new AbortController().signal).catch(() => null);
  if (!answer) return;
  const newer = new Map(answer.rows.map((row) => [rowId(row), row]));
  table.patch((row) => newer.get(rowId(row)) ?? row);
}

async function askPinned(ids: string[]): Promise<void> {
  const missing = ids.filter((id) => !known.has(id));
  if (missing.length > 0) {
    const columns = columnsWanted.peek();
    await source.runs({ runs: missing, columns, limit: 50, sections: false, group_by: null, archived: true }).then(
      (answer) => answer.rows.forEach((row) => known.set(rowId(row), row)),
      () => undefined,
    );
  }
  pinned.value = ids.map((id) => known.get(id)).filter((row): row is Row => row !== undefined);
}

export const pinnedRows = computed(() => {
  void table.changed.value;
  return pinned.value.map((row) => known.get(rowId(row)) ?? row);
});

export function rowAt(index: number): Row | undefined {
  const top = pinnedRows.peek();
  return index < top.length ? top[index] : table.row(index - top.length);
}

/** A group may get another id, when a run with another configuration comes: it stays drawn, and it stays open. */
function follow(rows: readonly Row[]): void {
  const there = new Set(rows.map(rowId));
  const renamed = new Map<string, string>();
  const opened = view.opened.peek();
  for (const id of new Set([...drawn.peek().map((one) => one.id), ...opened])) {
    const old = known.get(id);
    if (there.has(id) || old?.kind !== "group") continue;
    const now = rows.find((row) => row.kind === "group" && old.runs.some((run) => row.runs.includes(run)));
    if (now) renamed.set(id, rowId(now));
  }
  if (renamed.size === 0) return;
  if (drawn.peek().some(({ id }) => renamed.has(id))) {
    const next = drawn.peek().map(({ id, color }) => ({ id: renamed.get(id) ?? id, color }));
    if (view.drawn.peek().length > 0) view.sayDrawn(next);
    else held.value = { ...held.peek(), rows: next };
  }
  if (opened.some((id) => renamed.has(id))) say({ open: joined(opened.map((id) => renamed.get(id) ?? id)) });
}

const owner = (id: string): Owner => {
  const row = known.get(id);
  return { id, runs: row === undefined || row.kind === "section" ? [] : row.kind === "run" ? [row.run] : row.runs };
};

/** What was drawn first for a question of the user's: it stays, whatever runs come later. */
const held = signal<{ selects: string; rows: Drawn[] }>({ selects: "", rows: [] });

/** What was drawn last where nobody chose. */
export const unchosen = (): readonly Drawn[] => held.peek().rows;

/** What is drawn when nobody chose: what were the first groups or runs of the table when it was asked for. */
const firstRows = computed(() => {
  void table.changed.value;
  const asked = selects.value;
  if (held.value.selects === asked || table.answer.value?.selects !== asked) return held.value.rows;
  return inColors(projects()[0]?.ids ?? []);
});

/** What an address said came just now, and no answer of the table yet. */
let arrived = false;

/** Where all rows were drawn, because they were few, those that came since are drawn, too. */
function filledUp(rows: readonly Drawn[]): Drawn[] {
  const first = projects()[0]?.ids ?? [];
  const more = first.filter((id) => !rows.some((one) => one.id === id));
  if (more.length === first.length) return [...rows]; // of another project
  const room = Math.max(0, firstOf(first).length - rows.length);
  return [...rows, ...colors.given(more.slice(0, room).map(owner), rows)];
}

/** Rows that nobody chose: all if they are few, else the first ones; in their colours. */
const inColors = (ids: readonly string[]): Drawn[] => colors.given(firstOf(ids).map(owner));

const projectOf = (row: GroupRow | RunRow): string => (row.kind === "run" ? row.project : row.section);

/** A project, and its rows that can be drawn. */
export interface Project {
  name: string;
  ids: string[];
}

/** Projects with a row to draw, the newest first. */
export function projects(): Project[] {
  void table.changed.value;
  const found: Project[] = [];
  for (const row of table.known()) {
    if (row.kind === "section" || found.length === 0)
      found.push({ name: row.kind === "section" ? row.name : projectOf(row), ids: [] });
    found.at(-1)?.ids.push(...drawable([row]));
  }
  return found.filter(({ ids }) => ids.length > 0);
}

/** How many letters the column of names has. */
export const nameLetters = signal(24);

/** Row -> what tells it from the others of its project, at the room there is; its own name where that fits. */
export const toldNames = computed(() => {
  void table.changed.value;
  const rows = [...pinned.value, ...table.known()].filter((row) => row.kind !== "section");
  const places = new Map<string, [id: string, name: string][]>(); // of thousands of rows: each is looked at once
  for (const row of rows) {
    const member = row.kind === "run" && row.member_of !== null;
    const name = row.kind === "run" ? runName(row, member) : row.name;
    const beside = member ? `of ${row.member_of}` : projectOf(row);
    const others = places.get(beside);
    if (others) others.push([rowId(row), name]);
    else places.set(beside, [[rowId(row), name]]);
  }
  const told = new Map<string, string>();
  for (const [place, some] of places) {
    const letters = nameLetters.value - (place.startsWith("of ") ? 2 : 0);
    const names = withIds(
      some.map(([, name]) => name),
      some.map(([id]) => id),
    );
    const short = shortNames(names, letters, true);
    some.forEach(([id], i) => told.set(id, short[i] as string));
  }
  return told;
});

/** The name of a row that can be drawn. */
export function rowName(id: string): string {
  const row = known.get(id);
  return row === undefined || row.kind === "section" ? id : row.kind === "run" ? runName(row) : row.name;
}

/** Draws the first rows of a project, and nothing else. */
export const drawFirst = (ids: readonly string[]): void => view.sayDrawn(inColors(ids));

export const drawn = computed(() => {
  const said = view.drawn.value;
  void table.changed.value;
  return (said.length === 0 ? firstRows.value : said)
    .filter((one) => one.id !== "")
    .map(({ id, color }) => ({ id, color: (known.has(id) ? colors.of(owner(id)) : undefined) ?? color }));
});

/** A hand chose a colour for a row, which is drawn then. */
export function chooseColor(id: string, color: number): void {
  colors.choose(owner(id), color);
  const now = drawn.peek();
  view.sayDrawn(
    now.some((one) => one.id === id)
      ? now.map((one) => (one.id === id ? { id, color } : one))
      : [...now, { id, color }],
  );
}

/** The values of the setting that gives the colours, as far as rows with it were seen. */
export const valueColors = computed(() => {
  void table.changed.value;
  const by = view.colorBy.value;
  if (by === "") return null;
  return colorsOfValues([...known.values()].flatMap((row) => (row.kind === "section" ? [] : [settingOf(row, by)])));
});

function settingOf(row: GroupRow | RunRow, setting: string): unknown {
  const cell = row.cells[setting] as unknown;
  return cell !== null && typeof cell === "object" && "distinct" in cell ? null : cell;
}

/** The colour in which a row is shown: its own, or that of its value of a setting; grey where it has several. */
function shownColor(id: string, own: number): number {
  const [values, row] = [valueColors.value, known.get(id)];
  if (values === null || row === undefined || row.kind === "section") return own;
  return values.get(JSON.stringify(settingOf(row, view.colorBy.value))) ?? 0;
}

export const colorOf = computed(() => new Map(drawn.value.map(({ id, color }) => [id, shownColor(id, color)])));

/** Groups, and runs that are in none: what can be drawn of the rows that fit, in their order. */
const drawable = (rows: Iterable<Row>): string[] =>
  [...rows].flatMap((row) =>
    row.kind === "section" || (row.kind === "run" && row.member_of !== null && view.grouping.value !== "none")
      ? []
      : [rowId(row)],
  );

const MOST = 200; // groups or runs in one chart: beyond that nobody tells lines apart, and links grow too long

async function allRows(): Promise<string[]> {
  if ([...table.known()].length < table.total.peek()) {
    const { rows } = await ask(0, 1000, new AbortController().signal);
    return drawable(rows);
  }
  return drawable(table.known());
}

function draw(ids: readonly string[]): void {
  view.sayDrawn(colors.given(ids.slice(0, MOST).map(owner)));
}

/** Draws everything that fits the filter. */
export const drawAll = async (): Promise<void> => draw(await allRows());

/** Draws what was not drawn, and nothing else. */
export const invertDrawn = async (): Promise<void> =>
  draw((await allRows()).filter((id) => !drawn.peek().some((one) => one.id === id)));

let lastToggled = "";

/** Draws all rows from the one last pressed to this one. */
export function drawRange(id: string): void {
  const ids = drawable(table.known());
  const [a, b] = [ids.indexOf(lastToggled), ids.indexOf(id)].sort((x, y) => x - y) as [number, number];
  if (a < 0) return toggleDrawn(id);
  const range = ids.slice(a, b + 1);
  draw([
    ...drawn
      .peek()
      .map((one) => one.id)
      .filter((one) => !range.includes(one)),
    ...range,
  ]);
}

export function toggleDrawn(id: string): void {
  lastToggled = id;
  const now = drawn.peek();
  view.sayDrawn(
    now.some((one) => one.id === id) ? now.filter((one) => one.id !== id) : [...now, ...colors.given([owner(id)], now)],
  );
}

/** Draws a run beside what is drawn: its group, where the table has one. */
export function show(run: string): void {
  const group = [...table.known()].find((row) => row.kind === "group" && row.runs.includes(run));
  const id = group === undefined ? run : rowId(group);
  if (!colorOf.peek().has(id)) toggleDrawn(id);
}

function entity(row: GroupRow | RunRow, color: number, same: number): Entity {
  const members = row.kind === "run" ? [] : withIds(row.runs.map(memberName), row.runs);
  const runs =
    row.kind === "run"
      ? [{ run: row.run, name: runName(row) }]
      : row.runs.map((run, i) => ({ run, name: members[i] as string }));
  return { id: rowId(row), name: row.kind === "run" ? runName(row) : row.name, color, runs, dash: dashOf(same) };
}

/** Names that two share get what tells them apart: the project, or the run's own id. */
function apart(all: Entity[]): Entity[] {
  const names = all.map((one) => one.name);
  const twice = new Set(names.filter((name, i) => names.indexOf(name) !== i));
  if (twice.size === 0) return all;
  const where = (one: Entity): string => {
    const row = known.get(one.id);
    return row === undefined || row.kind === "section" ? "" : projectOf(row);
  };
  const placed = all.map((one) => (twice.has(one.name) ? { ...one, name: `${where(one)}/${one.name}` } : one));
  const told = withIds(
    placed.map((one) => one.name),
    placed.map((one) => one.id),
  );
  return placed.map((one, i) => ({ ...one, name: told[i] as string }));
}

/** A run by its name and seed, where it is known. */
export function nameOf(run: string): string {
  const row = known.get(run);
  return row?.kind === "run" ? runName(row) : run;
}

function memberName(run: string): string {
  const row = known.get(run);
  return row?.kind === "run" ? runName(row, true) : run;
}

let before: Entity[] = [];
/** What the charts draw. The same object as long as nothing about it changed. */
/** So many groups or runs the server compares at once. */
export const MOST_COMPARED = 20;

export const entities = computed(() => {
  void table.changed.value;
  void pinned.value;
  const rows = drawn.value.map(({ id, color }, i) => {
    const row = known.get(id);
    const same = drawn.value.slice(0, i).filter((one) => one.color === color).length;
    return row === undefined || row.kind === "section"
      ? null
      : entity(row, shownColor(id, color), view.colorBy.value === "" ? same : 0);
  });
  const next = apart(rows.filter((one): one is Entity => one !== null));
  if (JSON.stringify(next) !== JSON.stringify(before)) before = next;
  return before;
});

const looked = new Set<string>();
/** Runs of a link that are not among the first rows are looked up by their id. */
effect(() => {
  const missing = drawn.value.filter(({ id }) => !known.has(id) && !looked.has(id));
  if (missing.length === 0 || table.answer.value === null) return;
  for (const { id } of missing) looked.add(id);
  void source.runs({ group_by: groups(view.grouping.peek()), limit: 1000, columns: [] }).then(
    async (answer) => {
      for (const row of answer.rows) if (!known.has(rowId(row))) known.set(rowId(row), row);
      await askPinned(missing.map(({ id }) => id));
      // What nobody chose, and is gone, makes room for the first rows of today.
      if (view.drawn.peek().length === 0 && !drawn.peek().some(({ id }) => known.has(id)))
        held.value = { selects: "", rows: [] };
      pinned.value = view.pinnedRuns
        .peek()
        .map((id) => known.get(id))
        .filter((row): row is Row => row !== undefined);
      table.changed.value += 1;
    },
    () => undefined,
  );
});

/** Where what is drawn is compared. */
export const compareAddress = (): string =>
  addressOf("compare", {
    // Where nobody chose and there is one group, Compare looks for a project with two.
    show:
      view.drawn.value.length === 0 && drawn.value.length < 2
        ? ""
        : joined(drawn.value.map(({ id, color }) => `${id}.${color}`)) || "-",
    g: view.grouping.value === "auto" ? "" : view.grouping.value,
  });

/** What a row is called in the grid: a heading has no runs of its own. */
export const gridId = (row: Row): string => (row.kind === "section" ? `section ${row.name}` : rowId(row));

/** These rows of the grid are on the screen; the pinned ones, which stand above, are there in any case. */
export const seeRows = (first: number, last: number): void =>
  table.see(Math.max(0, first - pinnedRows.peek().length), last);
