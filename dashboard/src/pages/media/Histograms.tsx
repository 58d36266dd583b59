/** Histograms of one key over training as a picture of shades, and the one at a step as bars. */

import { useLayoutEffect, useRef } from "preact/hooks";
import type { HistogramsAnswer } from "../../api/names.ts";
import { fit } from "../../charts/canvas.ts";
import { palette } from "../../charts/palette.ts";
import { short, value } from "../../data/numbers.ts";
import { Failure } from "../../parts/Say.tsx";
import { useWidth } from "../../parts/useWidth.ts";
import { useAnswer } from "../../state/answer.ts";
import { colorOfRun } from "../../state/colors.ts";
import { source } from "../../state/here.ts";
import { ground } from "../../state/theme.ts";

const HEIGHT = 150;
const LEFT = 46;
const FOOT = 16;

interface Of {
  run: string;
  name: string;
}

export function Histograms({ of, runs, step }: { of: string; runs: readonly Of[]; step: number }) {
  const answer = useAnswer(`${of} ${runs.map(({ run }) => run).join(" ")}`, () =>
    Promise.all(runs.map(({ run }) => source.histograms(run, of))),
  );
  if (answer.error) return <Failure error={answer.error} again={answer.again} />;
  const found = answer.value ?? [];
  const ends = found.flatMap(({ edges }) => (edges.length > 1 ? [edges[0] as number, edges.at(-1) as number] : []));
  const range = { low: Math.min(...ends), high: Math.max(...ends) };
  return (
    <div class="beside" style={{ "--many": runs.length }}>
      {runs.map(({ run, name }, i) => (
        <div key={run}>
          <p class="small">
            <i class={`dot s${colorOfRun(run)}`} /> {name}
          </p>
          {found[i] && found[i].counts.length > 0 ? (
            <Shades found={found[i]} range={range} step={step} run={run} />
          ) : (
            <p class="soft small">{found[i] ? "none" : "…"}</p>
          )}
        </div>
      ))}
    </div>
  );
}

function Shades({
  found,
  range,
  step,
  run,
}: {
  found: HistogramsAnswer;
  range: { low: number; high: number };
  step: number;
  run: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const look = palette(ground.value);
  const at = found.positions.map(Number);
  const now = Math.max(
    0,
    at.findLastIndex((x) => x <= step),
  );
  useLayoutEffect(() => {
    if (!canvas.current || width < LEFT + 20) return;
    const pen = fit(canvas.current, width, HEIGHT);
    const [first, last] = [at[0] ?? 0, at.at(-1) ?? 1];
    const wide = width - LEFT - 2;
    const px = (x: number): number => LEFT + (last > first ? ((x - first) / (last - first)) * wide : wide / 2);
    const tall = HEIGHT - FOOT;
    const py = (v: number): number => tall - ((v - range.low) / (range.high - range.low || 1)) * tall;
    pen.fillStyle = look.series[colorOfRun(run)] ?? look.ink2;
    found.counts.forEach((counts, i) => {
      const most = Math.max(...counts, 1e-300);
      const from = i === 0 ? LEFT : (px(at[i - 1] as number) + px(at[i] as number)) / 2;
      const to = i === at.length - 1 ? width - 2 : (px(at[i] as number) + px(at[i + 1] as number)) / 2;
      counts.forEach((many, bin) => {
        if (many <= 0) return;
        pen.globalAlpha = 0.08 + 0.92 * Math.sqrt(many / most);
        const [top, bottom] = [py(found.edges[bin + 1] as number), py(found.edges[bin] as number)];
        pen.fillRect(from, top, Math.max(0.5, to - from), Math.max(0.5, bottom - top));
      });
    });
    pen.globalAlpha = 1;
    pen.font = `10px ${look.font}`;
    pen.fillStyle = look.ink3;
    pen.textAlign = "right";
    pen.textBaseline = "top";
    pen.fillText(value(range.high), LEFT - 5, 0);
    pen.textBaseline = "bottom";
    pen.fillText(value(range.low), LEFT - 5, tall);
    pen.textBaseline = "top";
    pen.textAlign = "left";
    pen.fillText(short(first), LEFT, tall + 4);
    pen.textAlign = "right";
    pen.fillText(`${short(last)} ${found.x}`, width - 2, tall + 4);
    pen.strokeStyle = look.ink;
    pen.beginPath();
    pen.moveTo(px(at[now] as number), 0);
    pen.lineTo(px(at[now] as number), tall);
    pen.stroke();
  }, [found, width, look, now, range.low, range.high]);
  const counts = found.counts[now] ?? [];
  const most = Math.max(...counts, 1e-300);
  const [low, high, mean] = [found.low, found.high, found.mean].map((all) => value(Number(all[now])));
  const told = `${low} to ${high}, mean ${mean}`;
  return (
    <div ref={box} class="shades">
      <canvas ref={canvas} role="img" aria-label={`${found.key}: ${told} at step ${value(at[now], 6)}`} />
      <svg
        viewBox={`0 0 ${counts.length} 24`}
        preserveAspectRatio="none"
        class={`s${colorOfRun(run)}`}
        aria-hidden="true"
      >
        {counts.map((many, i) => (
          <rect key={i} x={i + 0.05} width={0.9} y={24 - (24 * many) / most} height={(24 * many) / most} />
        ))}
      </svg>
      <p class="soft small">
        step {value(at[now], 6)}: {told}
      </p>
    </div>
  );
}
