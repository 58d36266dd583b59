/** Every span of a run on a timeline: zoom with w and s or ctrl wheel, move with a and d or a drag. */

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Span, Timeline } from "../../api/names.ts";
import { fit } from "../../charts/canvas.ts";
import { palette } from "../../charts/palette.ts";
import { clock, seconds } from "../../data/numbers.ts";
import { duration } from "../../data/ticks.ts";
import { Failure } from "../../parts/Say.tsx";
import { say, word } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { useHands } from "../../state/hands.ts";
import { source } from "../../state/here.ts";
import { ground } from "../../state/theme.ts";

const ROW = 20;
const LEFT = 92;
const AXIS = 20;
const REST = 140;

const range = word("at");

export function TimelineView({ run, attempts }: { run: string; attempts: number }) {
  const root = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [since, until] = range.value.split("_").map(Number);
  const pixels = Math.max(300, Math.min(4000, (root.current?.clientWidth ?? 1200) - LEFT));
  const answer = useAnswer(`${run} ${range.value}`, (signal) =>
    source.timeline(
      run,
      since && Number.isFinite(since) ? since : null,
      until && Number.isFinite(until) ? until : null,
      pixels,
      signal,
    ),
  );
  const window = useSignal<{ since: number; until: number } | null>(null);
  const under = useSignal<Span | null>(null);
  const rest = useRef<ReturnType<typeof setTimeout>>(undefined);
  const found = answer.value;
  useEffect(() => {
    if (found && !answer.old) window.value = { since: found.since, until: found.until };
  }, [found, answer.old]);
  const look = palette(ground.value);
  const shown = window.value ?? (found && { since: found.since, until: found.until });
  const rows = lanes(found?.spans ?? [], attempts > 1 && found?.lanes.length === attempts ? "attempt" : "writer");
  const height = Math.max(1, rows.length) * ROW + AXIS;
  useLayoutEffect(() => {
    const width = root.current?.clientWidth ?? 0;
    if (!canvas.current || !shown || !found || width < LEFT + 40) return;
    paint(fit(canvas.current, width, height), found, rows, shown, width, height, look);
  });
  const go = (next: { since: number; until: number }): void => {
    if (!found || !(next.until - next.since > 1e-6)) return;
    const width = Math.min(next.until - next.since, found.last - found.first);
    const start = Math.max(found.first, Math.min(next.since, found.last - width));
    window.value = { since: start, until: start + width };
    clearTimeout(rest.current);
    rest.current = setTimeout(
      () => say({ at: width >= found.last - found.first ? "" : `${start.toFixed(6)}_${(start + width).toFixed(6)}` }),
      REST,
    );
  };
  const zoom = (factor: number, share: number): void => {
    if (!shown) return;
    const at = shown.since + (shown.until - shown.since) * share;
    go({ since: at - (at - shown.since) * factor, until: at + (shown.until - at) * factor });
  };
  const pan = (share: number): void => {
    if (shown)
      go({
        since: shown.since + share * (shown.until - shown.since),
        until: shown.until + share * (shown.until - shown.since),
      });
  };
  useHands(() => [
    { keys: ["w"], what: "timeline: closer", act: () => zoom(0.6, 0.5) },
    { keys: ["s"], what: "timeline: further", act: () => zoom(1 / 0.6, 0.5) },
    { keys: ["a"], what: "timeline: earlier", act: () => pan(-0.25) },
    { keys: ["d"], what: "timeline: later", act: () => pan(0.25) },
  ]);
  const share = (event: { clientX: number; currentTarget: EventTarget | null }): number => {
    const rect = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return (event.clientX - rect.left - LEFT) / Math.max(1, rect.width - LEFT - 8);
  };
  useEffect(() => {
    const box = root.current;
    const wheel = (event: WheelEvent): void => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.008), Math.max(0, Math.min(1, share(event))));
    };
    box?.addEventListener("wheel", wheel, { passive: false });
    return () => box?.removeEventListener("wheel", wheel);
  });
  const drag = useRef<{ x: number; from: { since: number; until: number } } | null>(null);
  const move = (event: PointerEvent): void => {
    if (drag.current && event.buttons === 1) {
      const width = (event.currentTarget as HTMLElement).clientWidth - LEFT;
      const by = ((drag.current.x - event.clientX) / width) * (drag.current.from.until - drag.current.from.since);
      go({ since: drag.current.from.since + by, until: drag.current.from.until + by });
      return;
    }
    const rect = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const row = rows[Math.floor((event.clientY - rect.top) / ROW)];
    const time = shown ? shown.since + (shown.until - shown.since) * share(event) : 0;
    under.value = row?.spans.find((span) => span.start <= time && time <= span.end) ?? null;
  };
  const now = under.value;
  return (
    <section class="card c12">
      <header>
        <h2>Timeline</h2>
        <span class="soft">
          {shown && `${clock(shown.since)} – ${clock(shown.until)}, ${seconds(shown.until - shown.since)}`}
        </span>
        <span class="grow" />
        <span class="soft">
          {now
            ? `${found?.names[now.name] ?? ""} ${seconds(now.end - now.start)}` +
              (now.merged > 1 ? `, ${now.merged} spans` : "")
            : ""}
        </span>
        <span class="soft hide-s">
          <kbd>w</kbd> <kbd>s</kbd> zoom <kbd>a</kbd> <kbd>d</kbd> move
        </span>
        <button
          class="btn"
          type="button"
          onClick={() => {
            window.value = null;
            say({ at: "" });
          }}
        >
          Whole run
        </button>
      </header>
      {answer.error && (
        <div class="pad">
          <Failure error={answer.error} again={answer.again} />
        </div>
      )}
      <div
        ref={root}
        class="plotarea timeline"
        role="img"
        tabIndex={0}
        aria-label={`Timeline of ${found?.spans.length ?? 0} spans`}
        style={{ height: `${height}px`, minHeight: 0 }}
        onPointerDown={(event) => {
          (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
          if (shown) drag.current = { x: event.clientX, from: shown };
        }}
        onPointerMove={move}
        onPointerUp={() => {
          drag.current = null;
        }}
        onPointerLeave={() => {
          under.value = null;
        }}
      >
        <canvas ref={canvas} />
      </div>
    </section>
  );
}

interface Row {
  name: string;
  spans: Span[];
}

/** A row for each writer and depth, the outermost spans first. Where each attempt had one writer, that is its name. */
function lanes(spans: readonly Span[], what: "attempt" | "writer"): Row[] {
  const all = new Map<string, Row & { order: number }>();
  for (const span of spans) {
    const key = `${span.lane} ${span.depth}`;
    const row = all.get(key) ?? {
      name: span.depth === 0 ? (span.lane === 0 && what === "writer" ? "main" : `${what} ${span.lane + 1}`) : "",
      spans: [],
      order: span.lane * 100 + span.depth,
    };
    row.spans.push(span);
    all.set(key, row);
  }
  return [...all.values()].sort((a, b) => a.order - b.order).slice(0, 40);
}

function paint(
  pen: CanvasRenderingContext2D,
  found: Timeline,
  rows: readonly Row[],
  shown: { since: number; until: number },
  width: number,
  height: number,
  look: ReturnType<typeof palette>,
): void {
  const k = (width - LEFT - 8) / (shown.until - shown.since || 1);
  pen.font = `10px ${look.font}`;
  pen.textBaseline = "middle";
  pen.fillStyle = pen.strokeStyle = look.ink3;
  pen.textAlign = "center";
  for (const tick of duration(0, shown.until - shown.since, Math.floor(width / 110))) {
    const px = LEFT + tick * k;
    pen.globalAlpha = 0.25;
    pen.fillRect(Math.round(px), 0, 1, height - AXIS);
    pen.globalAlpha = 1;
    pen.fillText(seconds(tick), Math.min(px, width - 16), height - 9);
  }
  rows.forEach((row, i) => {
    pen.textAlign = "right";
    pen.fillStyle = look.ink3;
    pen.fillText(row.name, LEFT - 6, i * ROW + ROW / 2);
    pen.textAlign = "left";
    for (const span of row.spans) {
      if (span.end < shown.since || span.start > shown.until) continue;
      const left = Math.max(LEFT, LEFT + (span.start - shown.since) * k);
      const wide = Math.max(1, LEFT + (Math.min(span.end, shown.until) - shown.since) * k - left);
      pen.fillStyle = look.series[(span.name % 10) + 1] ?? look.ink2;
      pen.globalAlpha = span.merged > 1 ? 0.3 : 0.45;
      pen.fillRect(left, i * ROW + 1, Math.max(1, wide - 0.5), ROW - 3);
      pen.globalAlpha = 1;
      const name = found.names[span.name] ?? "";
      if (wide > 34) {
        pen.fillStyle = look.ink;
        const text = name.split("/").at(-1) ?? name;
        pen.fillText(
          text.length * 5.5 > wide - 6 ? `${text.slice(0, Math.max(1, Math.floor((wide - 10) / 5.5)))}…` : text,
          left + 4,
          i * ROW + ROW / 2,
        );
      }
    }
  });
}
