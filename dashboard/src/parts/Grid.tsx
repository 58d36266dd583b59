/** A table of any length: only the rows on the screen exist. Rows come in windows from whoever has them. */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { dragged, Grip } from "./Grip.tsx";
import { widths } from "../state/widths.ts";

export interface Column<Row> {
  id: string;
  head: ComponentChildren;
  /** A CSS grid track: "90px", "minmax(120px, 1fr)". */
  width: string;
  number?: boolean;
  cell: (row: Row) => ComponentChildren;
  /** Sorts by this column when its head is pressed. */
  sort?: () => void;
  sorted?: "ascending" | "descending" | undefined;
  /** Left out on a phone. */
  wide?: boolean;
  /** Stays at the right edge, however far the table is scrolled. */
  stays?: boolean;
  /** What it is called, where a hand may change its width. */
  called?: string;
}

export interface GridProps<Row> {
  label: string;
  columns: Column<Row>[];
  total: number;
  row: (index: number) => Row | undefined;
  /** Tells which rows are on the screen, whenever that changes. */
  onSeen?: (first: number, last: number) => void;
  rowClass?: (row: Row) => string;
  /** A row that spans all columns. */
  whole?: (row: Row) => ComponentChildren | null;
  onOpen?: (row: Row, index: number, event: MouseEvent) => void;
  onHover?: (inside: boolean) => void;
  /** A column was dragged to the place of another one. */
  onOrder?: (id: string, to: string) => void;
  active?: number | undefined;
  /** What a row is, wherever it stands: focus and open menus stay with it. */
  id?: (row: Row) => string;
  class?: string;
  height?: number;
}

const EXTRA = 8;

export function Grid<Row>(props: GridProps<Row>) {
  const scroller = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ first: 0, last: 40 });
  const [rowHeight, setRowHeight] = useState(props.height ?? 28);
  const name = (i: number): string | number => {
    const row = props.row(i);
    return row === undefined || props.id === undefined ? i : props.id(row);
  };
  const tallest = useRef(rowHeight);
  /** How tall a row is changes with the size of the window alone; asked at each scroll it would lay out the page. */
  const resize = (): void => {
    if (scroller.current && props.height === undefined)
      tallest.current = Number.parseFloat(getComputedStyle(scroller.current).getPropertyValue("--row")) || 28;
    setRowHeight(tallest.current);
    measure();
  };
  const measure = (): void => {
    const box = scroller.current;
    if (!box) return;
    const tall = tallest.current;
    const inner = box.scrollHeight > box.clientHeight + 1 || box.clientHeight > 0;
    const offset =
      box.clientHeight < innerHeight && inner ? box.scrollTop : Math.max(0, -box.getBoundingClientRect().top);
    const room = Math.min(box.clientHeight, innerHeight);
    const first = Math.max(0, Math.floor(offset / tall) - EXTRA);
    // Not cut at the total: a row that newer ones push down would be gone for a moment, and its focus with it.
    const last = Math.ceil((offset + room) / tall) + EXTRA;
    setSeen((old) => (old.first === first && old.last === last ? old : { first, last }));
  };
  useEffect(() => {
    const sizes = new ResizeObserver(resize); // looks at once, too, when the page is laid out anyway
    if (scroller.current) sizes.observe(scroller.current);
    addEventListener("scroll", measure, { passive: true });
    return () => {
      sizes.disconnect();
      removeEventListener("scroll", measure);
    };
  }, [props.total]);
  useEffect(() => props.onSeen?.(seen.first, seen.last), [seen.first, seen.last, props.total, props.onSeen]);
  useEffect(() => {
    const box = scroller.current;
    if (!box || props.active === undefined || props.active < 0) return;
    const top = props.active * rowHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + rowHeight * 2 > box.scrollTop + box.clientHeight)
      box.scrollTop = top + rowHeight * 2 - box.clientHeight;
    // When another row is active, not when the same one stands elsewhere.
  }, [props.active !== undefined && props.active >= 0 ? name(props.active) : ""]);
  // A row that moves in the document loses the focus; what had it gets it back.
  const held = scroller.current?.contains(document.activeElement) ? (document.activeElement as HTMLElement) : null;
  useLayoutEffect(() => {
    if (held !== null && held !== document.activeElement && held.isConnected) held.focus({ preventScroll: true });
  });
  const own = widths(props.label);
  const tracks = props.columns.map(({ id, width }) => (own[id] === undefined ? width : `${own[id]}px`)).join(" ");
  const narrow = props.columns
    .filter((column) => column.wide !== true)
    .map((column) => column.width.replace(/minmax\(\d+px/, "minmax(84px"))
    .join(" ");
  // Tab goes through one row of a table in which keys move: of all rows it would go through a hundred buttons.
  const onScreen = props.active !== undefined && props.active >= seen.first && props.active <= seen.last;
  const tabbed = props.active === undefined ? null : onScreen ? props.active : firstRow(props, seen.first);
  const rows = [];
  const used = new Set<string | number>();
  for (let i = seen.first; i <= Math.min(seen.last, props.total - 1); i++) {
    const key = used.has(name(i)) ? `${name(i)} ${i}` : name(i); // a row that is pinned stands there twice
    used.add(key);
    rows.push(<Line key={key} index={i} {...props} top={i * rowHeight} inTabOrder={i === tabbed} />);
  }
  return (
    <div
      ref={scroller}
      class={`scroll grid ${props.class ?? ""}`}
      role="table"
      aria-label={props.label}
      aria-rowcount={props.total + 1}
      tabIndex={0}
      onScroll={measure}
      onPointerEnter={() => props.onHover?.(true)}
      onPointerLeave={() => props.onHover?.(false)}
      style={{ "--tracks": tracks, "--narrow": narrow }}
    >
      <div role="rowgroup" class="grid-head">
        <div role="row" class="grid-row">
          {props.columns.map((column) => (
            <div
              key={column.id}
              role="columnheader"
              class={`${column.number ? "num" : ""}${column.wide ? " hide-s" : ""}`}
              aria-sort={column.sorted}
              data-column={column.id}
              {...(props.onOrder && column.sort ? dragged(column.id, props.onOrder) : {})}
            >
              {column.sort ? (
                <button
                  type="button"
                  onClick={column.sort}
                  aria-description={column.called && "↓ for its width: ← → change it"}
                  onKeyDown={(event) => {
                    if (event.key !== "ArrowDown" || !column.called) return;
                    event.currentTarget.parentElement?.querySelector<HTMLElement>(".grip")?.focus();
                    event.preventDefault();
                    event.stopPropagation();
                  }}
                >
                  {column.head}
                  {column.sorted && (column.sorted === "descending" ? " ↓" : " ↑")}
                </button>
              ) : (
                column.head
              )}
              {column.called !== undefined && (
                <Grip table={props.label} column={column.id} name={column.called} sorts={column.sort !== undefined} />
              )}
            </div>
          ))}
        </div>
      </div>
      <div role="rowgroup" class="grid-body" style={{ height: `${props.total * rowHeight}px` }}>
        {rows}
      </div>
    </div>
  );
}

/** The first row from one on that is none of its headings. */
function firstRow<Row>({ row, whole, total }: GridProps<Row>, from: number): number {
  let first = from;
  for (let at = row(first); at !== undefined && whole?.(at) != null && first < total; at = row(first)) first++;
  return first;
}

interface LineProps<Row> extends GridProps<Row> {
  index: number;
  top: number;
  inTabOrder: boolean;
}

function Line<Row>({ index, top, inTabOrder, ...props }: LineProps<Row>) {
  const row = props.row(index);
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (props.active === undefined) return;
    const hands = box.current?.querySelectorAll<HTMLElement>("a, button, input") ?? [];
    for (const one of hands) if (one.tabIndex !== (inTabOrder ? 0 : -1)) one.tabIndex = inTabOrder ? 0 : -1;
  });
  const style = { transform: `translateY(${top}px)` };
  if (row === undefined) return <div role="row" class="grid-row waits" aria-rowindex={index + 2} style={style} />;
  const kind = `grid-row ${props.rowClass?.(row) ?? ""}${props.active === index ? " active" : ""}`;
  const whole = props.whole?.(row);
  if (whole != null) {
    return (
      <div role="row" class={`${kind} whole`} aria-rowindex={index + 2} style={style}>
        <div role="cell" aria-colspan={props.columns.length}>
          {whole}
        </div>
      </div>
    );
  }
  return (
    <div
      ref={box}
      role="row"
      class={kind}
      aria-rowindex={index + 2}
      style={style}
      onClick={
        props.onOpen &&
        ((event) => !(event.target as HTMLElement).closest("button, a, input") && props.onOpen?.(row, index, event))
      }
    >
      {props.columns.map((column) => (
        <div
          key={column.id}
          role="cell"
          class={`${column.number ? "num" : ""}${column.wide ? " hide-s" : ""}${column.stays ? " stays" : ""}`}
        >
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
}
