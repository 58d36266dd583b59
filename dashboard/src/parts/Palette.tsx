/** One field for everything that has a name: keys, runs, pages and what can be done now. */

import { signal } from "@preact/signals";
import type { Places } from "../data/finding.ts";
import { lazy } from "./lazy.tsx";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

const Panel = lazy(() => import("./PalettePanel.tsx").then((m) => m.PalettePanel));

const opened = signal(0);
export const showPalette = (): void => {
  if (document.querySelector("dialog.palette[open]") === null) opened.value += 1;
};

export function Palette({ pages, onRuns }: Places) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [closed, setClosed] = useState(0);
  const times = opened.value;
  const open = times > closed;
  useLayoutEffect(() => {
    if (open && dialog.current?.open === false) dialog.current.showModal();
  }, [open, times]);
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Find anything"
      onClose={() => dialog.current?.open || setClosed(opened.peek())} // it comes late: it may be open again
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      {open && <Panel key={times} pages={pages} onRuns={onRuns} close={() => dialog.current?.close()} />}
    </dialog>
  );
}
