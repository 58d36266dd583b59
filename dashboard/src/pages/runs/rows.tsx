/** What a row of the runs table looks like, and what opening it does. */

import { useEffect } from "preact/hooks";
import type { Row } from "../../api/names.ts";
import { amount, count } from "../../data/numbers.ts";
import { Icon } from "../../parts/Icon.tsx";
import { Middle } from "../../parts/Middle.tsx";
import { addressOf, go, say } from "../../state/address.ts";
import { colorOf, drawRange, nameLetters, rowId, runName, toggleDrawn, toldNames } from "./table.ts";
import * as view from "./view.ts";

export function open(row: Row): void {
  if (row.kind === "run")
    go(addressOf("run", { run: "" }).replace(/^#\/run[^?]*/, `#/run/${encodeURIComponent(row.run)}`));
  else if (row.kind === "group") say({ open: view.toggled(view.opened.peek(), row.id) });
}

const LETTER = 6.4; // px of a name
const BESIDE = 46; // the square and the arrow before it

/** Names are told apart at the width that their column has. */
export function useNameRoom(empty: boolean): void {
  useEffect(() => {
    const head = document.querySelector(".grid.runs [data-column=name]");
    if (head === null) return;
    const sizes = new ResizeObserver(([one]) => {
      if (!one || one.contentRect.width === 0) return;
      const letters = Math.floor((one.contentRect.width - BESIDE) / LETTER);
      // Rows for a finger have room for two lines, of which the first may end early.
      nameLetters.value = Math.max(6, matchMedia("(max-width: 760px)").matches ? 2 * letters - 4 : letters);
    });
    sizes.observe(head);
    return () => sizes.disconnect();
  }, [empty]);
}

export function rowClass(row: Row): string {
  if (row.kind === "section") return "project";
  const on = colorOf.peek().has(rowId(row));
  const member = row.kind === "run" && row.member_of !== null && view.grouping.peek() !== "none";
  const parent = member && row.kind === "run" && row.member_of !== null && colorOf.peek().has(row.member_of);
  return `${row.kind === "group" ? "group" : member ? "seed" : ""}${on ? " shown" : parent ? "" : " off"}`;
}

export const sectionRow = (row: Row) =>
  row.kind === "section" ? (
    <>
      <b>{row.name}</b> {amount(row.runs, "run")}
      {row.live > 0 && ` · ${row.live} running`}
      {row.total &&
        Object.entries(row.total)
          .slice(0, 1)
          .map(([clock, n]) => ` · total ${count(n)} ${clock}`)}
    </>
  ) : null;

export function Name({ row }: { row: Row }) {
  if (row.kind === "section") return null;
  const id = rowId(row);
  const color = colorOf.value.get(id);
  const name = row.kind === "run" ? (row.member_of !== null ? runName(row, true) : runName(row)) : row.name;
  const told = toldNames.value.get(id) ?? name;
  // Of a folded group a run may be drawn: the square of what is on the screen says so.
  const inside = row.kind !== "group" || color !== undefined ? [] : row.runs.filter((run) => colorOf.value.has(run));
  const [first] = inside;
  const square = color ?? (first === undefined ? undefined : colorOf.value.get(first));
  return (
    <span class="name">
      <button
        class="square"
        type="button"
        aria-pressed={color !== undefined}
        aria-label={`${color === undefined ? "Show" : "Hide"} the curves of ${name}`}
        title={inside.length > 0 ? `${amount(inside.length, "run")} of it drawn` : "shift: all rows from the last one"}
        onClick={(event) => (event.shiftKey ? drawRange(id) : toggleDrawn(id))}
      >
        <i class={square === undefined ? "dot hidden" : `dot s${square}${color === undefined ? " part" : ""}`} />
      </button>
      {row.kind === "group" && (
        <button
          class="fold"
          type="button"
          aria-expanded={row.open}
          aria-label={`Runs of ${name}`}
          onClick={() => say({ open: view.toggled(view.opened.value, row.id) })}
        >
          <Icon name={row.open ? "down" : "right"} />
        </button>
      )}
      {row.kind === "run" ? (
        <a
          class="runname"
          href={`#/run/${encodeURIComponent(row.run)}`}
          title={`${row.project}/${row.name}${row.seed === null ? "" : `, seed ${row.seed}`} ${row.id}`}
        >
          <Middle text={told} name={name} />
        </a>
      ) : (
        <button class="runname link" type="button" title={name} onClick={() => open(row)}>
          <Middle text={told} name={name} />
        </button>
      )}
      {row.kind === "run" && row.archived && <span class="tag">archived</span>}
      {row.damaged !== "" &&
        (row.kind === "run" ? (
          <a
            class="lost"
            href={`#/run/${encodeURIComponent(row.run)}`}
            title={row.damaged}
            aria-label={`Damaged: ${row.damaged}`}
          >
            <Icon name="info" />
          </a>
        ) : (
          <span class="lost" role="img" title={row.damaged} aria-label={row.damaged}>
            <Icon name="info" />
          </span>
        ))}
    </span>
  );
}
