/** One setting against the score: a small dot a seed, a large one the mean of a configuration. */

import { useMemo, useRef } from "preact/hooks";
import type { SweepAnswer } from "../../api/names.ts";
import { axisOf, quarter, type SettingAxis } from "../../data/sweep.ts";
import { amount, value } from "../../data/numbers.ts";
import { useWidth } from "../../parts/useWidth.ts";
import { hot } from "./hot.ts";

const [TOP, BOTTOM, LEFT, RIGHT] = [12, 40, 48, 14];
const [EDGE, LETTER] = [8, 5.7]; // px that stay free at the sides of the card, and of a letter

export function Against({
  found,
  name,
  x: axis,
  y: score,
  place,
  kept,
  onScale,
}: {
  found: SweepAnswer;
  name: string;
  x: SettingAxis;
  /** The axis of the means; that of the seeds is log where it is. */
  y: SettingAxis;
  place: number;
  kept: readonly boolean[];
  onScale: (column: string, isLog: boolean) => void;
}) {
  const root = useRef<HTMLDivElement>(null);
  const width = useWidth(root);
  const HEIGHT = found.settings.length > 1 ? 274 : 348; // alone, it is as high as what stands beside it
  const scores = useMemo(
    () =>
      axisOf(
        found.configurations.flatMap((one) => [one.mean, ...one.seeds.map((seed) => seed.value)]),
        false,
        score.log,
      ),
    [found, score.log],
  );
  const x = (at: number): number => LEFT + 10 + at * (width - LEFT - RIGHT - 20);
  const y = (at: number): number => HEIGHT - BOTTOM - at * (HEIGHT - TOP - BOTTOM);
  const many = found.configurations.filter((one) => one.seeds.length > 0).length;
  const unset = found.configurations.filter((one) => axis.at(one.values[place] ?? null) === null).length;
  return (
    <section class="card c5 against">
      <header>
        <h2>
          {name} against {found.key}
        </h2>
        <span class="soft">small dots seeds, large their mean</span>
        <span class="grow" />
        <Scale of={axis} what={name} onTurn={() => onScale(found.settings[place]?.column ?? "", !axis.log)} />
        <Scale of={score} what={found.key} onTurn={() => onScale(found.key, !score.log)} />
      </header>
      <div ref={root}>
        <svg
          width={width}
          height={HEIGHT}
          role="img"
          aria-label={`${name} against ${found.key} of ${amount(many, "configuration")}; all are in the table`}
        >
          {scores.ticks.map((tick) => (
            <g key={tick.text}>
              <line class="grid" x1={LEFT} x2={width - RIGHT} y1={y(tick.at)} y2={y(tick.at)} />
              <text class="tick" x={LEFT - 6} y={y(tick.at)} text-anchor="end">
                {tick.text}
              </text>
            </g>
          ))}
          <line class="axis" x1={LEFT} x2={width - RIGHT} y1={HEIGHT - BOTTOM + 4} y2={HEIGHT - BOTTOM + 4} />
          {beside(axis.ticks, x, width).map((tick) => (
            <text key={tick.text} class="tick" x={tick.x} y={HEIGHT - BOTTOM + 16} text-anchor="middle">
              {tick.text}
            </text>
          ))}
          <text class="tick name" x={(LEFT + width - RIGHT) / 2} y={HEIGHT - 9} text-anchor="middle">
            {name}
            {unset > 0 ? `; not set in ${unset}` : ""}
          </text>
          {found.configurations.map((one, i) => {
            const at = axis.at(one.values[place] ?? null);
            const mean = scores.at(one.mean);
            if (at === null || mean === null) return null;
            const seeds = one.seeds.flatMap((seed) => scores.at(seed.value) ?? []);
            return (
              <g
                key={one.group}
                class={`dots q${quarter(i, many)}${kept[i] ? "" : " off"}${hot.value === i ? " hot" : ""}`}
                onPointerEnter={() => (hot.value = i)}
                onPointerLeave={() => (hot.value = null)}
              >
                <title>{`${one.name}: ${value(Number(one.mean))}, ${amount(one.seeds.length, "seed")}`}</title>
                <line x1={x(at)} x2={x(at)} y1={y(Math.min(...seeds))} y2={y(Math.max(...seeds))} />
                {seeds.map((seed, n) => (
                  <circle key={n} cx={x(at)} cy={y(seed)} r={1.8} />
                ))}
                <circle cx={x(at)} cy={y(mean)} r={4} />
              </g>
            );
          })}
        </svg>
      </div>
    </section>
  );
}

/** Ticks below their places, inside the card; of those that would touch the first stays. */
function beside(ticks: SettingAxis["ticks"], x: (at: number) => number, width: number): { text: string; x: number }[] {
  let free = EDGE;
  return ticks.flatMap(({ at, text }) => {
    const half = (text.length * LETTER) / 2;
    const middle = Math.max(EDGE + half, Math.min(width - EDGE - half, x(at)));
    if (middle - half < free) return [];
    free = middle + half + LETTER;
    return [{ text, x: middle }];
  });
}

/** Turns an axis from log to linear and back, here and among the parallel ones; nothing where there is no choice. */
function Scale({ of, what, onTurn }: { of: SettingAxis; what: string; onTurn: () => void }) {
  if (!of.either) return null;
  return (
    <button class="btn small" type="button" title={`${what}: ${of.log ? "linear" : "log"} axis`} onClick={onTurn}>
      {what} {of.log ? "log" : "linear"}
    </button>
  );
}
