/** The table of runs with its search, its filter, and the hands on a row. */

import { batch, useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Row } from "../../api/names.ts";
import { count } from "../../data/numbers.ts";
import { Field } from "../../parts/Field.tsx";
import { Grid, type Column } from "../../parts/Grid.tsx";
import { lazy } from "../../parts/lazy.tsx";
import { Failure, isInBanner } from "../../parts/Say.tsx";
import { go, say } from "../../state/address.ts";
import { useHands } from "../../state/hands.ts";
import { ColumnPicker } from "./ColumnPicker.tsx";
import { chosen, column, reorder, sayColumns } from "./columns.tsx";
import { Label } from "./Label.tsx";
import { ColorBy, GroupBy } from "./Settings.tsx";
import { Bulk } from "./Bulk.tsx";
import { Foot } from "./Foot.tsx";
import { RowMenu } from "./RowMenu.tsx";
import { Name, open, rowClass, sectionRow, useNameRoom } from "./rows.tsx";
import {
  colorOf,
  compareAddress,
  drawAll,
  drawn,
  drawRange,
  entities,
  gridId,
  invertDrawn,
  MOST_COMPARED,
  pinnedRows,
  pointerInside,
  rowAt,
  rowId,
  seeRows,
  table,
  toggleDrawn,
  toldNames,
} from "./table.ts";
import * as view from "./view.ts";

const NoRuns = lazy(() => import("./later.ts").then((m) => m.NoRuns));

/** `away`: the cause of a point stands in its place; the table keeps its scroll, its row and its menus. */
export function RunsPane({ away = false }: { away?: boolean }) {
  const active = useSignal(-1);
  const activeRow = useSignal("");
  const ids = chosen();
  const asked = table.answer.value !== null || table.error.value !== null;
  useEffect(() => {
    if (asked) sayColumns(ids);
  }, [ids.join("~"), view.colorBy.value, asked]); // a question for cells does not break off the first one
  void table.changed.value;
  const grouped = view.grouping.value !== "none";
  const columns = useMemo<Column<Row>[]>(
    () => [
      { id: "name", head: "run", called: "run", width: "minmax(144px, 1fr)", cell: (row) => <Name row={row} /> },
      ...ids.map(column),
      {
        id: "menu",
        head: <span class="sr">actions</span>,
        width: "30px",
        cell: (row) => <RowMenu row={row} />,
        wide: true,
        stays: true,
      },
    ],
    [ids.join("~"), view.sort.value, view.colorBy.value, drawn.value, grouped, table.changed.value],
  );
  const total = table.total.value + pinnedRows.value.length;
  useNameRoom(total === 0);
  const activate = (index: number): void => {
    const row = rowAt(index);
    batch(() => {
      active.value = index;
      activeRow.value = row === undefined ? "" : rowId(row);
    });
  };
  useEffect(() => {
    // rows that came before it move the row, not the choice
    const id = activeRow.peek();
    const at = (i: number): boolean => {
      const row = rowAt(i);
      return row !== undefined && rowId(row) === id;
    };
    if (id === "" || at(active.peek())) return;
    for (let i = 0; i < total; i++)
      if (at(i)) {
        active.value = i;
        return;
      }
  }, [table.changed.value, total]);
  const move = (by: number): void => {
    let next = active.value + by;
    while (rowAt(next)?.kind === "section") next += by;
    if (next >= 0 && next < total) activate(next);
  };
  const extend = (by: number): void => {
    const from = rowAt(active.value);
    if (from !== undefined && from.kind !== "section" && !colorOf.peek().has(rowId(from))) toggleDrawn(rowId(from));
    move(by);
    const row = rowAt(active.value);
    if (row !== undefined && row !== from && row.kind !== "section" && !colorOf.peek().has(rowId(row)))
      toggleDrawn(rowId(row));
  };
  const here = (): Row | undefined => rowAt(active.value);
  /** The row of the group here, or of the run here, if a key can unfold or fold it; else -1. */
  const groupToTurn = (unfolds: boolean): number => {
    const row = here();
    if (row?.kind === "group") return row.open === unfolds ? -1 : active.value;
    let i = unfolds || row?.kind !== "run" || row.member_of === null ? -1 : active.value;
    while (i >= 0 && rowAt(i)?.kind !== "group") i--;
    return i;
  };
  const turn = (index: number): void => {
    activate(index);
    open(rowAt(index) as Row);
  };
  useHands(() => [
    { keys: ["j"], what: "next run", act: () => move(1), when: () => !away && asked },
    { keys: ["k"], what: "previous run", act: () => move(-1), when: () => !away && asked },
    {
      keys: ["ArrowUp", "ArrowDown"],
      shown: "↑ ↓",
      what: "in the table: another run",
      act: ({ key }) => {
        document.querySelector<HTMLElement>(".grid.runs")?.focus({ preventScroll: true }); // its row may scroll away
        move(key === "ArrowUp" ? -1 : 1);
      },
      when: () => document.activeElement?.closest(".grid.runs") != null,
    },
    {
      keys: [" "],
      shown: "Space",
      what: "show or hide its curves",
      act: () => {
        const row = here();
        if (row) toggleDrawn(rowId(row));
      },
      when: () => !away && here() !== undefined,
    },
    {
      keys: ["Enter"],
      what: "open the run, or its group",
      act: () => {
        const row = here();
        if (row) open(row);
      },
      when: () => !away && here() !== undefined,
    },
    {
      keys: ["ArrowRight"],
      shown: "→",
      what: "unfold the group",
      act: () => turn(groupToTurn(true)),
      when: () => !away && groupToTurn(true) >= 0,
    },
    {
      keys: ["ArrowLeft"],
      shown: "←",
      what: "fold the group",
      act: () => turn(groupToTurn(false)),
      when: () => !away && groupToTurn(false) >= 0,
    },
    {
      keys: ["m", "ContextMenu"],
      shown: "m",
      what: "what can be done with the row",
      act: () => {
        const menus = document.querySelectorAll<HTMLElement>(".grid-row.active .more, .onrow button");
        [...menus].find((one) => one.checkVisibility())?.click();
      },
      when: () => !away && here() !== undefined,
    },
    { keys: ["g"], what: "group seeds, or show each", act: () => say({ g: grouped ? "none" : "", open: "" }) },
    {
      keys: ["shift ArrowDown"],
      shown: "⇧ ↓",
      what: "draw the next row, too",
      act: () => extend(1),
      when: () => !away,
    },
    {
      keys: ["shift ArrowUp"],
      shown: "⇧ ↑",
      what: "draw the row above, too",
      act: () => extend(-1),
      when: () => !away,
    },
    { keys: ["ctrl a"], shown: "ctrl A", what: "draw all", act: () => void drawAll(), when: () => !away },
    { keys: ["i"], what: "draw what is not drawn", act: () => void invertDrawn(), when: () => !away },
    { keys: ["c"], what: "compare the chosen", act: () => go(compareAddress()) },
    {
      keys: ["Escape"],
      shown: "Esc",
      what: "one step back",
      act: () => say({ f: "", q: "" }),
      when: () => view.filter.value !== "" || view.search.value !== "",
    },
  ]);
  const onRow = here();
  const chosenCount = useComputed(() => entities.value.length);
  const offered =
    chosenCount.value > MOST_COMPARED ? `${MOST_COMPARED} of ${count(chosenCount.value)}` : count(chosenCount.value);
  return (
    <section class={asked ? "pane" : "pane waits"} aria-label="Runs" hidden={away}>
      <div class="bar">
        <GroupBy />
        <ColorBy />
        <ColumnPicker />
        <Label runs={entities.value.flatMap(({ runs }) => runs.map(({ run }) => run))} />
        <span class="grow" />
        <a
          class={`btn${chosenCount.value > 1 ? " main" : ""}`}
          href={compareAddress()}
          aria-label={`Compare ${offered}, what is drawn`}
        >
          Compare {count(Math.min(MOST_COMPARED, chosenCount.value))}
        </a>
        <a
          class="btn phone-only"
          href="#charts"
          onClick={(event) => {
            event.preventDefault();
            document.getElementById("charts")?.scrollIntoView();
          }}
        >
          Charts ↓
        </a>
      </div>
      <div class="bar">
        <Field
          grow
          mono
          value={view.filter.value}
          label="Filter runs: words, or a condition"
          placeholder="words, or lr < 3e-4 and status = 'running'"
          bad={table.error.value?.code === "bad_input"}
          wait={400}
          onSay={(f) => say({ f })}
        />
        {view.search.value !== "" && (
          <button
            class="chip"
            type="button"
            aria-label={`Runs named ${view.search.value}: show all`}
            onClick={() => say({ q: "" })}
          >
            {view.search.value} ×
          </button>
        )}
        <button class="btn" type="button" onClick={() => void drawAll()}>
          Draw all
        </button>
        <button class="btn" type="button" onClick={() => void invertDrawn()}>
          Invert
        </button>
        <Bulk />
      </div>
      {table.error.value && !isInBanner(table.error.value) && (
        <div class="pad">
          <Failure error={table.error.value} again={() => void table.again()} />
        </div>
      )}
      {total === 0 && table.answer.value !== null ? (
        <NoRuns />
      ) : (
        <Grid
          label="Table of runs"
          columns={columns}
          total={total}
          row={rowAt}
          onSeen={seeRows}
          onOrder={reorder}
          active={active.value}
          rowClass={rowClass}
          whole={sectionRow}
          onHover={(inside) => {
            pointerInside.value = inside;
          }}
          onOpen={(row, index, event) => {
            activate(index);
            if (row.kind === "section") return;
            if (event.shiftKey) drawRange(rowId(row));
            else toggleDrawn(rowId(row));
          }}
          class="runs"
          id={gridId}
        />
      )}
      {onRow !== undefined && onRow.kind !== "section" && (
        <div class="onrow phone-only">
          <RowMenu key={rowId(onRow)} row={onRow} called={toldNames.value.get(rowId(onRow)) ?? onRow.name} />
        </div>
      )}
      <Foot />
    </section>
  );
}
