/** The tokens of a turn, coloured by a number; those of the one under the cursor, which keys move, are read out. */

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Num, RolloutTokens } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { value } from "../../data/numbers.ts";

const SHADES = ["n3", "n2", "n1", "", "p1", "p2", "p3"];
const MOST = 2000;
const number = (cell: Num | undefined): number => (typeof cell === "number" ? cell : Number.NaN);

export function TokenStrip({ tokens, by, turn }: { tokens: RolloutTokens; by: string; turn: number }) {
  const values = useMemo(() => (tokens.columns[by] ?? []).slice(0, MOST).map(number), [tokens, by]);
  const [read, setRead] = useState<number | null>(null);
  const { cells, far } = useMemo(() => coloured(values, tokens), [values, tokens]);
  const now = Math.min(read ?? far, values.length - 1);
  const strip = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const cell = read === null ? undefined : strip.current?.children[now];
    cell?.classList.add("at");
    return () => cell?.classList.remove("at");
  }, [read, now, cells]);
  const numbers = Object.entries(tokens.columns).map(([name, column]) => [name, value(number(column[now]))] as const);
  const id = tokens.text[now] ?? "";
  const word = tokens.texts[now] === undefined ? "" : visible(tokens.texts[now]);
  const said = [`token ${now}`, ...(word === "" ? [] : [word]), `id ${id}`, ...numbers.map((pair) => pair.join(" "))];
  return (
    <>
      <div
        ref={strip}
        class={tokens.texts.length > 0 ? "heatstrip texts" : "heatstrip"}
        role="slider"
        tabIndex={0}
        aria-label={`Tokens of turn ${turn} coloured by ${by}`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, values.length - 1)}
        aria-valuenow={now}
        aria-valuetext={said.join(", ")}
        onPointerOver={(event) => {
          const at = (event.target as HTMLElement).dataset["at"];
          if (at !== undefined) setRead(Number(at));
        }}
        onPointerLeave={() => setRead(null)}
        onKeyDown={(event) => {
          const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: values.length - 1 }[event.key];
          if (next === undefined) return;
          event.preventDefault();
          event.stopPropagation();
          setRead(Math.max(0, Math.min(values.length - 1, next)));
        }}
      >
        {cells}
      </div>
      <p class="readout" aria-hidden="true">
        <b class="mono">
          {word} id {id}
        </b>
        {numbers.map(([name, text]) => (
          <span key={name}>
            <span class="soft">{name}</span> <b>{text}</b>
          </span>
        ))}
        <span class="soft">
          {read === null ? `farthest ${by}, ` : ""}token {now} of {values.length}
        </span>
      </p>
    </>
  );
}

/** The text of a token with what cannot be seen of it: its spaces and line ends. */
const visible = (text: string): string => shown(text).replaceAll(" ", "␣").replaceAll("\n", "⏎");

/** A cell a token, with its text where it is known; and the place of the one farthest from the middle. */
function coloured(values: readonly number[], { texts, columns }: RolloutTokens) {
  const finite = values.filter(Number.isFinite);
  const signed = finite.some((v) => v < 0) && finite.some((v) => v > 0);
  const middle = signed ? 0 : finite.reduce((sum, v) => sum + v, 0) / (finite.length || 1);
  const away = values.map((v) => (Number.isFinite(v) ? Math.abs(v - middle) : -1));
  const most = away.reduce((m, v) => Math.max(m, v), 0);
  const cells = values.map((v, i) => {
    const share = Math.max(-1, Math.min(1, (v - middle) / (most || 1)));
    const shade = SHADES[Math.round((share + 1) * 3)] ?? "";
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
  return { cells, far: Math.max(0, away.indexOf(most)) };
}
