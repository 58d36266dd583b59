/** Fetches what the charts on the screen need: overviews first, finer rows where one has zoomed, news as they come. */

import { signal, type Signal } from "@preact/signals";
import type { View } from "../charts/hub.ts";
import type { Line } from "../charts/model.ts";
import type { CurveEntry, Frame, SeriesEntry } from "../data/frames.ts";
import { sentence } from "../data/numbers.ts";
import { groupLine, runLine, type LineLook } from "../data/lines.ts";
import { shown } from "./first.ts";
import { source } from "./here.ts";
import type { ErrorBody } from "../api/names.ts";
import { refusal, Refusal } from "./source.ts";

/** A run or a group that is drawn. */
export interface Entity {
  id: string;
  name: string;
  color: number;
  runs: { run: string; name: string }[];
  dash?: number[] | undefined;
  /** Stands back behind what one looks at. */
  dim?: boolean | undefined;
}

export interface FeedSpec {
  entities: Entity[];
  x: string;
  /** `each`: the runs of a group one by one. */
  statistic: "iqm" | "mean" | "median" | "each";
  ghosts: boolean;
}

interface Part {
  line: Line;
  rows: number;
  span: View | null;
  /** Every row is there: zooming needs no more. */
  whole: boolean;
}

/** One key as a chart shows it. */
export interface KeyState {
  lines: Line[];
  rows: number;
  span: View | null;
  errors: { name: string; error: Refusal }[];
  /** Asked for and not there yet. */
  waiting: boolean;
  /** What the bands are, in the server's words. */
  sentences: string[];
  /** Bands of more draws are on their way. */
  preliminary: boolean;
}

interface KeyStore {
  state: Signal<KeyState>;
  overview: Map<string, Part>;
  detail: { view: View; parts: Map<string, Part> } | null;
  errors: Map<string, Refusal>;
  sentences: Map<string, string>;
  rough: Set<string>;
  asked: string;
  fresh: boolean;
}

const NOTHING: KeyState = {
  lines: [],
  rows: 0,
  span: null,
  errors: [],
  waiting: true,
  sentences: [],
  preliminary: false,
};
const REST = 8; // of news: after an answer at least so many times as long as it took
const BUDGET = 40_000; // points of one answer, over all its series

export class Feed {
  /** What the last answers took and weighed, for the foot of the page. */
  readonly took = signal({ ms: 0, bytes: 0, charts: 0 });
  /** What is drawn, and how. */
  readonly chosen = signal<FeedSpec>({ entities: [], x: "", statistic: "iqm", ghosts: true });
  private readonly keys = new Map<string, KeyStore>();
  private readonly seen = new Map<string, number>();
  private view: View | null = null;
  private stop = new AbortController();
  private queued = false;
  private news = new Set<string>();
  private newsTimer: ReturnType<typeof setTimeout> | undefined;
  private patience = 1000;

  /** The state of a key; nothing is fetched until it is `want`ed. */
  of(key: string): Signal<KeyState> {
    return this.store(key).state;
  }

  /** This key is on the screen; returns what says that it no longer is. */
  want(key: string): () => void {
    this.seen.set(key, (this.seen.get(key) ?? 0) + 1);
    this.queue();
    return () => {
      const left = (this.seen.get(key) ?? 1) - 1;
      if (left > 0) this.seen.set(key, left);
      else this.seen.delete(key);
    };
  }

  /** These keys will be on the screen in a moment: they are asked for while their charts are made. */
  expect(keys: string[]): void {
    const first = keys.filter((key) => !this.store(key).fresh && this.store(key).asked !== "all");
    for (const key of first) this.store(key).asked = "all";
    void this.ask(first, this.chosen.peek().entities, null, this.stop.signal);
  }

  /** Other runs, another axis, another way to draw groups. Lines that stay are shown until newer ones are there. */
  choose(spec: FeedSpec): void {
    const old = this.chosen.peek();
    this.chosen.value = spec;
    const otherAxis = old.x !== spec.x;
    const ids = new Set(spec.entities.flatMap((entity) => this.looks(entity).map((look) => look.id)));
    for (const store of this.keys.values()) {
      store.fresh = false;
      store.detail = null;
      store.rough.clear();
      store.errors.clear();
      if (otherAxis) store.overview.clear();
      for (const id of store.overview.keys()) if (!ids.has(id.split("~")[0] as string)) store.overview.delete(id);
      this.publish(store);
    }
    this.restart();
  }

  /** Rows inside `view` are wanted as fine as the screen shows them; null: the whole range. */
  zoom(view: View | null): void {
    this.view = view;
    for (const store of this.keys.values()) this.publish(store);
    this.restart();
  }

  /** A run has new rows: what is on the screen of it is asked for again, once a second, or less often. */
  touch(run: string): void {
    if (!this.chosen.peek().entities.some((entity) => entity.runs.some((member) => member.run === run))) return;
    this.news.add(run);
    this.newsTimer ??= setTimeout(() => {
      this.newsTimer = undefined;
      const changed = this.news;
      this.news = new Set();
      for (const [key, store] of this.keys) if (!this.seen.has(key)) store.fresh = false;
      const entities = this.chosen
        .peek()
        .entities.filter((entity) => entity.runs.some((member) => changed.has(member.run)));
      const keys = [...this.seen.keys()];
      const { signal: alive } = this.stop;
      const began = performance.now();
      const asked = [this.ask(keys, entities, null, alive), this.view && this.ask(keys, entities, this.view, alive)];
      void Promise.all(asked).then(() => {
        this.patience = Math.min(10_000, Math.max(1000, REST * (performance.now() - began)));
      });
    }, this.patience);
  }

  /** Everything anew: the tab woke, the server is another one. */
  again(): void {
    for (const store of this.keys.values()) store.fresh = false;
    this.restart();
  }

  private store(key: string): KeyStore {
    let store = this.keys.get(key);
    if (!store) {
      store = {
        state: signal(NOTHING),
        overview: new Map(),
        detail: null,
        errors: new Map(),
        sentences: new Map(),
        rough: new Set(),
        asked: "",
        fresh: false,
      };
      this.keys.set(key, store);
    }
    return store;
  }

  private restart(): void {
    this.stop.abort();
    this.stop = new AbortController();
    for (const store of this.keys.values()) store.asked = "";
    this.queue();
  }

  private queue(): void {
    if (this.queued) return;
    this.queued = true;
    // A moment's patience gathers all charts that come on the screen together into one question.
    setTimeout(() => {
      this.queued = false;
      const keys = [...this.seen.keys()];
      const { signal: alive } = this.stop;
      const first = keys.filter((key) => !this.store(key).fresh && this.store(key).asked !== "all");
      for (const key of first) this.store(key).asked = "all";
      const { entities } = this.chosen.peek();
      if (first.length > 0) void this.ask(first, entities, null, alive);
      const { view } = this;
      if (!view) return;
      const fine = keys.filter(
        (key) => this.needsDetail(this.store(key), view) && this.store(key).asked !== name(view),
      );
      for (const key of fine) if (!first.includes(key)) this.store(key).asked = name(view);
      if (fine.length > 0) void this.ask(fine, entities, view, alive);
    }, 8);
  }

  private needsDetail(store: KeyStore, view: View): boolean {
    const { detail } = store;
    if (detail && covers(detail.view, view) && width(detail.view) <= 3.2 * width(view)) return false;
    if (detail && covers(detail.view, view) && [...detail.parts.values()].every((part) => part.whole)) return false;
    return store.overview.size === 0 || [...store.overview.values()].some((part) => !part.whole);
  }

  private looks(entity: Entity): (LineLook & { run: string | null })[] {
    const { id, color, dash, dim } = entity;
    if (entity.runs.length === 1) return [{ id, name: entity.name, color, dash, dim, run: entity.runs[0]?.run ?? "" }];
    if (this.chosen.peek().statistic !== "each") return [{ id, name: entity.name, color, dash, dim, run: null }];
    return entity.runs.map((member) => ({
      id: member.run,
      name: `${entity.name}, ${member.name}`,
      color,
      dash,
      run: member.run,
    }));
  }

  private async ask(keys: string[], entities: Entity[], view: View | null, alive: AbortSignal): Promise<void> {
    if (keys.length === 0 || entities.length === 0) return; // who is drawn is not known yet: waiting, not empty
    const looks = entities.flatMap((entity) => this.looks(entity).map((look) => ({ ...look, entity })));
    const single = looks.filter((look) => look.run !== null);
    const groups = looks.filter((look) => look.run === null);
    const points = Math.max(40, Math.min(600, Math.floor(BUDGET / (looks.length * keys.length))));
    const padded = view && { x0: view.x0 - width(view) * 0.5, x1: view.x1 + width(view) * 0.5 };
    const range = padded ? { start: padded.x0, stop: padded.x1 } : {};
    const { x, statistic, ghosts } = this.chosen.peek();
    const started = performance.now();
    let bytes = 0;
    const isAll = entities === this.chosen.peek().entities && (single.length === 0 || groups.length === 0);
    const take = <E extends { key: string }>(frame: Frame<E>, use: (store: KeyStore, entry: E) => void): void => {
      bytes += frame.payload.byteLength;
      const touched = new Set<KeyStore>();
      for (const entry of frame.entries) {
        const store = this.store(entry.key);
        use(store, entry);
        touched.add(store);
      }
      for (const store of touched) {
        // Said together with its lines, so that they are drawn once.
        if (!view && isAll && store.rough.size === 0) store.fresh = true;
        this.publish(store);
      }
      shown();
    };
    try {
      await Promise.all([
        single.length > 0 &&
          source.series(
            {
              runs: single.map((look) => look.run as string),
              keys,
              x: x === "" ? null : x,
              points: padded ? points * 2 : points,
              ghosts,
              ...range,
            },
            (frame) =>
              !alive.aborted &&
              take<SeriesEntry>(frame, (store, entry) => {
                const look = single.find((one) => one.run === entry.run);
                if (look) this.putRun(store, entry, frame.payload, look, padded);
              }),
            alive,
          ),
        groups.length > 0 &&
          source.curves(
            {
              by: groups.map(({ entity }) => ({ name: entity.id, runs: entity.runs.map((member) => member.run) })),
              keys,
              x: x === "" ? null : x,
              points: Math.min(points, 200),
              statistic: statistic === "each" ? "iqm" : statistic,
              refine: true,
              ...range,
            },
            (frame) =>
              !alive.aborted &&
              take<CurveEntry>(frame, (store, entry) => {
                const look = groups.find((one) => one.id === entry.group);
                if (look) this.putGroup(store, entry, frame.payload, look, padded);
              }),
            alive,
          ),
      ]);
      if (alive.aborted) return;
      this.took.value = { ms: performance.now() - started, bytes, charts: keys.length };
    } catch (error) {
      if (alive.aborted) return;
      const why = refusal(error);
      for (const key of keys) {
        const store = this.store(key);
        store.asked = "";
        // That the server is away stands in the banner.
        if (why.code !== "offline" || store.overview.size === 0) store.errors.set("", why);
      }
      if (why.code === "offline") return;
    }
    for (const key of keys) {
      const store = this.store(key);
      if (!view) store.fresh = true;
      this.publish(store);
    }
  }

  private target(store: KeyStore, padded: View | null): Map<string, Part> {
    if (!padded) return store.overview;
    if (!store.detail || store.detail.view.x0 !== padded.x0 || store.detail.view.x1 !== padded.x1)
      store.detail = { view: padded, parts: new Map() };
    return store.detail.parts;
  }

  /** What the whole range cannot show is an error; a part of it in which nothing lies is not. */
  private note(store: KeyStore, name: string, error: ErrorBody | undefined, padded: View | null): void {
    if (padded) return;
    if (error) store.errors.set(name, refusalOf(error));
    else store.errors.delete(name);
  }

  private putRun(store: KeyStore, entry: SeriesEntry, payload: ArrayBuffer, look: LineLook, padded: View | null): void {
    store.errors.delete("");
    const parts = this.target(store, padded);
    const id = entry.ghost === undefined ? look.id : `${look.id}~${entry.ghost}`;
    const lacks = entry.error?.code === "unknown_key"; // other runs may have it
    this.note(store, look.name, lacks ? undefined : entry.error, padded);
    if (entry.kind === "none" || entry.error) {
      parts.delete(id);
      return;
    }
    const line = runLine(entry, payload, {
      ...look,
      id,
      name: entry.ghost === undefined ? look.name : `${look.name}, attempt ${entry.ghost}, abandoned`,
    });
    parts.set(id, {
      line,
      rows: entry.rows,
      span: entry.span && { x0: entry.span[0], x1: entry.span[1] },
      whole: entry.kind === "raw" && !entry.more,
    });
  }

  private putGroup(
    store: KeyStore,
    entry: CurveEntry,
    payload: ArrayBuffer,
    look: LineLook,
    padded: View | null,
  ): void {
    store.errors.delete("");
    const parts = this.target(store, padded);
    const lacks = entry.error?.code === "unknown_key"; // other runs may have it
    this.note(store, look.name, lacks ? undefined : entry.error, padded);
    if (entry.kind === "none" || entry.error) {
      parts.delete(look.id);
      return;
    }
    store.sentences.set(look.name, sentence(entry.sentence));
    if (entry.preliminary) store.rough.add(look.id);
    else store.rough.delete(look.id);
    const line = groupLine(entry, payload, look);
    const span = line.x.length > 0 ? { x0: line.x[0] as number, x1: line.x[line.x.length - 1] as number } : null;
    parts.set(look.id, { line, rows: entry.n, span, whole: false });
  }

  private publish(store: KeyStore): void {
    const { view } = this;
    const detail = view && store.detail && covers(store.detail.view, view) ? store.detail.parts : null;
    const lines: Line[] = [];
    let rows = 0;
    let span: View | null = null;
    const ofLook = new Map<string, [string, Part][]>();
    for (const [id, whole] of store.overview) {
      const own = id.split("~")[0] as string;
      const parts = ofLook.get(own);
      if (parts) parts.push([id, whole]);
      else ofLook.set(own, [[id, whole]]);
    }
    for (const entity of this.chosen.peek().entities) {
      for (const look of this.looks(entity)) {
        for (const [id, whole] of ofLook.get(look.id) ?? []) {
          const part = detail?.get(id) ?? whole;
          lines.push(isLike(part.line, look) ? part.line : { ...part.line, ...lookOf(look) });
          rows = Math.max(rows, whole.rows);
          if (whole.span)
            span = span ? { x0: Math.min(span.x0, whole.span.x0), x1: Math.max(span.x1, whole.span.x1) } : whole.span;
        }
      }
    }
    const errors = [...store.errors].map(([who, error]) => ({ name: who, error }));
    const sentences = [...new Set(store.sentences.values())];
    const before = store.state.peek();
    const next: KeyState = {
      lines: same(before.lines, lines) ? before.lines : lines,
      rows,
      span,
      errors,
      waiting: !store.fresh,
      sentences,
      preliminary: store.rough.size > 0,
    };
    if (before.span && span && before.span.x0 === span.x0 && before.span.x1 === span.x1) next.span = before.span;
    const changed =
      next.lines !== before.lines ||
      next.span !== before.span ||
      next.rows !== before.rows ||
      next.waiting !== before.waiting ||
      next.preliminary !== before.preliminary;
    if (changed || errors.length + before.errors.length > 0 || !same(before.sentences, sentences))
      store.state.value = next;
  }
}

const lookOf = ({ color, dash, dim }: LineLook) => ({ color, dash, dim });
const isLike = (line: Line, look: LineLook): boolean =>
  line.color === look.color && line.dash === look.dash && (line.dim ?? false) === (look.dim ?? false);
const width = (view: View): number => view.x1 - view.x0;
const covers = (a: View, b: View): boolean => a.x0 <= b.x0 + width(b) * 1e-6 && a.x1 >= b.x1 - width(b) * 1e-6;
const same = <T>(a: readonly T[], b: readonly T[]): boolean =>
  a.length === b.length && a.every((one, i) => one === b[i]);
const name = (view: View): string => `${view.x0}_${view.x1}`;

const refusalOf = (error: ErrorBody): Refusal =>
  new Refusal(error.message, error.code, error.hint ?? null, error.at ?? null);
