/** What the charts of the runs page share: which keys there are, the feed, the hub, the marks. */

import { computed, effect, signal } from "@preact/signals";
import type { KeysAnswer } from "../../api/names.ts";
import { Hub } from "../../charts/hub.ts";
import type { Mark } from "../../charts/model.ts";
import { chartKeys, packed, pinnedFirst, sections } from "../../data/keys.ts";
import { pattern } from "../../data/search.ts";
import { PLAIN, runOf, type Desk } from "../../state/desk.ts";
import { colorOfRun } from "../../state/colors.ts";
import { Feed, type Entity } from "../../state/feed.ts";
import { foresee } from "../../state/foreseen.ts";
import { source } from "../../state/here.ts";
import { hear, reborn, watch } from "../../state/live.ts";
import { refusal, type Refusal } from "../../state/source.ts";
import { forget } from "./sparks.ts";
import { entities, nameOf, table } from "./table.ts";
import * as view from "./view.ts";

export const hub = new Hub(() => view.xLog.peek());
export const feed = new Feed();
export const keys = signal<KeysAnswer | null>(null);
export const keysError = signal<Refusal | null>(null);

/** How far each key left its usual range at the moment that one looks into; the drawer says it. */
export const tags = signal<ReadonlyMap<string, string>>(new Map());

/** What the run of the last open moment is called; the drawer says it. */
export const calledThere = signal({ run: "", name: "" });

const runOfCause = computed(() => view.cause.value?.run);

/** What the charts draw: with a moment open its run in front of all others. */
const charted = computed((): Entity[] => {
  const run = runOfCause.value;
  const all = entities.value;
  if (run === undefined) return all;
  const own = all.find((entity) => entity.runs.some((member) => member.run === run));
  const color = own?.color ?? colorOfRun(run);
  const member = own?.runs.find((one) => one.run === run)?.name ?? run; // its id while its group is folded
  const name = member !== run ? member : calledThere.value.run === run ? calledThere.value.name : nameOf(run);
  const front: Entity = { id: run, name, color, runs: [{ run, name }] };
  return [...all.filter(({ id }) => id !== run).map((entity) => ({ ...entity, dim: true })), front];
});

const runsDrawn = computed(() => [
  ...new Set(charted.value.flatMap((entity) => entity.runs.map((member) => member.run))),
]);

/** The axis of an open moment of a run that is not among the drawn ones: theirs may be one that it does not have. */
const axisOfGuest = computed(() => {
  const moment = view.cause.value;
  if (moment === null || view.zoom.value !== null) return "";
  return entities.value.some(({ runs }) => runs.some(({ run }) => run === moment.run)) ? "" : moment.x;
});

/** The axis that is drawn: the one chosen, or the runs' own. */
export const axis = computed(() => view.xAxis.value || axisOfGuest.value || (keys.value?.default_x ?? ""));
export const axisName = computed(() => keys.value?.axes.find((one) => one.x === axis.value)?.label ?? axis.value);

const search = computed(() => pattern(view.keyFilter.value));
/** How many charts stand side by side; the pane says it. */
export const chartColumns = signal(3);

export const heroes = computed(() => {
  const said = view.pinnedKeys.value;
  if (said.length > 0) return said;
  return pinnedFirst(keys.value?.keys ?? []);
});
export const shownSections = computed(() =>
  packed(sections(keys.value?.keys ?? [], search.value, heroes.value), chartColumns.value),
);

/** Marks by run; drawn only where few runs are, for many they would be a hedge. */
export const marks = signal<Map<string, Mark[]>>(new Map());

async function askMarks(runs: string[], x: string): Promise<void> {
  const answer = await source.marks(runs, x === "" ? null : x);
  const colors = new Map(
    entities.peek().flatMap((entity) => entity.runs.map((member): [string, number] => [member.run, entity.color])),
  );
  const next = new Map<string, Mark[]>();
  for (const mark of answer.marks) {
    if (mark.kind === "attempt" || typeof mark.x !== "number") continue;
    const list = next.get(mark.run) ?? [];
    list.push({
      kind: mark.kind,
      x: mark.x,
      text: mark.label === "" ? mark.text : mark.label,
      color: colors.get(mark.run) ?? 0,
    });
    next.set(mark.run, list);
  }
  marks.value = next;
}

async function askKeys(runs: string[]): Promise<void> {
  try {
    const answer = await source.keys(runs);
    keys.value = answer;
    keysError.value = null;
  } catch (error) {
    keysError.value = refusal(error);
  }
}

/** The desk of this page. */
export const desk: Desk = {
  id: 0,
  hub,
  feed,
  entities: charted,
  axis,
  axisName,
  marks,
  tags,
  pin: computed(() => {
    const now = view.cause.value;
    return now === null || now.x !== axis.value ? null : { x: now.at, line: now.run };
  }),
  look: computed(() => ({
    ...PLAIN,
    smoothing: view.smoothing.value,
    smoother: view.smoother.value,
    xLog: view.xLog.value,
    yLog: view.yLog.value,
    robust: !view.withOutliers.value,
    draw: view.draw.value,
  })),
  looks: view.looks,
  own: view.sayLook,
  foresee: (line, x, key) => {
    const hit = runOf(charted.peek(), line);
    if (hit) foresee({ run: hit.run, x: axis.peek(), at: x, key });
  },
  pick: (line, x, key) => {
    const hit = runOf(charted.peek(), line);
    if (hit) view.sayCause({ run: hit.run, x: axis.peek(), at: x, key });
  },
};

const CHART = 180_000; // px of the window that a chart takes, and the table beside it

/** The keys whose charts will be on the screen first: asked for before there is a chart that could ask. */
function firstSeen(): string[] {
  if (view.focused.peek() !== "") return chartKeys(view.focused.peek());
  const shown = shownSections
    .peek()
    .filter(({ scope }) => !view.closedSections.peek().includes(scope || "/"))
    .flatMap((section) => section.keys.map(({ key }) => key));
  const all = view.keyFilter.peek() === "" ? [...heroes.peek().flatMap(chartKeys), ...shown] : shown;
  return [...new Set(all.slice(0, Math.max(2, Math.min(12, Math.round((innerWidth * innerHeight) / CHART)))))];
}

const FEW = 8;

/** Runs of which some told their keys with the table: all of them are asked behind the first curves. */
const owed = signal<string[] | null>(null);

/** Keeps the charts true as long as the page is shown; returns what stops it. */
export function startCharts(): () => void {
  let known = "";
  let watched: (() => void)[] = [];
  let knownKeys = 0;
  const stops = [
    effect(() => {
      const runs = runsDrawn.value;
      const now = `${runs.join(" ")} ${reborn.value}`;
      if (now === known) return;
      known = now;
      const given = table.answer.peek()?.drawn;
      if (runs.length === 0) keys.value = keys.peek() ?? null;
      else if (keys.peek() === null && given?.runs.join(" ") === runs.join(" ")) {
        keys.value = given.keys; // they came with the table
        owed.value = given.is_part === true ? runs : null;
      } else void askKeys(runs);
      for (const stop of watched) stop();
      watched = runs.map((run) => watch(`run:${run}`));
    }),
    effect(() => {
      const runs = owed.value;
      if (runs === null || feed.took.value.charts === 0) return;
      owed.value = null;
      void askKeys(runs);
    }),
    effect(() => {
      if (keys.value === null && entities.value.length > 0) return;
      feed.choose({
        entities: charted.value,
        x: axis.value,
        statistic: view.statistic.value,
        ghosts: view.ghosts.value,
      });
      if (feed.took.peek().charts === 0) feed.expect(firstSeen());
    }),
    effect(() => {
      const runs = runsDrawn.value;
      if (!view.marksShown.value || runs.length === 0 || runs.length > FEW || keys.value === null)
        marks.value = new Map();
      else void askMarks(runs, axis.value).catch(() => undefined);
    }),
    effect(() => {
      const zoom = view.zoom.value;
      const now = hub.view.peek();
      if (zoom?.x0 !== now?.x0 || zoom?.x1 !== now?.x1) {
        hub.view.value = zoom;
        hub.refresh();
      }
    }),
    effect(() => {
      const now = hub.view.value;
      feed.zoom(now);
      view.sayZoom(now);
    }),
    hear("run", (push) => {
      feed.touch(push.run);
      forget([push.run], table.known());
      // A run that has just begun brings new keys.
      if (Date.now() - knownKeys > 5000 && runsDrawn.peek().includes(push.run)) {
        knownKeys = Date.now();
        void askKeys(runsDrawn.peek());
      }
    }),
    watch("runs"),
  ];
  return () => {
    for (const stop of [...stops, ...watched]) stop();
  };
}
