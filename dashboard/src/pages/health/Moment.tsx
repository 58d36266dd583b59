/** The curve of the key that a finding is about, over the whole run, with the moment where it was found. */

import type { Finding } from "../../api/names.ts";
import { doubles, floats } from "../../data/frames.ts";
import { value } from "../../data/numbers.ts";
import { sparkPath } from "../../data/spark.ts";
import { useAnswer } from "../../state/answer.ts";
import { toneOf } from "../../state/colors.ts";
import { source } from "../../state/here.ts";

const [WIDTH, HEIGHT, POINTS] = [180, 36, 90];

interface Curve {
  path: string;
  /** Where it was found, in px; null where the curve does not reach. */
  at: number | null;
}

export function Moment({ at }: { at: Pick<Finding["runs"][number], "run" | "key" | "axis" | "x"> }) {
  const asked = at.key === "" ? null : `${at.run} ${at.key} ${at.axis} moment`;
  const curve = useAnswer(asked, async (signal) => {
    let found: Curve | null = null;
    const query = { runs: [at.run], keys: [at.key], points: POINTS, fields: ["mean" as const] };
    await source.series(
      at.axis === "" ? query : { ...query, x: at.axis },
      ({ entries, payload }) => {
        const entry = entries.find((one) => one.ghost === undefined);
        const y = entry?.arrays.y ?? entry?.arrays.mean;
        if (found !== null || !entry?.arrays.x || !y) return;
        const x = doubles(payload, entry.arrays.x);
        if (x.length < 2) return; // a point says nothing about a course
        const [x0, x1] = [x[0] ?? 0, x[x.length - 1] ?? 0];
        const inside = typeof at.x === "number" && x1 > x0 && at.x >= x0 && at.x <= x1;
        found = {
          path: sparkPath(x, floats(payload, y), WIDTH, HEIGHT),
          at: inside ? (((at.x as number) - x0) / (x1 - x0)) * WIDTH : null,
        };
      },
      signal,
    );
    return found as Curve | null;
  }).value;
  if (curve === null || curve.path === "") return null;
  const said = `${at.key} over the run${typeof at.x === "number" ? `; found at ${value(at.x)} ${at.axis}` : ""}`;
  return (
    <figure class="moment" title={said}>
      <svg
        class={`spark ${toneOf(at.run)}`}
        width={WIDTH}
        height={HEIGHT}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={said}
      >
        {curve.at !== null && <line class="there" x1={curve.at} x2={curve.at} y1={0} y2={HEIGHT} />}
        <path d={curve.path} />
      </svg>
      <figcaption class="soft mono clip">{at.key}</figcaption>
    </figure>
  );
}
