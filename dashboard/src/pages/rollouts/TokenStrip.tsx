/** The tokens of a turn, coloured by a number; those of the one under the cursor, which keys move, are read out. */

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Num, RolloutTokens, RolloutTurn } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { value } from "../../data/numbers.ts";

const SHADES = ["n3", "n2", "n1", "", "p1", "p2", "p3"];
/** An advantage is blue above the group, as its bars are. */
const shadesOf = (by: string): string[] => (by === "advantage" ? [...SHADES].reverse() : SHADES);
const MOST = 2000;
const number = (cell: Num | undefined): number => (typeof cell === "number" ? cell : Number.NaN);

/** What the colours mean in all turns of a rollout, from low to high; and the token farthest from the middle. */
export interface Scale {
  low: number;
  middle: number;
  high: number;
  far: { turn: number; i: number } | null;
}

export function scaleOf(turns: readonly RolloutTurn[], by: string): Scale {
  const lists = turns.map(({ tokens }) => (tokens?.columns[by] ?? []).slice(0, MOST).map(number));
  const finite = lists.flat().filter(Number.isFinite);
  const signed = by === "advantage" || (finite.some((v) => v < 0) && finite.some((v) => v > 0));
  const middle = signed ? 0 : finite.reduce((sum, v) => sum + v, 0) / (finite.length || 1);
  let [low, high, most, far]: [number, number, number, Scale["far"]] = [middle, middle, 0, null];
  lists.forEach((list, turn) =>
    list.forEach((v, i) => {
      if (!Number.isFinite(v)) return;
      [low, high] = [Math.min(low, v), Math.max(high, v)];
      if (Math.abs(v - middle) > most) [most, far] = [Math.abs(v - middle), { turn, i }];
    }),
  );
  return signed ? { low: -most, middle, high: most, far } : { low, middle, high, far };
}

/** Its colours from low to high, between their ends. */
export function ScaleLegend({ scale: { low, middle, high }, by }: { scale: Scale; by: string }) {
  if (low === high) return null;
  const sign = (v: number): string => `${v > 0 && middle === 0 ? "+" : ""}${value(v)}`;
  return (
    <span class="scalelegend soft" aria-hidden="true" title={by === "gap" ? "log-probability, trainer − sampler" : by}>
      {sign(low)}
      {shadesOf(by).map((shade) => (
        <i key={shade} style={{ background: shade === "" ? "var(--sunken)" : `var(--heat-${shade})` }} />
      ))}
      {sign(high)}
    </span>
  );
}

export function TokenStrip({
  tokens,
  by,
  turn,
  scale,
  onRead,
}: {
  tokens: RolloutTokens;
  by: string;
  turn: number;
  scale: Scale;
  onRead: (i: number | null) => void;
}) {
  const values = useMemo(() => (tokens.columns[by] ?? []).slice(0, MOST).map(number), [tokens, by]);
  const [read, setRead] = useState<number | null>(null);
  const cells = useMemo(() => coloured(values, tokens, scale, shadesOf(by)), [values, tokens, scale, by]);
  const now = Math.min(read ?? 0, values.length - 1);
  const strip = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const cell = read === null ? undefined : strip.current?.children[now];
    cell?.classList.add("at");
    return () => cell?.classList.remove("at");
  }, [read, now, cells]);
  const look = (i: number | null): void => {
    setRead(i);
    onRead(i);
  };
  return (
    <div
      ref={strip}
      dir="auto"
      class={tokens.texts.length > 0 ? "heatstrip texts" : "heatstrip"}
      role="slider"
      tabIndex={0}
      aria-label={`Tokens of turn ${turn} coloured by ${by}`}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, values.length - 1)}
      aria-valuenow={now}
      aria-valuetext={said(tokens, now).join(", ")}
      onPointerOver={(event) => {
        const at = (event.target as HTMLElement).dataset["at"];
        if (at !== undefined) look(Number(at));
      }}
      onPointerLeave={() => look(null)}
      onFocus={() => look(now)}
      onBlur={() => look(null)}
      onKeyDown={(event) => {
        const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: values.length - 1 }[event.key];
        if (next === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        look(Math.max(0, Math.min(values.length - 1, next)));
      }}
    >
      {cells}
    </div>
  );
}

const numbersOf = ({ columns }: RolloutTokens, i: number): [string, string][] =>
  Object.entries(columns).map(([name, column]) => [name, value(number(column[i]))]);

function said(tokens: RolloutTokens, i: number): string[] {
  const word = tokens.texts[i] === undefined ? [] : [visible(tokens.texts[i])];
  return [`token ${i}`, ...word, `id ${tokens.text[i] ?? ""}`, ...numbersOf(tokens, i).map((pair) => pair.join(" "))];
}

/** What a token is, with all its numbers. */
export function Readout({ tokens, i, note }: { tokens: RolloutTokens; i: number; note: string }) {
  return (
    <p class="readout" aria-hidden="true">
      <b class="mono">
        {tokens.texts[i] === undefined ? "" : visible(tokens.texts[i])} id {tokens.text[i] ?? ""}
      </b>
      {numbersOf(tokens, i).map(([name, text]) => (
        <span key={name}>
          <span class="soft">{name}</span> <b>{text}</b>
        </span>
      ))}
      <span class="soft">
        {note}token {i} of {tokens.text.length}
      </span>
    </p>
  );
}

/** The text of a token with what cannot be seen of it: its spaces and line ends. */
const visible = (text: string): string => shown(text).replaceAll(" ", "␣").replaceAll("\n", "⏎");

/** A cell a token, with its text where it is known. */
function coloured(
  values: readonly number[],
  { texts, columns }: RolloutTokens,
  { low, middle, high }: Scale,
  shades: readonly string[],
) {
  return values.map((v, i) => {
    const share = (v - middle) / ((v < middle ? middle - low : high - middle) || 1);
    const shade = shades[Math.round((share + 1) * 3)] ?? "";
    return (
      <i
        key={i}
        data-at={i}
        class={columns["mask"]?.[i] === 0 ? "off" : ""}
        style={{ background: shade === "" || Number.isNaN(v) ? "transparent" : `var(--heat-${shade})` }}
      >
        {texts[i] !== undefined && shown(texts[i]).replaceAll("\n", "⏎\n")}
      </i>
    );
  });
}
