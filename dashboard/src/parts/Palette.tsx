/** One field for everything that has a name: keys, runs, pages and what can be done now. */

import { signal } from "@preact/signals";
import type { Places } from "../data/finding.ts";
import { lazy } from "./lazy.tsx";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

const Panel = lazy(() => import("./PalettePanel.tsx").then((m) => m.PalettePanel));

/** What is typed after `/` until the field is there. */
let early = { text: "", entered: false };
const keep = (event: KeyboardEvent): void => {
  const { key, ctrlKey, metaKey, altKey } = event;
  if (ctrlKey || metaKey || altKey) return;
  if (key === "Enter") early.entered = true;
  else if (key === "Backspace") early.text = early.text.slice(0, -1);
  else if (key.length === 1) early.text += key;
  else return;
  event.preventDefault();
  event.stopImmediatePropagation();
};
const takeEarly = (): typeof early => {
  removeEventListener("keydown", keep, true);
  const taken = early;
  early = { text: "", entered: false };
  return taken;
};

const opened = signal(0);
export const showPalette = (): void => {
  if (document.querySelector("dialog.palette[open]") !== null) return;
  addEventListener("keydown", keep, true);
  opened.value += 1;
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
      onClose={() => {
        if (dialog.current?.open) return; // it comes late: it may be open again
        takeEarly();
        setClosed(opened.peek());
      }}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      {open && (
        <Panel key={times} early={takeEarly} pages={pages} onRuns={onRuns} close={() => dialog.current?.close()} />
      )}
    </dialog>
  );
}
