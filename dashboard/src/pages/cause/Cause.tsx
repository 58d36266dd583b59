/** What happened there? Everything near one step of one run, in the place of the table; the charts stay beside it. */

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Cause as Found } from "../../api/names.ts";
import { count, rounded, seconds, short, value } from "../../data/numbers.ts";
import { Icon } from "../../parts/Icon.tsx";
import { Failure, Waiting } from "../../parts/Say.tsx";
import { Status } from "../../parts/Status.tsx";
import { clock } from "../../data/numbers.ts";
import { useAnswer } from "../../state/answer.ts";
import { colorOfRun } from "../../state/colors.ts";
import { useHands } from "../../state/hands.ts";
import { causeOf } from "../../state/foreseen.ts";
import { source } from "../../state/here.ts";
import { go } from "../../state/address.ts";
import { calledThere, hub, tags } from "../runs/charts.ts";
import { entities } from "../runs/table.ts";
import { cause, sayCause } from "../runs/view.ts";
import { place } from "../../charts/place.ts";
import { kindOf } from "../../state/desk.ts";
import { Crashed } from "./Crashed.tsx";
import { PANELS } from "./panels.tsx";
import { far } from "./Unusual.tsx";

type Point = NonNullable<typeof cause.value>;

const AROUND = 12; // windows of rows on each side that "zoom" shows
const FAR = 1.5; // of half the usual range: so far a key has left it
const chosenWindow = signal<number | null>(null);

/** Goes along the rows of the key that was clicked. */
async function step(point: Point, by: 1 | -1): Promise<void> {
  if (point.key === "") return; // a moment without a curve has no rows to step over
  const next = await source.step(point.run, point.x, point.at, point.key, by).catch(() => null);
  if (next === null) return; // the server is away, which the banner says, or the run no longer has the key
  const { at } = next;
  if (typeof at === "number") sayCause({ ...point, at });
}

function zoomTo(at: number, half: number): void {
  const whole = hub.whole();
  if (whole) hub.jump({ x0: Math.max(whole.x0, at - half), x1: Math.min(whole.x1, at + half) });
}

function giveBack(before: HTMLElement | null, key: string, frames = 30): void {
  requestAnimationFrame(() => {
    if (document.getElementById("cause") !== null) return; // open again before this frame: its keys are its own
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
  const answer = useAnswer(point && `${point.run} ${point.x} ${point.at} ${point.key} ${chosenWindow.value}`, () => {
    return causeOf(point as Point, chosenWindow.value);
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
  const found = answer.value;
  useEffect(() => {
    const left = (found?.unusual ?? []).filter(({ times }) => Number(times) >= FAR);
    tags.value = new Map(left.map((one) => [one.key, far(one).replace(" ×", " × its usual")]));
    if (found && point)
      calledThere.value = {
        run: point.run,
        name: found.seed === null ? found.name : `${found.name}, seed ${found.seed}`,
      };
    return () => {
      tags.value = new Map();
    };
  }, [found]);
  if (!point) return null;
  return (
    <>
      <section class="pane drawer" id="cause" tabIndex={-1} aria-label="What happened there">
        <div class="scroll" tabIndex={0} role="region" aria-label="What happened near this point">
          <Head point={point} found={found} />
          {answer.error && (
            <div class="pad">
              <Failure error={answer.error} again={answer.again} />
            </div>
          )}
          {!found && answer.slow && <Waiting what="what happened there" />}
          {found?.status === "crashed" && <Crashed run={found.run} />}
          {found &&
            PANELS.map(({ id, show, Panel }) =>
              show(found) ? (
                <Panel
                  key={id}
                  found={found}
                  widen={() => {
                    chosenWindow.value = found.window * 4;
                  }}
                />
              ) : null,
            )}
        </div>
        <div class="foot">
          {found && (
            <button class="link" type="button" onClick={() => zoomTo(point.at, found.window * AROUND)}>
              zoom to ±{kindOf(point.x) === "count" ? short(rounded(found.window * AROUND, 3)) : "this moment"}
            </button>
          )}
          {found && <span class="hide-m">read in {seconds(found.took_ms / 1000)}</span>}
          <span class="grow" />
          <span class="hide-s">
            <kbd>←</kbd> <kbd>→</kbd> points <kbd>e</kbd> episode <kbd>Esc</kbd> close
          </span>
        </div>
      </section>
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
        <button class="btn icon" type="button" aria-label="Previous point" onClick={() => void step(point, -1)}>
          <Icon name="left" />
        </button>
        <button class="btn icon" type="button" aria-label="Next point" onClick={() => void step(point, 1)}>
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
