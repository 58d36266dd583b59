/** What is chosen on the runs page. Every word of it stands in the address. */

import { computed } from "@preact/signals";
import { joined, list, say, word } from "../../state/address.ts";
import { isRange, type View } from "../../charts/hub.ts";
import type { OwnLook } from "../../state/desk.ts";
import { SMOOTHERS, type Smoother } from "../../data/smooth.ts";
import type { Drawn } from "../../data/colors.ts";
import { ends } from "../../data/numbers.ts";
import { askedOf, narrowed } from "../../data/search.ts";

export type Statistic = "iqm" | "mean" | "median" | "each";
export const STATISTICS: Record<Statistic, string> = {
  iqm: "IQM, 95 %",
  mean: "mean, 95 %",
  median: "median, 95 %",
  each: "each run",
};

export const filter = word("f");
export const search = word("q");

/** Leaves only the runs that meet a further condition; the way back undoes it. */
export function sayOnly(condition: string): void {
  const asked = narrowed(askedOf(filter.peek()), condition);
  say({ f: asked.filter, q: [asked.search, search.peek()].filter((words) => words !== "").join(" ") }, true);
}
/** `auto`: by what varies in the configuration; `none`; or columns, comma between them. */
export const grouping = word("g", "auto");
/** The setting whose values give the colours; without one each group and run has its own. Nothing is kept of it. */
export const colorBy = word("cb");
/** A column of the configuration as people call it. */
export const short = (column: string): string => column.replace(/^config\./, "");
/** The columns that group the runs, where a hand chose some. */
export const groupedBy = (): string[] =>
  grouping.value === "auto" || grouping.value === "none" ? [] : grouping.value.split(",");
export const sort = word("sort");
export const opened = list("open");
export const columns = word("cols");
export const archived = word("archived");

/** Rows with the place of their colour, `id.3`. */
const inColors = (items: readonly string[]): Drawn[] =>
  items.map((item) => {
    const cut = item.lastIndexOf(".");
    return { id: item.slice(0, cut), color: Number(item.slice(cut + 1)) || 1 };
  });

export const written = (items: readonly Drawn[]): string => joined(items.map(({ id, color }) => `${id}.${color}`));

/** What a hand chose to be drawn; nothing said: the first rows of the table. */
export const drawn = computed(() => inColors(list("show").value));

/** What is drawn where nobody chose: in the address, too, so that a link and a reload show the same. */
export const unchosen = computed(() => inColors(list("auto").value));
export const pinnedRuns = list("top");

export const xAxis = word("x");
export const statistic = computed<Statistic>(() => {
  const said = word("as", "iqm").value;
  return said in STATISTICS ? (said as Statistic) : "iqm";
});
export const smoothing = computed(() => Math.max(0, Math.min(0.999, Number(word("s", "0").value) || 0)));
export const smoother = computed<Smoother>(() => {
  const said = word("sb", "ema").value;
  return said in SMOOTHERS ? (said as Smoother) : "ema";
});

/** What single charts have otherwise: `key|log|0.6|gauss|0_500`, what is as for all left empty. */
export const looks = computed<ReadonlyMap<string, OwnLook>>(() => {
  const all = new Map<string, OwnLook>();
  for (const item of list("own").value) {
    const [range = "", by = "", weight = "", scale = "", ...key] = item.split("|").reverse();
    const [low = NaN, high = NaN] = range === "" ? [] : range.split("_").map(Number);
    all.set(key.reverse().join("|"), {
      ...(scale === "" ? {} : { yLog: scale === "log" }),
      ...(weight === "" ? {} : { smoothing: Math.max(0, Math.min(0.99, Number(weight) || 0)) }),
      ...(by in SMOOTHERS ? { smoother: by as Smoother } : {}),
      ...(high > low ? { range: { low, high } } : {}),
    });
  }
  return all;
});

export function sayLook(key: string, look: OwnLook): void {
  const all = new Map(looks.peek()).set(key, look);
  const items = [...all].map(([name, { yLog: log, smoothing: weight, smoother: by, range }]) =>
    [
      name,
      log === undefined ? "" : log ? "log" : "lin",
      weight ?? "",
      by ?? "",
      range ? `${range.low}_${range.high}` : "",
    ].join("|"),
  );
  say({ own: joined(items.filter((item) => !item.endsWith("||||"))) });
}

export const xLog = computed(() => word("xlog").value === "1");
export const yLog = computed(() => word("ylog").value === "1");
export const withOutliers = computed(() => word("all").value === "1");
export const draw = word("draw", "curves");
export const ghosts = computed(() => word("ghosts", "1").value === "1");
export const marksShown = computed(() => word("marks", "1").value === "1");
export const keyFilter = word("k");
export const pinnedKeys = list("pin");
/** The machine's and rollbook's own: folded until a hand opens them. */
const FOLDED = ["host", "system", "rollbook"];
const shut = word("shut");
export const closedSections = computed(() =>
  shut.value === "" ? FOLDED : shut.value === "-" ? [] : list("shut").value,
);
export function toggleSection(scope: string): void {
  say({ shut: toggled(closedSections.peek(), scope) || "-" });
}
export const focused = word("full");
/** A key that was found: its chart stands above all others until it is closed. */
export const seen = word("see");
export const board = word("board");

export const zoom = computed<View | null>(() => {
  const [x0 = NaN, x1 = NaN] = word("z").value.split("_").map(Number);
  return isRange({ x0, x1 }) ? { x0, x1 } : null;
});

export function sayZoom(view: View | null): void {
  say({ z: view ? ends(view.x0, view.x1).join("_") : "" });
}

export const cause = computed(() => {
  const said = word("cause").value;
  const parts = said.split(",");
  const [run, x, at] = parts;
  if (run === undefined || x === undefined || at === undefined || at === "") return null;
  return { run, x, at: Number(at), key: parts.slice(3).join(",") };
});

export function sayCause(point: { run: string; x: string; at: number; key: string } | null, push = true): void {
  say({ cause: point ? `${point.run},${point.x},${point.at},${point.key}` : "" }, push);
}

export function sayDrawn(items: Drawn[]): void {
  say({ show: items.length === 0 ? "-" : written(items), auto: "" });
}

export function toggled(items: readonly string[], item: string): string {
  return joined(items.includes(item) ? items.filter((other) => other !== item) : [...items, item]);
}

/** The words that a board keeps; where one stands (an open drawer, the search) is not part of it. */
export const BOARD_WORDS = [
  "f",
  "g",
  "cb",
  "sort",
  "cols",
  "show",
  "auto",
  "top",
  "x",
  "as",
  "s",
  "sb",
  "own",
  "xlog",
  "ylog",
  "all",
  "draw",
  "ghosts",
  "marks",
  "k",
  "pin",
  "shut",
  "full",
  "z",
];
