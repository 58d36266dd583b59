/** Parallel coordinates: a line a configuration through its settings to its score; a drag on an axis keeps a range. */

import { useRef } from "preact/hooks";
import type { SweepAnswer } from "../../api/names.ts";
import { keyedRange, quarter, thread, type Range, type Ranges, type SettingAxis } from "../../data/sweep.ts";
import { shortNames } from "../../data/names.ts";
import { amount, count, value } from "../../data/numbers.ts";
import { useWidth } from "../../parts/useWidth.ts";
import { hot } from "./hot.ts";

const [HEIGHT, TOP, BOTTOM, RIGHT] = [270, 12, 12, 74];
const [LEAST, MOST, LETTER] = [44, 130, 5.6]; // px before the first axis, and of a letter there
const BEST = 3;
/** Of an axis: below that the names would lie over each other, and the picture is scrolled. */
const NARROWEST = 92;

export function Parallel({
  found,
  called,
  axes,
  places,
  kept,
  ranges,
  chosen,
  onRanges,
  onAxis,
}: {
  found: SweepAnswer;
  /** What a setting is called among the others. */
  called: (column: string) => string;
  axes: readonly SettingAxis[];
  places: readonly ReadonlyMap<string, number | null>[];
  kept: readonly boolean[];
  ranges: Ranges;
  chosen: number;
  onRanges: (next: Ranges) => void;
  onAxis: (column: string) => void;
}) {
  const root = useRef<HTMLDivElement>(null);
  const columns = [...found.settings.map(({ column }) => column), found.key];
  const width = Math.max(useWidth(root), NARROWEST * columns.length);
  const textsOf = (axis: SettingAxis | undefined, room: number): readonly string[] => {
    const texts = (axis?.ticks ?? []).map(({ text }) => text);
    return axis?.words.length ? shortNames(texts, Math.floor(room / LETTER), true) : texts;
  };
  const longest = Math.max(0, ...textsOf(axes[0], MOST - 12).map((text) => text.length));
  const left = Math.max(LEAST, Math.min(MOST, 12 + LETTER * longest));
  const apart = (width - left - RIGHT) / Math.max(1, columns.length - 1);
  const x = (i: number): number => left + i * apart;
  const y = (at: number): number => HEIGHT - BOTTOM - at * (HEIGHT - TOP - BOTTOM);
  const many = found.configurations.filter((one) => one.seeds.length > 0).length;
  const shown = kept.filter(Boolean).length;
  const order = found.configurations.map((_, i) => found.configurations.length - 1 - i); // the best lies on top
  const setRange = (column: string, range: Range | null): void => {
    const next = new Map(ranges);
    if (range) next.set(column, range);
    else next.delete(column);
    onRanges(next);
  };
  return (
    <section class="card c8 parallel">
      <header>
        <h2>Settings and score</h2>
        <span class="soft">
          {ranges.size > 0
            ? `${count(shown)} of ${amount(kept.length, "configuration")} lie in the ranges`
            : "a line a configuration; drag along an axis, or ↑ ↓ on its name, to keep a range"}
        </span>
        <span class="grow" />
        {ranges.size > 0 && (
          <button class="btn" type="button" onClick={() => onRanges(new Map())}>
            Clear ranges
          </button>
        )}
      </header>
      <div class="threads" ref={root} tabIndex={0} role="region" aria-label="Settings and score">
        <div class="axisnames">
          {columns.map((column, i) => (
            <button
              key={column}
              type="button"
              aria-disabled={i === columns.length - 1}
              aria-pressed={i === chosen}
              aria-description={ranges.has(column) ? "a range of it is kept; Delete keeps all" : "arrows keep a range"}
              title={`${column}: ↑ ↓ keep and move a range, with shift its end; Delete keeps all`}
              onKeyDown={(event) => {
                const next = keyedRange(ranges.get(column), event.key, event.shiftKey, axes[i]?.words.length ?? 0);
                if (next === undefined) return;
                event.preventDefault();
                setRange(column, next);
              }}
              style={{
                left: `${x(i)}px`,
                maxWidth: `${Math.max(NARROWEST, apart) - 4}px`,
                ...(i === 0 ? { transform: `translateX(-${Math.min(left, apart / 2) - 4}px)` } : {}),
              }}
              onClick={() => i < columns.length - 1 && onAxis(column)}
            >
              {i < columns.length - 1 ? called(column) : column}
              {axes[i]?.log && <span class="soft"> log</span>}
            </button>
          ))}
        </div>
        <svg
          width={width}
          height={HEIGHT}
          role="img"
          aria-label={`${amount(kept.length, "configuration")} by setting and ${found.key}; a table has all values`}
        >
          {columns.map((column, i) => (
            <line key={column} class="axis" x1={x(i)} x2={x(i)} y1={y(1)} y2={y(0)} />
          ))}
          {order.map((i) => {
            const one = found.configurations[i];
            if (!one) return null;
            const points = columns.map((column, at) => {
              const place = places[i]?.get(column);
              return place === null || place === undefined ? null : ([x(at), y(place)] as const);
            });
            const tone = one.seeds.length === 0 ? "none" : `q${quarter(i, many)}`;
            return (
              <path
                key={one.group}
                d={thread(points)}
                class={`thread ${tone}${kept[i] ? "" : " off"}${hot.value === i ? " hot" : ""}`}
                onPointerEnter={() => (hot.value = i)}
                onPointerLeave={() => (hot.value = null)}
              >
                <title>{`${one.name}: ${value(Number(one.mean ?? NaN))}`}</title>
              </path>
            );
          })}
          {columns.map((column, i) => (
            <g key={column}>
              {textsOf(axes[i], i === 0 ? left - 12 : apart - 20).map((text, n) => (
                <text key={text} class="tick" x={x(i) - 6} y={y(axes[i]?.ticks[n]?.at ?? 0)} text-anchor="end">
                  {text}
                  {text !== axes[i]?.ticks[n]?.text && <title>{axes[i]?.ticks[n]?.text}</title>}
                </text>
              ))}
              <Brush
                x={x(i)}
                y={y}
                range={ranges.get(column)}
                words={axes[i]?.words.length ?? 0}
                onRange={(range) => setRange(column, range)}
              />
            </g>
          ))}
          {spread(
            found.configurations.slice(0, BEST).flatMap((one, i) => {
              const place = places[i]?.get(found.key);
              return place === null || place === undefined ? [] : [{ at: y(place), i, mean: Number(one.mean) }];
            }),
          ).map(({ at, text, i, mean }) => (
            <text key={i} class="tick best" x={x(columns.length - 1) + 8} y={text} data-at={at}>
              {`#${i + 1} ${value(mean)}`}
            </text>
          ))}
        </svg>
      </div>
    </section>
  );
}

/** Texts that stand at least a line apart, from above. */
function spread<T extends { at: number }>(items: readonly T[]): (T & { text: number })[] {
  let last = -Infinity;
  return [...items]
    .sort((a, b) => a.at - b.at)
    .map((item) => {
      last = Math.max(item.at, last + 13);
      return { ...item, text: last };
    });
}

/** The range of one axis: drawn by a drag, taken away by a click. A click on a word keeps that word alone. */
function Brush({
  x,
  y,
  range,
  words,
  onRange,
}: {
  x: number;
  y: (at: number) => number;
  range: readonly [number, number] | undefined;
  words: number;
  onRange: (range: readonly [number, number] | null) => void;
}) {
  const from = useRef<number | null>(null);
  const at = (event: PointerEvent): number => {
    const rect = (event.currentTarget as SVGElement).getBoundingClientRect();
    return Math.max(0, Math.min(1, 1 - (event.clientY - rect.top - 8) / (rect.height - 16)));
  };
  return (
    <>
      {range && (
        <rect class="range" x={x - 6} width={12} y={y(range[1]) - 3} height={y(range[0]) - y(range[1]) + 6} rx={2} />
      )}
      <rect
        class="brush"
        x={x - 14}
        width={28}
        y={y(1) - 8}
        height={y(0) - y(1) + 16}
        onPointerDown={(event) => {
          (event.currentTarget as SVGElement).setPointerCapture(event.pointerId);
          from.current = at(event);
        }}
        onPointerUp={(event) => {
          if (from.current === null) return;
          const [low, high] = [from.current, at(event)].sort((a, b) => a - b) as [number, number];
          from.current = null;
          if (high - low > 0.02) onRange([low, high]);
          else if (words > 1 && !range) {
            const place = Math.round(low * (words - 1)) / (words - 1);
            onRange([place, place]);
          } else onRange(null);
        }}
        onPointerCancel={() => {
          from.current = null;
        }}
      />
    </>
  );
}
