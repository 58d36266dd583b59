/** What can be done with a row: colour, pin, only runs with its settings, rename, tags, notes, archive. */

import { amount } from "../../data/numbers.ts";
import { useState } from "preact/hooks";
import type { EditQuery, Row } from "../../api/names.ts";
import { COLORS } from "../../data/colors.ts";
import { conditionFor } from "../../data/search.ts";
import { Choice } from "../../parts/Menu.tsx";
import { Words } from "../../parts/Words.tsx";
import { say } from "../../state/address.ts";
import { hello, source } from "../../state/here.ts";
import { refusal, type Refusal } from "../../state/source.ts";
import { Failure } from "../../parts/Say.tsx";
import { chooseColor, colorOf, columnsWanted, rowId, table } from "./table.ts";
import * as view from "./view.ts";

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
  const only = columnsWanted.value.flatMap((column) => {
    const condition = column.startsWith("config.") ? conditionFor(column, row.cells[column]) : null;
    return source.live && condition !== null ? [condition] : [];
  });
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
      <Choice
        onChoose={() => {
          say({ top: view.toggled(view.pinnedRuns.value, id) });
          close();
        }}
      >
        {pinned ? "Unpin" : "Pin to the top"}
      </Choice>
      {only.map((condition) => (
        <Choice
          key={condition}
          onChoose={() => {
            view.sayOnly(condition);
            close();
          }}
        >
          Only {view.short(condition)}
        </Choice>
      ))}
      {row.kind === "run" && (
        <a class="choice" href={`#/run/${encodeURIComponent(row.run)}`}>
          Open the run
        </a>
      )}
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
        </>
      )}
    </div>
  );
}
