/** What can be done with a row: open, draw, pin, compare, only runs with its settings, rename, tags, notes, the bin. */

import { amount } from "../../data/numbers.ts";
import { useState } from "preact/hooks";
import type { EditQuery, Row } from "../../api/names.ts";
import { COLORS } from "../../data/colors.ts";
import { conditionFor } from "../../data/search.ts";
import { Choice } from "../../parts/Menu.tsx";
import { Words } from "../../parts/Words.tsx";
import { go, say } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { hello, source } from "../../state/here.ts";
import { refusal, type Refusal } from "../../state/source.ts";
import { Failure } from "../../parts/Say.tsx";
import { known } from "./columns.tsx";
import { open } from "./rows.tsx";
import { chooseColor, colorOf, columnsWanted, compareAddress, rowId, table, toggleDrawn } from "./table.ts";
import { ToTheBin } from "./ToTheBin.tsx";
import * as view from "./view.ts";

const MOST_ONLY = 6;

/** `net.width` of a configuration, nested or not. */
function settingOf(config: { [name: string]: unknown } | undefined, path: string): unknown {
  const inside = (at: unknown, name: string): unknown => (at as { [name: string]: unknown } | undefined)?.[name];
  return config?.[path] ?? path.split(".").reduce(inside, config);
}

export function RowPanel({ row, close }: { row: Exclude<Row, { kind: "section" }>; close: () => void }) {
  const [error, setError] = useState<Refusal | null>(null);
  const id = rowId(row);
  const runs = row.kind === "run" ? [row.run] : row.runs;
  const edit = (query: Omit<EditQuery, "runs">): void => {
    source.edit({ runs, ...query }).then(
      (answer) => {
        const [first] = answer.refused;
        if (first) setError(refusal(new Error(first.why)));
        else close();
        void table.again();
      },
      (why: unknown) => setError(refusal(why)),
    );
  };
  // What runs like it have: of the columns that are shown, and of what else tells runs apart.
  const [first = ""] = runs;
  const detail = useAnswer(source.live ? `${first} settings` : null, () => source.run(first)).value;
  const differ = (known.value?.config ?? []).filter((one) => one.distinct > 1 && !/seed$/i.test(one.column));
  const conditions = [
    ...columnsWanted.value.map((column) => (/^config\./.test(column) ? conditionFor(column, row.cells[column]) : null)),
    ...differ.map(({ column }) => conditionFor(column, settingOf(detail?.config, view.short(column)))),
  ];
  const only = [...new Set(conditions)].filter((one) => one !== null && source.live).slice(0, MOST_ONLY) as string[];
  const isDrawn = colorOf.value.has(id);
  const then = (act: () => void) => (): void => {
    act();
    close();
  };
  const pinned = view.pinnedRuns.value.includes(id);
  return (
    <div class="picker">
      {error && <Failure error={error} />}
      <div class="swatches" role="group" aria-label="Colour">
        {Array.from({ length: COLORS }, (_, i) => (
          <button
            key={i}
            type="button"
            class={`swatch s${i + 1}`}
            aria-label={`Colour ${i + 1}`}
            aria-pressed={colorOf.value.get(id) === i + 1}
            onClick={() => chooseColor(id, i + 1)}
          />
        ))}
      </div>
      {row.kind === "run" ? (
        <a class="choice" href={`#/run/${encodeURIComponent(row.run)}`}>
          Open the run
        </a>
      ) : (
        <Choice onChoose={then(() => open(row))}>{row.open ? "Fold" : "Unfold"} its runs</Choice>
      )}
      <Choice onChoose={then(() => toggleDrawn(id))}>{isDrawn ? "Hide its curves" : "Draw its curves"}</Choice>
      <Choice onChoose={then(() => say({ top: view.toggled(view.pinnedRuns.value, id) }))}>
        {pinned ? "Unpin" : "Pin to the top"}
      </Choice>
      <Choice
        onChoose={then(() => {
          if (!isDrawn) toggleDrawn(id);
          go(compareAddress());
        })}
      >
        {isDrawn ? "Compare what is drawn" : "Compare it with what is drawn"}
      </Choice>
      {only.map((condition) => (
        <Choice key={condition} onChoose={then(() => view.sayOnly(condition))}>
          Only {view.short(condition)}
        </Choice>
      ))}
      {hello.value?.writable !== false && source.live && (
        <>
          {row.kind === "run" && <Words row={row} edit={edit} />}
          {row.kind === "run" && (
            <Choice onChoose={() => edit({ set: { archived: !row.archived } })}>
              {row.archived ? "Bring back from the archive" : "Archive"}
            </Choice>
          )}
          {row.kind === "group" && (
            <Choice onChoose={() => edit({ set: { archived: true } })}>Archive its {amount(runs.length, "run")}</Choice>
          )}
          <ToTheBin runs={runs} />
        </>
      )}
    </div>
  );
}
