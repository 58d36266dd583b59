/** What became of a rollout, and how it ended: a shape and a word, the same wherever they stand. */

import type { Cell } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { value } from "../../data/numbers.ts";
import { colorOf, fateIn } from "../../data/rollouts.ts";
import { Icon } from "../../parts/Icon.tsx";
import { fateWords } from "./opened.ts";

type Cells = { [name: string]: Cell };

/** Full: it was trained on and taught something. */
export const FateDot = ({ fate }: { fate: string }) => (
  <i class={`fatedot s${colorOf(fate)}${fate === "used" ? "" : " open"}`} aria-hidden="true" />
);

export function FateMark({ cells }: { cells: Cells }) {
  const fate = fateIn(cells);
  return (
    <span class={fate === "used" ? "" : "soft"} title={fateWords(fate)}>
      <FateDot fate={fate} /> {fateWords(fate)}
    </span>
  );
}

export function StatusMark({ status }: { status: string }) {
  const bad = status === "failed" || status === "aborted";
  return (
    <span class={bad ? "mark bad" : "mark soft"}>
      {bad ? <Icon name="close" /> : status === "completed" ? <Icon name="check" /> : <i class="cutmark" />}{" "}
      {shown(status)}
    </span>
  );
}

/** An advantage with a bar from its middle; `most`: the largest of those beside it. */
export function Advantage({ of, most }: { of: Cell | undefined; most: number }) {
  if (typeof of !== "number") return <span class="soft">–</span>;
  const share = Math.min(1, Math.abs(of) / (most || 1)) * 50;
  return (
    <span class="advantage">
      {value(of)}
      <span class={`gain ${of < 0 ? "s2" : "s1"}`} aria-hidden="true">
        <i style={{ left: `${of < 0 ? 50 - share : 50}%`, width: `${share}%` }} />
      </span>
    </span>
  );
}
