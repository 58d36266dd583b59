/** How is training going? The table of runs and their charts, side by side; the cause of a point in a drawer over them. */

import { signal, type Signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { count } from "../../data/numbers.ts";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { Context } from "../../parts/Context.tsx";
import { useHands } from "../../state/hands.ts";
import { Boards } from "./Boards.tsx";
import { ChartsPane } from "./ChartsPane.tsx";
import { learnColumns } from "./columns.tsx";
import { RunsPane } from "./RunsPane.tsx";
import { entities, startTable, table } from "./table.ts";
import * as view from "./view.ts";

const drawer: Signal<ComponentType | null> = signal(null);
const AFTER = 1_500; // ms: the drawer's code comes behind the first charts, before somebody clicks on one

const fetchDrawer = (): void => {
  if (drawer.peek() === null) void import("../cause/Cause.tsx").then((made) => { drawer.value = made.Cause; }, () => undefined);
};

export function Runs() {
  useLayoutEffect(() => { // what is asked for here need not wait for the first paint
    const stop = startTable();
    void learnColumns().catch(() => undefined);
    return stop;
  }, []);
  useHands(() => [{ keys: ["b"], what: "boards", act: () => document.getElementById("pick-board")?.click() }]);
  const open = view.cause.value !== null;
  useEffect(() => {
    const timer = setTimeout(fetchDrawer, open ? 0 : AFTER);
    return () => clearTimeout(timer);
  }, [open]);
  const Drawer = drawer.value;
  const runs = entities.value.reduce((n, entity) => n + entity.runs.length, 0);
  return (
    <>
      <Context>
        <span class="grow" />
        <span class="soft hide-s">
          {count(runs)} of {count(table.answer.value?.runs ?? 0)} runs drawn
        </span>
        <Boards />
        <CopyLink />
      </Context>
      <main id="main" class={open ? "split cause" : "split"}>
        {!open && <RunsPane />}
        {open && Drawer ? <Drawer /> : <ChartsPane />}
      </main>
    </>
  );
}
