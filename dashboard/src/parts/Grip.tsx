/** The edge of a column: dragged to change its width, with arrows by key, back with a double click or Delete. */

import { useRef } from "preact/hooks";
import { keepWidth, widths } from "../state/widths.ts";

const LEAST = 40; // px
const MOST = 900;
const STEP = 16;

/** `sorts`: the head has a button, from which ↓ leads here: Tab stops at a head once. */
export function Grip({
  table,
  column,
  name,
  sorts = false,
}: {
  table: string;
  column: string;
  name: string;
  sorts?: boolean;
}) {
  const from = useRef<{ x: number; width: number } | null>(null);
  const put = (px: number): void => keepWidth(table, column, Math.max(LEAST, Math.min(MOST, px)));
  const now = (target: EventTarget | null): number =>
    (target as HTMLElement).closest("[role=columnheader]")?.getBoundingClientRect().width ?? LEAST;
  return (
    <span
      class="grip"
      role="separator"
      tabIndex={sorts ? -1 : 0}
      aria-orientation="vertical"
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      aria-valuenow={widths(table)[column] ?? LEAST}
      aria-valuetext={widths(table)[column] === undefined ? "as it was made" : `${widths(table)[column]} pixels`}
      aria-label={`Width of the column ${name}`}
      title="drag: width; double click: as it was"
      onPointerDown={(event) => {
        event.preventDefault(); // the head is not dragged with it
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = { x: event.clientX, width: now(event.currentTarget) };
      }}
      onPointerMove={(event) => from.current && put(from.current.width + event.clientX - from.current.x)}
      onPointerUp={() => {
        from.current = null;
      }}
      onPointerCancel={() => {
        from.current = null;
      }}
      onDblClick={() => keepWidth(table, column, null)}
      onKeyDown={(event) => {
        if (event.key === "Delete") keepWidth(table, column, null);
        else if (event.key === "ArrowLeft") put(now(event.currentTarget) - STEP);
        else if (event.key === "ArrowRight") put(now(event.currentTarget) + STEP);
        else if (event.key === "ArrowUp" || event.key === "Escape")
          event.currentTarget.parentElement?.querySelector("button")?.focus();
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    />
  );
}

/** The head of a column that can be dragged to the place of another one. */
export const dragged = (id: string, onOrder: (id: string, to: string) => void) => ({
  draggable: true,
  onDragStart: (event: DragEvent) => event.dataTransfer?.setData("text/rollbook-column", id),
  onDragOver: (event: DragEvent) => {
    if (event.dataTransfer?.types.includes("text/rollbook-column")) event.preventDefault();
  },
  onDrop: (event: DragEvent) => {
    const from = event.dataTransfer?.getData("text/rollbook-column") ?? "";
    event.preventDefault();
    if (from !== "" && from !== id) onOrder(from, id);
  },
});
