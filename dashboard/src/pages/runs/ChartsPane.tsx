/** The charts beside the table: what they share above, one section a scope below. */

import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { bytes, count, seconds } from "../../data/numbers.ts";
import { Field } from "../../parts/Field.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { Empty, Failure, isInBanner, Waiting } from "../../parts/Say.tsx";
import { say } from "../../state/address.ts";
import { useHands } from "../../state/hands.ts";
import { desk, feed, heroes, hub, keys, keysError, shownSections, startCharts } from "./charts.ts";
import { Controls } from "./Controls.tsx";
import { KeyChart } from "../../parts/KeyChart.tsx";
import { DeskContext } from "../../state/desk.ts";
import { entities, table } from "./table.ts";
import * as view from "./view.ts";

const FIRST = 24;

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
    { keys: ["x"], what: "pick the x-axis", act: () => document.getElementById("pick-x")?.click() },
    { keys: ["y"], what: "log scale, range", act: () => document.getElementById("pick-y")?.click() },
    { keys: ["s"], what: "smoothing", act: () => document.getElementById("pick-s")?.click() },
    { keys: ["f"], what: "one chart full width", act: () => say({ full: view.focused.value === "" ? hovered() : "" }) },
    {
      keys: ["Escape"],
      shown: "Esc",
      what: "one step back",
      act: () => say({ full: "" }),
      when: () => view.focused.value !== "",
    },
  ]);
  const took = feed.took.value;
  return (
    <section class="pane" aria-label="Charts" id="charts">
      <div class="bar">
        <Controls />
        <span class="grow" />
        <Field
          hide
          id="find-key"
          mono
          value={view.keyFilter.value}
          label="Filter keys by regular expression"
          placeholder="keys, e.g. loss|kl"
          onSay={(k) => say({ k })}
        />
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Charts">
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
            {took.charts} {took.charts === 1 ? "chart" : "charts"}, {bytes(took.bytes)}, read in{" "}
            {seconds(took.ms / 1000)}
          </span>
        )}
      </div>
    </section>
  );
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
      <Waiting what="runs" />
    ) : table.total.value === 0 ? null : (
      <Empty title="No run is drawn">
        <p>Press the square before a run, or Space on its row, to draw its curves here.</p>
      </Empty>
    );
  if (keys.value === null) return null;
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
  if (sections.length === 0) {
    return keys.value.keys.length === 0 ? (
      <Empty title="No metric was logged yet" code='run.log({"train/return": r}, env_step=step)' />
    ) : (
      <Empty title={`None of ${count(keys.value.keys.length)} keys fit`}>
        <button class="btn" type="button" onClick={() => say({ k: "" })}>
          Show all keys
        </button>
      </Empty>
    );
  }
  const searching = view.keyFilter.value !== "";
  return (
    <>
      {!searching && heroes.value.length > 0 && (
        <section class="section">
          <h2>
            Pinned{" "}
            <span class="soft">
              {entities.value.some((entity) => entity.runs.length > 1) ? "strip on top: seeds behind each point" : ""}
            </span>
          </h2>
          <div class="charts">
            {heroes.value.map((key, i) => (
              <KeyChart key={key} name={key} big={i === 0} tools={<Tools name={key} />} />
            ))}
          </div>
        </section>
      )}
      {sections.map((section) => (
        <ScopeSection
          key={section.scope}
          {...section}
          shut={!searching && view.closedSections.value.includes(section.scope || "/")}
        />
      ))}
    </>
  );
}

function ScopeSection({
  scope,
  keys: infos,
  of,
  shut,
}: {
  scope: string;
  keys: { key: string }[];
  of: number;
  shut: boolean;
}) {
  const limit = useSignal(FIRST);
  return (
    <section class="section">
      <h2>
        <button
          class="fold"
          type="button"
          aria-expanded={!shut}
          onClick={() => say({ shut: view.toggled(view.closedSections.value, scope || "/") })}
        >
          <Icon name={shut ? "right" : "down"} />
          {scope === "" ? "without scope" : scope}
        </button>
        <span class="soft">
          {infos.length === of ? `${of} ${of === 1 ? "key" : "keys"}` : `${infos.length} of ${of} keys`}
        </span>
      </h2>
      {!shut && (
        <div class="charts">
          {infos.slice(0, limit.value).map(({ key }) => (
            <KeyChart key={key} name={key} tools={<Tools name={key} />} />
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
        onClick={() => say({ full: view.focused.value === name ? "" : name })}
      >
        <Icon name="expand" />
      </button>
    </>
  );
}
