/** What happened over training, in small pictures under one brush: its window of updates is part of the condition. */

import { useEffect, useState } from "preact/hooks";
import type { Fates as Found, Num } from "../../api/names.ts";
import { amount, count, percent, value } from "../../data/numbers.ts";
import { colorOf, parted, startsIn, together, told, type Stretch } from "../../data/rollouts.ts";
import { say, word } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { useHands } from "../../state/hands.ts";
import { source } from "../../state/here.ts";
import { fateWords } from "./opened.ts";

const where = word("where");
const [WIDE, HIGH] = [200, 64];
const finite = (cell: Num | undefined): number => (typeof cell === "number" ? cell : Number.NaN);

/** `news`: that of the list below. Of many rollouts the next answer waits for this one. */
export function OverTraining({ run, news }: { run: string; news: number }) {
  const [asked, setAsked] = useState(news);
  const fates = useAnswer(`${run} brief fates ${asked}`, () => source.fates(run, "brief"));
  useEffect(() => {
    if (!fates.old) setAsked(news);
  }, [news, fates.old]);
  return fates.value && fates.value.starts.length > 1 ? <Pictures found={fates.value} /> : null;
}

function Pictures({ found }: { found: Found }) {
  const last = found.starts.length - 1;
  const { within, rest } = parted(where.value);
  const [drawn, setDrawn] = useState<[number, number] | null>(null); // while a finger or the mouse is down
  const [a, b] = within ? startsIn(found, within) : [0, last + 1];
  const [from, to] = drawn ? [Math.min(...drawn), Math.max(...drawn) + 1] : [a, b];
  const chosen = drawn !== null || within !== null;
  const stretch = (first: number, end: number): Stretch => ({
    by: found.x === "policy_version" ? "policy_version" : "gradient_step",
    low: Number(found.starts[first]),
    high: Number(found.starts[end]) + Number(found.width) - 1,
  });
  const put = (first: number, end: number): void => {
    const [low, high] = [Math.max(0, Math.min(last, first)), Math.max(0, Math.min(last, end))];
    say({ where: together(stretch(Math.min(low, high), Math.max(low, high)), rest) });
  };
  const clear = (): void => say({ where: rest });
  const move = (by: number, wider: boolean): void => {
    if (!within) put(by > 0 ? 0 : last, by > 0 ? 0 : last);
    else if (wider) put(a, Math.max(a, b - 1 + by));
    else if (a + by >= 0 && b - 1 + by <= last) put(a + by, b - 1 + by);
  };
  useHands(() => [
    { keys: ["w"], what: "choose a part of training", act: () => document.getElementById("brush")?.focus() },
  ]);
  const at = (event: PointerEvent): number => {
    const { left, width } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return Math.max(0, Math.min(last, Math.floor(((event.clientX - left) / width) * (last + 1))));
  };
  const brush = {
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
      setDrawn([at(event), at(event)]);
    },
    onPointerMove: (event: PointerEvent) => drawn && setDrawn([drawn[0], at(event)]),
    onPointerUp: () => {
      if (drawn) put(drawn[0], drawn[1]);
      setDrawn(null);
    },
    onPointerCancel: () => setDrawn(null),
    onDblClick: clear,
    onClick: (event: MouseEvent) => {
      // A finger scrolls: it taps one end, then the other.
      if (!(event instanceof PointerEvent) || event.pointerType !== "touch") return;
      put(within ? Math.min(a, at(event)) : at(event), within ? Math.max(b - 1, at(event)) : at(event));
    },
  };
  const here = stretch(from, Math.max(from, to - 1));
  const name = `${found.x === "policy_version" ? "Version" : "Update"}s ${count(here.low)} – ${count(here.high)}`;
  const { passes, curves } = found;
  const rates = passes.n.map((n, i) => (n > 0 ? (passes.solved[i] ?? 0) / n : Number.NaN));
  const [n, solved] = [passes.n, passes.solved].map((all) => all.slice(from, to).reduce((s, one) => s + one, 0));
  const mean = (cells: readonly Num[]): number => {
    const known = cells.slice(from, to).map(finite).filter(Number.isFinite);
    return known.reduce((s, v) => s + v, 0) / (known.length || Number.NaN);
  };
  const line = (title: string, key: string) =>
    curves[key] && (
      <Picture key={key} title={title} reads={value(mean(curves[key]))} {...{ from, to, chosen, last, brush }}>
        <path d={pathOf(curves[key].map(finite))} />
      </Picture>
    );
  return (
    <section class="overtraining" aria-label="Over training">
      <p>
        <Sentence found={found} from={from} to={to} name={chosen ? name : ""} />
        {within && (
          <button class="chip" type="button" onClick={clear}>
            whole training
          </button>
        )}
      </p>
      <div class="pictures" tabIndex={0} role="region" aria-label="Pictures over training">
        {line("reward", "rollout/reward")}
        <Picture
          title="solved"
          reads={n ? percent((solved ?? 0) / n) : "–"}
          slider={{ name, at: chosen ? from : 0, move, clear, whole: !chosen }}
          {...{ from, to, chosen, last, brush }}
        >
          <path class="interval" d={bandOf(passes.low.map(finite), passes.high.map(finite))} />
          <path d={pathOf(rates, 0, 1)} />
        </Picture>
        <Picture title="fates" reads="" {...{ from, to, chosen, last, brush }}>
          {areasOf(found).map((d, i) => (
            <path key={i} class={`area s${colorOf(found.layers[i]?.reason ?? "")}`} d={d} />
          ))}
        </Picture>
        {line("staleness", "policy/staleness_mean")}
        {line("gap", "policy/gap_mean")}
        {line("clipped", "policy/clipped")}
        {line("length", "rollout/length")}
      </div>
    </section>
  );
}

function Sentence({ found, from, to, name }: { found: Found; from: number; to: number; name: string }) {
  const { n, used, before, grew } = told(found, from, to);
  return (
    <span>
      {name !== "" && <b>{name}: </b>}
      <b>{percent(used)}</b> of {amount(n, "rollout")} taught something
      {name !== "" && before !== null && `, ${percent(before)} before`}.
      {name !== "" && grew.length > 0 && (
        <>
          {" "}
          What grew:{" "}
          {grew.map(({ fate, share, was }, i) => (
            <span key={fate}>
              {i > 0 && ", "}
              <b>{fateWords(fate)}</b> {percent(share)} (was {percent(was)})
            </span>
          ))}
          .
        </>
      )}
      {name === "" && <span class="soft"> Drag over a picture to look at a part of training.</span>}
    </span>
  );
}

function Picture({
  title,
  reads,
  from,
  to,
  chosen,
  last,
  brush,
  slider,
  children,
}: {
  title: string;
  reads: string;
  from: number;
  to: number;
  chosen: boolean;
  last: number;
  brush: object;
  /** Of one picture: the brush by keys. */
  slider?: { name: string; at: number; whole: boolean; move: (by: number, wider: boolean) => void; clear: () => void };
  children: preact.ComponentChildren;
}) {
  const share = (i: number): string => `${(i / (last + 1)) * 100}%`;
  return (
    <figure>
      <figcaption>
        <span class="soft">{title}</span> <b>{reads}</b>
      </figcaption>
      <div
        class="brush"
        {...brush}
        {...(slider && {
          id: "brush",
          role: "slider",
          tabIndex: 0,
          "aria-label": "Part of training: arrows move it, shift and arrows change its end, Escape takes it away",
          "aria-valuemin": 0,
          "aria-valuemax": last,
          "aria-valuenow": slider.at,
          "aria-valuetext": slider.whole ? "the whole training" : slider.name,
          onKeyDown: (event: KeyboardEvent) => {
            const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
            if (by !== undefined) slider.move(by, event.shiftKey);
            else if (event.key === "Escape" && !slider.whole) slider.clear();
            else return;
            event.preventDefault();
            event.stopPropagation();
          },
        })}
      >
        <svg viewBox={`0 0 ${WIDE} ${HIGH}`} preserveAspectRatio="none" aria-hidden="true">
          {children}
        </svg>
        {chosen && <i style={{ left: share(from), width: share(to - from) }} />}
      </div>
    </figure>
  );
}

/** The middle of each stretch. */
const x = (i: number, n: number): string => (((i + 0.5) / n) * WIDE).toFixed(1);

function pathOf(values: readonly number[], low = Infinity, high = -Infinity): string {
  const known = values.filter(Number.isFinite);
  const [bottom, top] = [Math.min(low, 0, ...known), Math.max(high, ...known)];
  let [path, gap] = ["", true];
  values.forEach((v, i) => {
    if (Number.isFinite(v)) {
      const y = HIGH - 3 - ((v - bottom) / (top - bottom || 1)) * (HIGH - 6);
      path += `${gap ? "M" : "L"}${x(i, values.length)},${y.toFixed(1)}`;
    }
    gap = !Number.isFinite(v);
  });
  return path;
}

function bandOf(low: readonly number[], high: readonly number[]): string {
  const y = (v: number): string => (HIGH - 3 - v * (HIGH - 6)).toFixed(1);
  const known = low.flatMap((v, i) => (Number.isFinite(v) ? [i] : []));
  if (known.length === 0) return "";
  const side = (of: readonly number[], indices: number[]): string =>
    indices.map((i) => `${x(i, low.length)},${y(of[i] as number)}`).join("L");
  return `M${side(high, known)}L${side(low, [...known].reverse())}Z`;
}

/** Each fate as a share on top of those before it. */
function areasOf({ layers, starts }: Found): string[] {
  const sums = starts.map((_, i) => layers.reduce((s, { n }) => s + (n[i] ?? 0), 0));
  const base = starts.map(() => 0);
  const y = (v: number): string => (HIGH - v * HIGH).toFixed(1);
  return layers.map(({ n }) => {
    const under = base.map((v, i) => `${x(i, starts.length)},${y(v)}`).reverse();
    n.forEach((k, i) => {
      base[i] = (base[i] ?? 0) + k / (sums[i] || 1);
    });
    return `M${base.map((v, i) => `${x(i, starts.length)},${y(v)}`).join("L")}L${under.join("L")}Z`;
  });
}
