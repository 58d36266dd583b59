/** How is training going? The table of runs and their charts; the cause of a point in the place of the table. */

import { effect, signal, type Signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { amount, count } from "../../data/numbers.ts";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { Context } from "../../parts/Context.tsx";
import { useHands } from "../../state/hands.ts";
import { calm } from "../../state/first.ts";
import { Icon } from "../../parts/Icon.tsx";
import { newborn } from "../../parts/Live.tsx";
import { Boards } from "./Boards.tsx";
import { ChartsPane } from "./ChartsPane.tsx";
import { keys } from "./charts.ts";
import { heroKey, known, learnColumns } from "./columns.tsx";
import { RunsPane } from "./RunsPane.tsx";
import { entities, show, startTable, table } from "./table.ts";
import * as view from "./view.ts";

const drawer: Signal<ComponentType | null> = signal(null);

const fetchDrawer = (): void => {
  if (drawer.peek() === null)
    void import("../cause/Cause.tsx").then(
      (made) => {
        drawer.value = made.Cause;
      },
      () => undefined,
    );
};

/** A run that began while one looks at others: it is announced here, and drawn when that is asked for. */
function Newborn() {
  const now = newborn.value;
  if (
    now === null ||
    view.cause.value !== null ||
    entities.value.some((entity) => entity.runs.some(({ run }) => run === now.run))
  )
    return null;
  return (
    <span class="newborn" role="status">
      <b>{now.text}</b> started{" "}
      <button class="link" type="button" onClick={() => show(now.run)}>
        show
      </button>
      <button
        class="btn bare icon"
        type="button"
        aria-label="Close"
        onClick={() => {
          newborn.value = null;
        }}
      >
        <Icon name="close" />
      </button>
    </span>
  );
}

export function Runs() {
  useLayoutEffect(() => {
    // what is asked for here need not wait for the first paint
    const stops = [
      startTable(),
      effect(() => {
        // A page that was open before the first row knows no number to show in the table.
        const isNew = (keys.value?.keys.length ?? 0) > 0 && heroKey.peek() === "" && known.peek() !== null;
        if (isNew) void learnColumns().catch(() => undefined);
      }),
    ];
    void learnColumns().catch(() => undefined);
    return () => stops.forEach((stop) => stop());
  }, []);
  useHands(() => [{ keys: ["b"], what: "boards", act: () => document.getElementById("pick-board")?.click() }]);
  const open = view.cause.value !== null;
  useEffect(() => {
    if (open) fetchDrawer();
    else void calm.then(fetchDrawer);
  }, [open]);
  const Drawer = drawer.value;
  const runs = entities.value.reduce((n, entity) => n + entity.runs.length, 0);
  return (
    <>
      <Context>
        <Newborn />
        <span class="grow" />
        <span class="soft hide-s">
          {table.answer.value !== null && `${count(runs)} of ${amount(table.answer.value.runs, "run")} drawn`}
        </span>
        <Boards />
        <CopyLink />
      </Context>
      <main id="main" class={open ? "split cause" : "split"}>
        <RunsPane away={open && Drawer !== null} />
        {open && Drawer && <Drawer />}
        <ChartsPane />
      </main>
    </>
  );
}
