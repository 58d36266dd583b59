/** The sheet of all keys that work now. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { lazy } from "./lazy.tsx";

const Panel = lazy(() => import("./HelpPanel.tsx").then((m) => m.HelpPanel));

const opened = signal(0);
export const showHelp = (): void => {
  opened.value += 1;
};

export function HelpSheet() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [closed, setClosed] = useState(0);
  const open = opened.value > closed;
  useLayoutEffect(() => {
    if (open && dialog.current?.open === false) dialog.current.showModal();
  }, [open]);
  return (
    <dialog ref={dialog} aria-labelledby="help-head" onClose={() => setClosed(opened.peek())}>
      {open && <Panel close={() => dialog.current?.close()} />}
    </dialog>
  );
}
