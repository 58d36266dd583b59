/** A task over training: the share of rollouts that solved it at each version of the policy, with its interval. */

import { useRef } from "preact/hooks";
import type { Cell, RolloutVersion } from "../../api/names.ts";
import { amount, count, percent } from "../../data/numbers.ts";
import { useWidth } from "../../parts/useWidth.ts";

const [HEIGHT, LEFT, BOTTOM] = [150, 40, 18];

export function PassRate({
  history,
  version,
  title = "This task over training",
}: {
  history: readonly RolloutVersion[];
  version: Cell | undefined;
  title?: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = Math.max(200, useWidth(box));
  const known = history.filter((point) => point.version !== null);
  const low = known[0]?.version ?? 0;
  const wide = (known[known.length - 1]?.version ?? 1) - low || 1;
  const x = (at: number): number => LEFT + ((at - low) / wide) * (width - LEFT - 10);
  const y = (share: number): number => 8 + (1 - share) * (HEIGHT - BOTTOM - 8);
  const total = history.reduce((sum, { n }) => sum + n, 0);
  return (
    <section class="card">
      <header>
        <h2>{title}</h2>
        <span class="soft">
          {amount(total, "rollout")} at {amount(history.length, "version")}; share solved, bars: 95 % (Wilson)
        </span>
      </header>
      <div ref={box} class="in">
        <svg class="passrate" viewBox={`0 0 ${width} ${HEIGHT}`} height={HEIGHT} role="img">
          <title>{`Share that solved this task, at ${amount(known.length, "version")} of the policy`}</title>
          {[0, 0.5, 1].map((share) => (
            <g key={share}>
              <line class="grid" x1={LEFT} x2={width - 10} y1={y(share)} y2={y(share)} />
              <text x={LEFT - 6} y={y(share) + 3} text-anchor="end">
                {percent(share)}
              </text>
            </g>
          ))}
          <polyline points={known.map((p) => `${x(p.version ?? 0)},${y(p.solved / p.n)}`).join(" ")} />
          {known.map((p) => (
            <g key={p.version}>
              <line x1={x(p.version ?? 0)} x2={x(p.version ?? 0)} y1={y(Number(p.low))} y2={y(Number(p.high))} />
              <circle
                class={p.version === version ? "here" : ""}
                cx={x(p.version ?? 0)}
                cy={y(p.solved / p.n)}
                r={p.version === version ? 4.5 : 3}
              >
                <title>{`version ${p.version}: ${p.solved} of ${p.n} solved, ${p.used} used`}</title>
              </circle>
            </g>
          ))}
          <text x={LEFT} y={HEIGHT - 4}>
            version {count(low)}
          </text>
          <text x={width - 10} y={HEIGHT - 4} text-anchor="end">
            {count(low + wide)}
          </text>
        </svg>
      </div>
    </section>
  );
}
