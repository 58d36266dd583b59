/** A completion token by token, coloured by what trainer and sampler think of each. */

import { useState } from "preact/hooks";
import type { Tokens } from "../../api/names.ts";
import { amount, value } from "../../data/numbers.ts";

const HEATS = ["n3", "n2", "n1", "", "p1", "p2", "p3"];

function heat(v: number, most: number): string {
  const share = Math.max(-1, Math.min(1, v / (most || 1)));
  const name = HEATS[Math.round((share + 1) * 3)] ?? "";
  return name === "" ? "transparent" : `var(--heat-${name})`;
}

export function TokenView({ tokens }: { tokens: Tokens }) {
  const names = Object.keys(tokens.columns);
  const [by, setBy] = useState(names.includes("gap") ? "gap" : (names[0] ?? ""));
  const [at, setAt] = useState<number | null>(null);
  const values = (tokens.columns[by] ?? []).map((v) => (typeof v === "number" ? v : Number.NaN));
  const finite = values.filter(Number.isFinite);
  const signed = finite.some((v) => v < 0) && finite.some((v) => v > 0);
  const middle = signed ? 0 : finite.reduce((sum, v) => sum + v, 0) / (finite.length || 1);
  const most = finite.reduce((m, v) => Math.max(m, Math.abs(v - middle)), 0);
  const numberAt = (name: string): string => value(Number(tokens.columns[name]?.[at ?? -1] ?? Number.NaN));
  return (
    <section class="card">
      <header>
        <h2>Token by token</h2>
        <span class="soft">{amount(tokens.text.length, "token")}</span>
        <span class="grow" />
        <span class="seg" role="group" aria-label="Coloured by">
          {names.map((name) => (
            <button key={name} type="button" aria-pressed={name === by} onClick={() => setBy(name)}>
              {name}
            </button>
          ))}
        </span>
      </header>
      <div class="in">
        <p class="toks mono">
          {tokens.text.slice(0, 4000).map((text, i) => (
            <span
              key={i}
              class={`tok${at === i ? " on" : ""}`}
              style={{
                background: Number.isFinite(values[i]) ? heat((values[i] as number) - middle, most) : "transparent",
              }}
              onPointerEnter={() => setAt(i)}
            >
              {text.replace(/\n/g, "⏎\n")}
            </span>
          ))}
        </p>
        <p class="soft">
          {at === null
            ? "hover a token for its numbers"
            : `token ${at}: ${names.map((name) => `${name} ${numberAt(name)}`).join("  ")}`}
        </p>
      </div>
    </section>
  );
}
