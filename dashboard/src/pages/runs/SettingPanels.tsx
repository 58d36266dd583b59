/** Menus that choose settings of the configurations: by which runs are grouped, and by which they are coloured. */

import { useState } from "preact/hooks";
import type { ColumnsAnswer } from "../../api/names.ts";
import { pattern } from "../../data/search.ts";
import { amount, count, plain } from "../../data/numbers.ts";
import { Choice } from "../../parts/Menu.tsx";
import { say } from "../../state/address.ts";
import { source } from "../../state/here.ts";
import { known } from "./columns.tsx";
import { groupedBy, short } from "./view.ts";
import * as view from "./view.ts";

type Setting = ColumnsAnswer["config"][number];

/** Settings that differ first, those with the fewest values before the others. */
function settings(): Setting[] {
  const all = known.value?.config ?? [];
  const rank = ({ distinct }: Setting): number => (distinct > 1 ? distinct : 1e9);
  return [...all].sort((a, b) => rank(a) - rank(b) || a.column.localeCompare(b.column));
}

function words({ distinct, examples, varies }: Setting): string {
  if (distinct === 1) return `all ${plain(examples[0])}`;
  if (distinct <= 3 || !varies) {
    const few = examples.slice(0, 3).sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : 0));
    return few.map(plain).join(", ") + (distinct > 3 ? " …" : "");
  }
  return amount(distinct, "value");
}

function Find({ chosen, choose }: { chosen: (column: string) => boolean; choose: (column: string) => void }) {
  const [text, setText] = useState("");
  const search = pattern(text);
  const every = settings();
  const equal = text === "" ? every.filter(({ column, distinct }) => distinct === 1 && !chosen(column)).length : 0;
  // Those that are equal wherever they are set tell no runs apart: they are found by their names.
  const all = every.filter(({ column, distinct }) =>
    text === "" ? distinct > 1 || chosen(column) || equal === every.length : (search?.test(short(column)) ?? true),
  );
  return (
    <>
      <label class="field">
        <input
          type="search"
          placeholder="find a setting"
          aria-label="Find a setting"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <div class="choices" tabIndex={0} role="group" aria-label="Settings">
        {all.slice(0, 200).map((one) => (
          <Choice key={one.column} chosen={chosen(one.column)} soft={words(one)} onChoose={() => choose(one.column)}>
            <span class="mono">{short(one.column)}</span>
          </Choice>
        ))}
        {equal > 0 && equal < every.length && (
          <p class="soft pad small">
            {count(equal)} with one value {equal === 1 ? "is" : "are"} found by name
          </p>
        )}
        {all.length === 0 && <p class="soft pad">{text === "" ? "No run has a configuration." : "No setting fits."}</p>}
      </div>
    </>
  );
}

export function GroupPanel({ close }: { close: () => void }) {
  const now = groupedBy();
  const said = view.grouping.value;
  const group = (g: string): void => say({ g, open: "" });
  return (
    <div class="picker">
      {source.live && (
        <>
          <Find
            chosen={(column) => now.includes(column)}
            choose={(column) =>
              group(now.includes(column) ? now.filter((one) => one !== column).join(",") : [...now, column].join(","))
            }
          />
          <hr />
        </>
      )}
      <Choice
        chosen={said === "auto"}
        soft="seeds together"
        onChoose={() => {
          group("");
          close();
        }}
      >
        what differs
      </Choice>
      <Choice
        chosen={said === "none"}
        soft="each run alone"
        onChoose={() => {
          group("none");
          close();
        }}
      >
        nothing
      </Choice>
    </div>
  );
}

export function ColorPanel({ close }: { close: () => void }) {
  const by = view.colorBy.value;
  return (
    <div class="picker">
      <Find
        chosen={(column) => column === by}
        choose={(column) => {
          say({ cb: column === by ? "" : column });
          close();
        }}
      />
      <hr />
      <Choice
        chosen={by === ""}
        soft="each its own, for life"
        onChoose={() => {
          say({ cb: "" });
          close();
        }}
      >
        group
      </Choice>
    </div>
  );
}
