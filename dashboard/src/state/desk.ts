/** A desk of linked charts: the runs on it, their axis, and what all its charts share. */

import { signal, type ReadonlySignal } from "@preact/signals";
import { createContext } from "preact";
import { Hub } from "../charts/hub.ts";
import type { AxisKind, Line, Mark, Pin } from "../charts/model.ts";
import type { Range } from "../data/range.ts";
import type { Smoother } from "../data/smooth.ts";
import { colorOfRun } from "./colors.ts";
import { Feed, type Entity } from "./feed.ts";

export interface Look {
  smoothing: number;
  smoother: Smoother;
  xLog: boolean;
  yLog: boolean;
  robust: boolean;
  /** The part of y that is shown; null: what the values say. */
  range: Range | null;
  /** Which of `charts/registry.ts`. */
  draw: string;
}

/** What a hand chose for one chart. */
export type OwnLook = Partial<Pick<Look, "smoothing" | "smoother" | "yLog" | "range">>;

export interface Desk {
  /** Tells desks apart: what was computed from one desk's signals is never that of another. */
  id: number;
  hub: Hub;
  feed: Feed;
  entities: ReadonlySignal<Entity[]>;
  axis: ReadonlySignal<string>;
  axisName: ReadonlySignal<string>;
  marks: ReadonlySignal<Map<string, Mark[]>>;
  look: ReadonlySignal<Look>;
  /** What single charts have otherwise, by their key; `own` changes it. */
  looks?: ReadonlySignal<ReadonlyMap<string, OwnLook>>;
  own?: (key: string, look: OwnLook) => void;
  /** A moment that all charts mark. */
  pin?: ReadonlySignal<Pin | null>;
  /** What is said beside the name of a key: how far it left its usual range there. */
  tags?: ReadonlySignal<ReadonlyMap<string, string>>;
  pick?: (line: Line, x: number, key: string) => void;
  foresee?: (line: Line, x: number, key: string) => void;
}

export const DeskContext = createContext<Desk | null>(null);

export const kindOf = (axis: string): AxisKind =>
  axis === "time" ? "wall" : axis === "relative" ? "duration" : "count";

/** The run and the entity that a line shows; of a group its first run. */
export function runOf(entities: readonly Entity[], line: Line): { entity: Entity; run: string } | null {
  const id = line.id.split("~")[0] as string;
  const entity = entities.find((one) => one.id === id || one.runs.some((member) => member.run === id));
  const run = entity?.runs.find((member) => member.run === id)?.run ?? entity?.runs[0]?.run;
  return entity && run !== undefined ? { entity, run } : null;
}

let made = 0;

/** The same lines over another axis, with a range and a cursor of their own. */
export function besides(desk: Desk, axis: string, axisName: string): Desk {
  const { entities, look, looks, own } = desk;
  made += 1;
  return {
    id: made,
    hub: new Hub(),
    feed: new Feed(),
    entities,
    look,
    ...(looks && own ? { looks, own } : {}),
    axis: signal(axis),
    axisName: signal(axisName),
    marks: signal(new Map()),
  };
}

export const PLAIN: Look = {
  smoothing: 0,
  smoother: "ema",
  xLog: false,
  yLog: false,
  robust: true,
  range: null,
  draw: "curves",
};

/** A desk for one run, on a page about it. */
export function deskOf(
  run: string,
  name: string,
  axis: string,
  axisName: string,
  more: Partial<Desk> = {},
  color = colorOfRun(run),
): Desk {
  const entities = [{ id: run, name, color, runs: [{ run, name }] }];
  const feed = new Feed();
  feed.choose({ entities, x: axis, statistic: "each", ghosts: true });
  made += 1;
  return {
    id: made,
    hub: new Hub(),
    feed,
    entities: signal(entities),
    axis: signal(axis),
    axisName: signal(axisName),
    marks: signal(new Map()),
    look: signal(PLAIN),
    ...more,
  };
}
