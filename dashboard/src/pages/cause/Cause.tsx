/** What happened there? Everything near one step of one run: left the keys that left their range, right a drawer. */

import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Cause as Found } from "../../api/names.ts";
import { count, seconds, value } from "../../data/numbers.ts";
import { Icon } from "../../parts/Icon.tsx";
import { KeyChart } from "../../parts/KeyChart.tsx";
import { Failure, Waiting } from "../../parts/Say.tsx";
import { Status } from "../../parts/Status.tsx";
import { clock } from "../../data/numbers.ts";
import { useAnswer } from "../../state/answer.ts";
import { colorOfRun } from "../../state/colors.ts";
import { deskOf, DeskContext, runOf } from "../../state/desk.ts";
import { useHands } from "../../state/hands.ts";
import { causeOf } from "../../state/foreseen.ts";
import { source } from "../../state/here.ts";
import { go } from "../../state/address.ts";
import { axisName, marks } from "../runs/charts.ts";
import { entities } from "../runs/table.ts";
import { cause, sayCause, smoothing } from "../runs/view.ts";
import { place } from "../../charts/Tip.tsx";
import { kindOf } from "../../state/desk.ts";
import { PANELS } from "./panels.tsx";

type Point = NonNullable<typeof cause.value>;

const AROUND = 6; // windows of rows before and behind the point that the charts show
const LEAST = 0.08; // of the way to the point: keys that are logged rarely need so much to be seen
const window = signal<number | null>(null);

/** Goes along the rows of the key that was clicked. */
async function step(point: Point, by: 1 | -1): Promise<void> {
  const { at } = await source.step(point.run, point.x, point.at, point.key, by);
  if (typeof at === "number") sayCause({ ...point, at }, false);
}

function giveBack(before: HTMLElement | null, key: string, frames = 30): void {
  requestAnimationFrame(() => {
    const chart =
      before?.isConnected && before !== document.body
        ? before
        : document.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"] .plotarea`);
    if (chart) chart.focus({ preventScroll: true });
    else if (frames > 0) giveBack(before, key, frames - 1);
  });
}

export function Cause() {
  const point = cause.value;
  const key = useRef("");
  if (point) key.current = point.key;
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    document.getElementById("cause")?.focus();
    // The charts of the page are made anew when the drawer closes: the hand goes back to the one of that key.
    return () => giveBack(before, key.current);
  }, []);
  const answer = useAnswer(point && `${point.run} ${point.x} ${point.at} ${point.key} ${window.value}`, () => {
    return causeOf(point as Point, window.value);
  });
  useHands(() => [
    {
      keys: ["ArrowLeft"],
      shown: "←",
      what: "previous row",
      act: () => {
        if (point) void step(point, -1);
      },
    },
    {
      keys: ["ArrowRight"],
      shown: "→",
      what: "next row",
      act: () => {
        if (point) void step(point, 1);
      },
    },
    {
      keys: ["e"],
      what: "open its episode",
      act: () => {
        const id = episodeOf(answer.value);
        if (point && id !== null)
          go(`#/episodes?run=${encodeURIComponent(point.run)}&episode=${encodeURIComponent(id)}`);
      },
    },
    { keys: ["Escape"], shown: "Esc", what: "close the drawer", act: () => sayCause(null) },
  ]);
  if (!point) return null;
  const found = answer.value;
  return (
    <>
      <Moment point={point} found={found} />
      <aside class="drawer" id="cause" tabIndex={-1} aria-label="What happened there">
        <div class="scroll" tabIndex={0} role="region" aria-label="What happened near this point">
          <Head point={point} found={found} />
          {answer.error && (
            <div class="pad">
              <Failure error={answer.error} again={answer.again} />
            </div>
          )}
          {!found && answer.slow && <Waiting what="what happened there" />}
          {found &&
            PANELS.map(({ id, show, Panel }) =>
              show(found) ? (
                <Panel
                  key={id}
                  found={found}
                  widen={() => {
                    window.value = found.window * 4;
                  }}
                />
              ) : null,
            )}
        </div>
        <div class="foot">
          {found && <span>read in {seconds(found.took_ms / 1000)}</span>}
          <span class="grow" />
          <span class="hide-s">
            <kbd>←</kbd> <kbd>→</kbd> rows <kbd>e</kbd> episode <kbd>Esc</kbd> close
          </span>
        </div>
      </aside>
    </>
  );
}

export const episodeOf = (found: Found | null): string | null => {
  const rows = found?.episodes.rows ?? [];
  const row = rows[Math.floor(rows.length / 2)];
  return row ? String(row["episode_id"]) : (found?.episodes.nearest?.id ?? null);
};

/** The colour in which a run is drawn, alone or in its group. */
const colorIn = (run: string): number =>
  entities.value.find((entity) => entity.runs.some((member) => member.run === run))?.color ?? colorOfRun(run);

function Head({ point, found }: { point: Point; found: Found | null }) {
  const color = colorIn(point.run);
  const members = entities.value.find((entity) => entity.runs.some((member) => member.run === point.run))?.runs ?? [];
  return (
    <section class="causehead">
      <div class="row">
        <h2>
          {found ? found.x : point.x} {place(point.at, kindOf(point.x))}
        </h2>
        <span class="grow" />
        <button class="btn icon" type="button" aria-label="Previous row" onClick={() => void step(point, -1)}>
          <Icon name="left" />
        </button>
        <button class="btn icon" type="button" aria-label="Next row" onClick={() => void step(point, 1)}>
          <Icon name="right" />
        </button>
        <button class="btn bare icon" type="button" aria-label="Close" onClick={() => sayCause(null)}>
          <Icon name="close" />
        </button>
      </div>
      {found && (
        <p>
          <i class={`dot s${color}`} />{" "}
          {members.length > 1 ? (
            <select
              aria-label="Which run of the group"
              value={point.run}
              onChange={(event) => sayCause({ ...point, run: event.currentTarget.value }, false)}
            >
              {members.map((member) => (
                <option key={member.run} value={member.run}>
                  {member.run === point.run && found.seed !== null ? `${found.name}, seed ${found.seed}` : member.name}
                </option>
              ))}
            </select>
          ) : (
            <b>
              {found.name}
              {found.seed === null ? "" : `, seed ${found.seed}`}
            </b>
          )}{" "}
          <Status status={found.status} text={found.attempt ? `attempt ${found.attempt}` : found.status} />{" "}
          <span class="soft">{clock(found.time)}</span>{" "}
          <span class="soft">
            {Object.entries(found.clocks)
              .filter(([name]) => name !== found.x)
              .slice(0, 3)
              .map(([name, n]) => `· ${name} ${count(n)} `)}
          </span>
        </p>
      )}
      {found?.value && (
        <p>
          <code>{found.value.key}</code> <b class="big">{value(Number(found.value.value))}</b>
          {typeof found.value.before === "number" && (
            <span class="soft"> was {value(found.value.before)} the row before</span>
          )}
        </p>
      )}
    </section>
  );
}

/** The keys of that moment, those that left their usual range first. */
function Moment({ point, found }: { point: Point; found: Found | null }) {
  const color = colorIn(point.run);
  const name = found ? `${found.name}${found.seed === null ? "" : `, seed ${found.seed}`}` : point.run;
  const desk = useMemo(
    () =>
      deskOf(
        point.run,
        name,
        point.x,
        axisName.peek() === "" ? point.x : axisName.peek(),
        {
          marks,
          look: signal({ smoothing: smoothing.peek(), xLog: false, yLog: false, robust: false, draw: "curves" }),
          pick: (line, x, key) => {
            if (runOf(desk.entities.peek(), line)) sayCause({ ...point, key, at: x }, false);
          },
        },
        color,
      ),
    [point.run, point.x, name, color],
  );
  const near = found?.window ?? 0;
  const span = desk.feed.of(point.key).value.span;
  useEffect(() => {
    if (near <= 0) return;
    const half = Math.max(near * AROUND, kindOf(point.x) === "wall" ? 0 : Math.abs(point.at) * LEAST);
    const from = point.at - half;
    desk.hub.view.value = {
      x0: Math.max(span?.x0 ?? (point.at >= 0 ? 0 : from), from),
      x1: Math.min(span?.x1 ?? Infinity, point.at + half),
    };
    desk.hub.refresh();
    desk.hub.point(point.at, null);
  }, [desk, point.at, near, span?.x0, span?.x1]);
  useEffect(() => desk.hub.view.subscribe((view) => desk.feed.zoom(view)), [desk]);
  const unusual = (found?.unusual ?? []).filter((one) => one.key !== point.key);
  return (
    <section class="pane" aria-label="The keys of that moment">
      <div class="scroll" tabIndex={0} role="region" aria-label="Charts near the point">
        <DeskContext.Provider value={desk}>
          <section class="section">
            <h2>
              The point <span class="soft">double-click for the whole run</span>
            </h2>
            <div class="charts">
              <div class="wide">
                <KeyChart key={point.key} name={point.key} soft="every row" />
              </div>
            </div>
          </section>
          {unusual.length > 0 && (
            <section class="section">
              <h2>
                Same moment <span class="soft">keys that left their usual range here come first</span>
              </h2>
              <div class="charts">
                {unusual.slice(0, 24).map((one) => (
                  <KeyChart
                    key={one.key}
                    name={one.key}
                    soft={
                      <span
                        class={`tag${Number(one.times) >= 3 ? " warn" : ""}`}
                        title={`usually ${value(Number(one.low))} to ${value(Number(one.high))}`}
                      >
                        {value(Number(one.times), 2)} ×
                      </span>
                    }
                  />
                ))}
              </div>
            </section>
          )}
        </DeskContext.Provider>
      </div>
      <div class="foot">
        {found && unusual.length > 0 && (
          <span>
            sorted by how far each key left its range: {Math.min(24, unusual.length)} of {unusual.length} keys shown
          </span>
        )}
      </div>
    </section>
  );
}
