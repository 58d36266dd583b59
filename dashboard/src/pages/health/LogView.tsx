/** A text log: its end, older lines on demand, search, and following it as it grows. */

import { unstamped } from "../../data/log.ts";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { LogLine } from "../../api/names.ts";
import { bytes, clock } from "../../data/numbers.ts";
import { Field } from "../../parts/Field.tsx";
import { Failure } from "../../parts/Say.tsx";
import { say, word } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";
import { hear, reborn, watch } from "../../state/live.ts";
import { refusal, type Refusal } from "../../state/source.ts";

const chosen = word("log");
const MOST = 5000;
const LINES = 300;

/** The log one looks for first: one that says something, the script's own before the keeper's. */
function best<Log extends { name: string; bytes: number }>(logs: readonly Log[]): Log | undefined {
  return [...logs].sort(
    (a, b) =>
      Number(a.bytes === 0) - Number(b.bytes === 0) || Number(/keeper/.test(a.name)) - Number(/keeper/.test(b.name)),
  )[0];
}

const ALARMING = /\b(warn|error|traceback|exception)/i;

/** Whether the program wrote a line to stderr: it is marked so behind its time. */
const isError = (line: LogLine): boolean => line.text.startsWith("! ", 20);

export function LogView({ run }: { run: string }) {
  const logs = useAnswer(`${run} logs`, () => source.logs(run));
  const name = chosen.value !== "" ? chosen.value : (best(logs.value?.logs ?? [])?.name ?? "");
  const lines = useSignal<LogLine[]>([]);
  const start = useSignal(0);
  const search = useSignal("");
  const follows = useSignal(true);
  const error = useSignal<Refusal | null>(null);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (name === "") return;
    let alive = true;
    source.log(run, name, { lines: LINES, ...(search.value === "" ? {} : { search: search.value }) }).then(
      (answer) => {
        if (alive) {
          lines.value = answer.lines;
          start.value = answer.start;
          error.value = null;
        }
      },
      (why: unknown) => {
        if (alive) error.value = refusal(why);
      },
    );
    if (search.value !== "")
      return () => {
        alive = false;
      };
    const stops = [
      watch(`log:${run}:${name}`),
      hear("log", (push) => {
        if (push.run !== run || push.name !== name) return;
        const from = push.lines[0]?.offset ?? 0; // a line that had not ended comes again
        const kept = push.again ? [] : lines.peek().filter((line) => line.offset < from);
        lines.value = [...kept, ...push.lines].slice(-MOST);
        if (push.again) start.value = from;
      }),
    ];
    return () => {
      alive = false;
      stops.forEach((stop) => stop());
    };
  }, [run, name, search.value, reborn.value]);
  useEffect(() => {
    if (follows.value && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines.value, follows.value]);
  const older = (): void =>
    void source.log(run, name, { before: start.value, lines: LINES }).then(
      (answer) => {
        lines.value = [...answer.lines, ...lines.peek()].slice(0, MOST);
        start.value = answer.start;
        follows.value = false;
      },
      (why: unknown) => {
        error.value = refusal(why);
      },
    );
  const known = (logs.value?.logs ?? []).filter((log) => log.bytes > 0 || log.name === chosen.value);
  const shown = known.find((log) => log.name === name);
  return (
    <section class="card c8">
      <header>
        <h2>Log</h2>
        {known.length > 1 ? (
          <select aria-label="Which log" value={name} onChange={(event) => say({ log: event.currentTarget.value })}>
            {known.map((log) => (
              <option key={log.name} value={log.name}>
                {log.label}
              </option>
            ))}
          </select>
        ) : (
          <span class="soft">{shown ? `${shown.label}, ${bytes(shown.bytes)}` : "no text was logged"}</span>
        )}
        {lines.value.some(isError) && (
          <span class="log">
            <span class="err">stderr</span>
          </span>
        )}
        <span class="grow" />
        {known.length > 0 && (
          <Field
            value={search.value}
            label="Find in the log"
            placeholder="find in log"
            onSay={(text) => {
              search.value = text;
            }}
          />
        )}
        {known.length > 0 && (
          <button
            class="btn"
            type="button"
            aria-pressed={follows.value}
            onClick={() => {
              follows.value = !follows.value;
            }}
          >
            {follows.value ? "Follows" : "Follow"}
          </button>
        )}
      </header>
      {(error.value ?? logs.error) && (
        <div class="pad">
          <Failure error={(error.value ?? logs.error) as Refusal} />
        </div>
      )}
      <div
        ref={box}
        class={`log logbox in${known.length === 0 ? " none" : ""}`}
        tabIndex={0}
        role="log"
        aria-label="Lines of the log"
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          follows.value = scrollHeight - scrollTop - clientHeight < 24;
        }}
      >
        {start.value > 0 && search.value === "" && (
          <button class="btn" type="button" onClick={older}>
            Older lines
          </button>
        )}
        {lines.value.map((line) => (
          <div key={line.offset} class={`${isError(line) ? "err" : ""}${ALARMING.test(line.text) ? " warn" : ""}`}>
            {typeof line.time === "number" && <time>{clock(line.time)}</time>}
            {unstamped(line)}
          </div>
        ))}
        {known.length === 0 && logs.value && (
          <p class="soft">Lines that a logger of rollbook writes, and the output of the script, stand here.</p>
        )}
      </div>
    </section>
  );
}
