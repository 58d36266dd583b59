/** Whether the page hears the server, and what has just happened; lines, never dialogs. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { clock } from "../data/numbers.ts";
import { hello, source } from "../state/here.ts";
import { connection, hear, liveRuns, tryNow, watch } from "../state/live.ts";
import { Icon } from "./Icon.tsx";
import { Menu } from "./Menu.tsx";

export function Live() {
  const { state } = connection.value;
  const running = liveRuns.value ?? hello.value?.live ?? 0;
  if (!source.live) {
    const told = hello.value?.static;
    const label = (
      <>
        <i />
        <span>a copy{told ? ` of ${clock(told.made)}` : ""}</span>
      </>
    );
    return (
      <Menu plain class="live off link" name="a copy: what it can answer" label={label}>
        {() => <p>{told?.note}</p>}
      </Menu>
    );
  }
  if (state === "closed")
    return (
      <span class="live off" role="status">
        <i />
        <span>offline</span>
      </span>
    );
  return (
    <span class="live" role="status">
      <i />
      <span>live{running > 0 ? `, ${running} running` : ""}</span>
    </span>
  );
}

/** The line under the head while the server does not answer: what one sees is of when, and the next try. */
export function Disconnected() {
  const { state, again, heard, needsToken } = connection.value;
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (state !== "closed") return;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [state]);
  if (state !== "closed" || heard === 0) return null;
  const left = Math.max(0, Math.ceil((again - now) / 1000));
  return (
    <div class="banner" role="status">
      <Icon name="info" />
      <span class="grow">
        {needsToken ? (
          <b>This page needs its token. Open the address that rollbook ui printed.</b>
        ) : (
          <>
            <b>The server does not answer.</b> Trying again {left > 0 ? `in ${left} s` : "now"}. The page is as of{" "}
            {clock(heard)}; training does not depend on it.
          </>
        )}
      </span>
      <button class="btn" type="button" onClick={tryNow}>
        Try now
      </button>
    </div>
  );
}

/** The newest run that began while this page was open; the pages that can show it hear of it in one line. */
export const newborn = signal<{ run: string; text: string } | null>(null);

interface Event {
  text: string;
  run: string;
  bad: boolean;
}
const passing = signal<Event | null>(null);
const STAYS = 12_000;

/** A run that died or ended, as one line that goes by itself. */
export function Passing() {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stops = [
      watch("runs"),
      hear("status", (push) => {
        const name = `${push.project}/${push.name}${push.seed === null ? "" : `, seed ${push.seed}`}`;
        if (push.was === null) newborn.value = { run: push.run, text: name };
        if (push.was === null || push.was === push.status) return;
        const bad = push.status === "crashed" || push.status === "stale";
        const goOn = bad && push.resume_line !== null ? ` Go on with: ${push.resume_line}` : "";
        passing.value = {
          run: push.run,
          bad,
          text: `${name}: ${push.status}${push.why === null ? "" : `, ${push.why}`}.${goOn}`,
        };
        clearTimeout(timer);
        timer = setTimeout(() => {
          passing.value = null;
        }, STAYS);
      }),
    ];
    return () => stops.forEach((stop) => stop());
  }, []);
  const now = passing.value;
  if (!now) return null;
  return (
    <div class={`banner${now.bad ? "" : " calm"}`} role="status">
      <Icon name={now.bad ? "info" : "check"} />
      <a class="grow" href={`#/run/${encodeURIComponent(now.run)}`}>
        {now.text}
      </a>
      <button
        class="btn bare icon"
        type="button"
        aria-label="Close"
        onClick={() => {
          passing.value = null;
        }}
      >
        <Icon name="close" />
      </button>
    </div>
  );
}
