/** What "find anything" finds, and what is done with it. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { found, type Places, type Thing } from "../data/finding.ts";
import { pinnedFirst } from "../data/keys.ts";
import { fullName } from "../data/names.ts";
import { amount, sentence } from "../data/numbers.ts";
import { addressOf, go, say } from "../state/address.ts";
import { useAnswer } from "../state/answer.ts";
import { hands } from "../state/hands.ts";
import { source } from "../state/here.ts";

interface Entry extends Thing {
  act: () => void;
}

const EACH = 7;
const NEWEST = 300;
const ORDER = ["Keys", "Runs", "Health", "Pages", "Actions"];

interface Asked extends Places {
  /** What was typed before the field was there. */
  early: () => { text: string; entered: boolean };
  close: () => void;
}

export function PalettePanel({ pages, onRuns, early, close }: Asked) {
  const [before] = useState(early);
  const [text, setText] = useState(before.text);
  const [at, setAt] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => input.current?.focus(), []); // at once: what is typed next belongs to it
  const columns = useAnswer("palette", () => source.columns());
  const ask = { columns: [], sections: false, group_by: null };
  const newest = useAnswer("palette runs", () => source.runs({ ...ask, limit: NEWEST }));
  const hits = useAnswer(text !== "" ? `palette ${text}` : null, (stop) =>
    source.runs({ ...ask, limit: EACH, search: text }, stop),
  );
  const health = useAnswer(text === "" ? null : "palette health", () => source.findings());
  const findings = text === "" ? [] : (health.value?.findings ?? []);
  const sure = text === "" || hits.old ? [] : (hits.value?.rows ?? []);
  const others = (newest.value?.rows ?? []).filter((row) => !sure.some(({ id }) => id === row.id));
  const runs = [...sure, ...others].flatMap((row) => (row.kind === "run" ? [row] : []));
  const metrics = columns.value?.metrics ?? [];
  const first = pinnedFirst(metrics, EACH);
  const keys = text === "" ? metrics.filter(({ key }) => first.includes(key)) : metrics;
  const entries: Entry[] = [
    ...keys.map(({ key, runs: n }) => ({
      kind: "Keys",
      name: key,
      soft: `${amount(n, "run")} · chart`,
      act: () => (onRuns ? say({ see: key, full: "" }, true) : go(addressOf("runs", { see: key, full: "" }))),
    })),
    ...runs.map((row) => ({
      kind: "Runs",
      name: fullName(row),
      also: row.run,
      sure: sure.includes(row),
      soft: `${row.project} · ${row.status}`,
      act: () => go(`#/run/${encodeURIComponent(row.run)}`),
    })),
    ...findings.map(({ rule, level, message, many, runs: at }) => ({
      kind: "Health",
      name: sentence(message),
      also: [rule, level, message, ...at.map((run) => fullName(run))].join(" "),
      soft: `${rule === "ended" ? level : rule} · ${amount(many, "run")}`,
      act: () => go(`#/health?rule=${encodeURIComponent(rule)}`),
    })),
    ...pages.map(({ name, question, address }) => ({ kind: "Pages", name, soft: question, act: () => go(address) })),
    ...hands.value
      .filter((hand) => hand.when?.() !== false && !["find anything", "this sheet"].includes(hand.what))
      .map((hand) => ({
        kind: "Actions",
        name: hand.what,
        soft: hand.shown ?? hand.keys[0] ?? "",
        act: () => hand.act(new KeyboardEvent("keydown")),
      })),
  ];
  const shown = found(entries, text, ORDER, EACH);
  const chosen = Math.min(at, shown.length - 1);
  const take = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    close();
    entry.act();
  };
  // Enter before what was typed is answered opens the first that is found then.
  const ready = !columns.old && !newest.old && (text === "" || (!hits.old && (shown.length > 0 || !health.old)));
  const [entered, setEntered] = useState(before.entered);
  useEffect(() => {
    if (entered && ready) {
      setEntered(false);
      take(shown[chosen]);
    }
  }, [entered, ready]);
  const key = (event: KeyboardEvent): void => {
    setEntered(event.key === "Enter" && !ready);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const next = (chosen + (event.key === "ArrowDown" ? 1 : -1) + shown.length) % Math.max(1, shown.length);
      setAt(next);
      list.current?.querySelector(`#found-${next}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (ready) take(shown[chosen]);
    }
  };
  return (
    <>
      <input
        ref={input}
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={shown.length > 0 ? `found-${chosen}` : undefined}
        aria-label="Find runs, keys, findings, pages and actions"
        placeholder="Find runs, keys, findings, pages, actions"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onKeyDown={key}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
      />
      <div class="found" id="found" role="listbox" aria-label="Found" ref={list} tabIndex={-1}>
        {shown.map((entry, i) => (
          <div key={`${entry.kind} ${entry.also ?? entry.name} ${entry.soft}`} role="presentation">
            {shown[i - 1]?.kind !== entry.kind && (
              <p class="soft" role="presentation">
                {entry.kind}
              </p>
            )}
            <div
              id={`found-${i}`}
              role="option"
              aria-selected={i === chosen}
              class={`choice${entry.kind === "Keys" ? " mono" : ""}`}
              onPointerMove={() => setAt(i)}
              onClick={() => take(entry)}
            >
              <span>{entry.name}</span>
              <span class="soft">{entry.soft}</span>
            </div>
          </div>
        ))}
      </div>
      {shown.length === 0 && !hits.old && <p class="soft pad">Nothing is called so.</p>}
      <div class="foot">
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> choose <kbd>Enter</kbd> open
        </span>
        <span class="grow" />
        <span>
          <kbd>Esc</kbd> back to where you were
        </span>
      </div>
    </>
  );
}
