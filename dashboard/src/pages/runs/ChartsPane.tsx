/** The charts beside the table: what they share above, one section a scope below. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { amount, bytes, count, seconds } from "../../data/numbers.ts";
import { heroSpan } from "../../data/keys.ts";
import { Field } from "../../parts/Field.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { lazy } from "../../parts/lazy.tsx";
import { Menu } from "../../parts/Menu.tsx";
import { Empty, Failure, isInBanner, Waiting } from "../../parts/Say.tsx";
import { say } from "../../state/address.ts";
import { useHands } from "../../state/hands.ts";
import { chartColumns, desk, feed, heroes, hub, keys, keysError, shownSections, startCharts } from "./charts.ts";
import { Controls } from "./Controls.tsx";
import { KeyChart } from "../../parts/KeyChart.tsx";
import { DeskContext } from "../../state/desk.ts";
import { entities, table } from "./table.ts";
import * as view from "./view.ts";

const AddPanel = lazy(() => import("./later.ts").then((m) => m.AddPanel));
const NoMetric = lazy(() => import("./later.ts").then((m) => m.NoMetric));
const FIRST = 24;
const CHART = 244; // px, the least that a chart is wide
const SIDES = 24;

export function ChartsPane() {
  useLayoutEffect(() => startCharts(), []);
  useHands(() => [
    { keys: ["+", "="], shown: "+", what: "zoom in", act: () => hub.zoom(0.7, 0.5, null) },
    { keys: ["-"], what: "zoom out", act: () => hub.zoom(1 / 0.7, 0.5, null) },
    {
      keys: ["0"],
      what: "whole range",
      act: () => {
        hub.view.value = null;
        hub.jump(null);
      },
    },
    { keys: ["shift ArrowLeft"], shown: "⇧ ←", what: "pan left", act: () => hub.pan(-0.2, null) },
    { keys: ["shift ArrowRight"], shown: "⇧ →", what: "pan right", act: () => hub.pan(0.2, null) },
    { keys: ["v"], what: "to the charts, or back to the table", act: toChartsOrBack },
    { keys: ["x"], what: "pick the x-axis", act: () => document.getElementById("pick-x")?.click() },
    { keys: ["y"], what: "log scale, range", act: () => document.getElementById("pick-y")?.click() },
    { keys: ["a"], what: "a chart of several keys", act: () => document.getElementById("add-chart")?.click() },
    { keys: ["s"], what: "smoothing", act: () => document.getElementById("pick-s")?.click() },
    {
      keys: ["f"],
      what: "one chart full width",
      act: () => say({ full: view.focused.value === "" ? hovered() : "" }, true),
    },
    {
      keys: ["Escape"],
      shown: "Esc",
      what: "one step back",
      act: () => say({ full: "" }),
      when: () => view.focused.value !== "",
    },
  ]);
  const took = feed.took.value;
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const sizes = new ResizeObserver(() => {
      chartColumns.value = Math.max(1, Math.floor(((box.current?.clientWidth ?? 0) - SIDES) / (CHART + SIDES / 3)));
    });
    if (box.current) sizes.observe(box.current);
    return () => sizes.disconnect();
  }, []);
  return (
    <section class="pane" aria-label="Curves of what is drawn" id="charts">
      <div class="bar">
        <Controls />
        <Menu id="add-chart" label="+ chart" class="btn" plain kbd="a">
          {(close) => <AddPanel close={close} />}
        </Menu>
        <span class="grow" />
        <Field
          id="find-key"
          mono
          value={view.keyFilter.value}
          label="Filter keys: words, wildcards, regular expressions"
          placeholder="keys, e.g. loss kl*"
          onSay={(k) => say({ k })}
        />
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Charts" ref={box}>
        <DeskContext.Provider value={desk}>
          <Body />
        </DeskContext.Provider>
      </div>
      <div class="foot">
        <span class="hide-s hide-m">
          drag to zoom · shift-drag to pan · double-click for all · click a point for its cause
        </span>
        <span class="grow" />
        {took.charts > 0 && (
          <span>
            {amount(took.charts, "chart")}, {bytes(took.bytes)}, read in {seconds(took.ms / 1000)}
          </span>
        )}
      </div>
    </section>
  );
}

/** The focus goes to the first chart, from the charts to the table. */
function toChartsOrBack(): void {
  const isThere = document.activeElement?.closest("#charts .slot") != null;
  document.querySelector<HTMLElement>(isThere ? ".grid.runs" : "#charts .plotarea")?.focus();
}

const hovered = (): string =>
  document.querySelector<HTMLElement>(".chart.here")?.closest<HTMLElement>("[data-key]")?.dataset["key"] ??
  heroes.peek()[0] ??
  "";

function Body() {
  if (keysError.value && keys.value === null && !isInBanner(keysError.value))
    return (
      <div class="pad">
        <Failure error={keysError.value} />
      </div>
    );
  if (entities.value.length === 0)
    return table.answer.value === null ? (
      table.error.value === null ? (
        <Waiting what="runs" />
      ) : null
    ) : table.total.value === 0 ? null : (
      <Empty title="No run is drawn">
        <p>Press the square before a run, or Space on its row, to draw its curves here.</p>
      </Empty>
    );
  if (keys.value === null) return null;
  const searching = view.keyFilter.value !== "";
  if (view.focused.value !== "") {
    return (
      <div class="section full">
        <div class="charts one">
          <KeyChart
            key={view.focused.value}
            name={view.focused.value}
            big
            tools={<Tools name={view.focused.value} />}
          />
        </div>
      </div>
    );
  }
  const sections = shownSections.value;
  if (sections.length === 0 && (searching || heroes.value.length === 0)) {
    return keys.value.keys.length === 0 ? (
      <NoMetric />
    ) : (
      <Empty title={`No key of ${count(keys.value.keys.length)} fits`}>
        <button class="btn" type="button" onClick={() => say({ k: "" })}>
          Show all keys
        </button>
      </Empty>
    );
  }
  return (
    <>
      {view.seen.value !== "" && (
        <section class="section">
          <h2>
            Found{" "}
            <button class="link" type="button" onClick={() => say({ see: "" })}>
              close
            </button>
          </h2>
          <div class="charts one found-chart">
            <KeyChart key={view.seen.value} name={view.seen.value} big tools={<Tools name={view.seen.value} />} />
          </div>
        </section>
      )}
      {!searching && heroes.value.length > 0 && (
        <section class="section">
          <h2>
            Pinned <span class="soft">{pinnedWords()}</span>
          </h2>
          <div
            class="charts pinned"
            style={{ "--columns": chartColumns.value, "--span": heroSpan(heroes.value.length, chartColumns.value) }}
          >
            {heroes.value.map((key, i) => (
              <KeyChart key={key} name={key} big={i === 0} tools={<Tools name={key} />} />
            ))}
          </div>
        </section>
      )}
      <div class="sections" style={{ "--columns": chartColumns.value }}>
        {sections.map((section) => (
          <ScopeSection
            key={section.scope}
            {...section}
            shut={!searching && view.closedSections.value.includes(section.scope || "/")}
          />
        ))}
      </div>
    </>
  );
}

function pinnedWords(): string {
  const [n, of] = [heroes.value.length, keys.value?.keys.length ?? 0];
  const strip = entities.value.some((entity) => entity.runs.length > 1)
    ? "; strip on top: seeds behind each point"
    : "";
  return `${n} of ${amount(of, "key")}, none of them again below${strip}`;
}

interface Scope {
  scope: string;
  keys: { key: string }[];
  of: number;
  span: number;
  shut: boolean;
}

function ScopeSection({ scope, keys: infos, of, span, shut }: Scope) {
  const limit = useSignal(FIRST);
  const many = infos.length === of ? amount(of, "key") : `${infos.length} of ${amount(of, "key")}`;
  return (
    <section class="section" style={{ "--span": span }}>
      <h2>
        <button class="fold" type="button" aria-expanded={!shut} onClick={() => view.toggleSection(scope || "/")}>
          <Icon name={shut ? "right" : "down"} />
          {scope === "" ? "without scope" : scope}
        </button>
        <span class="soft">{many}</span>
      </h2>
      {!shut && (
        <div class="charts">
          {infos.slice(0, limit.value).map(({ key }) => (
            <KeyChart key={key} name={key} later tools={<Tools name={key} />} />
          ))}
        </div>
      )}
      {!shut && infos.length > limit.value && (
        <button
          class="btn"
          type="button"
          onClick={() => {
            limit.value += 100;
          }}
        >
          Show {Math.min(100, infos.length - limit.value)} more of {infos.length}
        </button>
      )}
    </section>
  );
}

function Tools({ name }: { name: string }) {
  const pinned = heroes.value.includes(name);
  return (
    <>
      <button
        class="btn bare icon"
        type="button"
        aria-label={`${pinned ? "Unpin" : "Pin"} ${name}`}
        aria-pressed={pinned}
        title="pin to the top"
        onClick={() => say({ pin: view.toggled(heroes.value, name) })}
      >
        <Icon name="pin" />
      </button>
      <button
        class="btn bare icon"
        type="button"
        aria-label={`${view.focused.value === name ? "Shrink" : "Enlarge"} ${name}`}
        title="full width (f)"
        onClick={() => say({ full: view.focused.value === name ? "" : name }, true)}
      >
        <Icon name="expand" />
      </button>
    </>
  );
}
