/** What can be done at once with all runs that are drawn, or with all that fit: a file, tags, the archive, the bin. */

import { useState } from "preact/hooks";
import type { EditQuery } from "../../api/names.ts";
import { download } from "../../charts/save.ts";
import { amount, count } from "../../data/numbers.ts";
import { Choice } from "../../parts/Menu.tsx";
import { Failure } from "../../parts/Say.tsx";
import { addressOf, joined } from "../../state/address.ts";
import { hello, source } from "../../state/here.ts";
import { refusal, type Refusal } from "../../state/source.ts";
import { chosen } from "./columns.tsx";
import { fitting, inParts } from "./many.ts";
import { ToTheBin } from "./ToTheBin.tsx";
import { groupsAsCsv, runsAsCsv } from "./tableFile.ts";
import { entities, table } from "./table.ts";

const MOST_BESIDE = 6; // runs side by side

export function BulkPanel({ close }: { close: () => void }) {
  const drawn = [...new Set(entities.value.flatMap((entity) => entity.runs.map(({ run }) => run)))];
  const matched = table.answer.value?.matched ?? 0;
  if (drawn.length === 0 && matched === 0) return <p class="soft pad">No run fits.</p>;
  return (
    <div class="picker">
      {matched > 0 && <AsFile close={close} />}
      <a
        class="choice"
        href={addressOf("media", { run: drawn[0] ?? "", beside: joined(drawn.slice(1, MOST_BESIDE)), at: "" })}
      >
        Pictures, texts, histograms
      </a>
      {source.live && hello.value?.writable !== false && <Edit drawn={drawn} close={close} />}
    </div>
  );
}

/** The table as a file: a row a run, and where runs are folded a row a group. */
function AsFile({ close }: { close: () => void }) {
  const [error, setError] = useState<Refusal | null>(null);
  const [reads, setReads] = useState(false);
  const { matched = 0 } = table.answer.value ?? {};
  const groups = [...table.known()].some((row) => row.kind === "group");
  const save = (make: typeof runsAsCsv, name: string): void => {
    if (reads) return;
    setReads(true);
    setError(null);
    make(chosen())
      .then(
        (file) => {
          download(file, `${name}.csv`);
          close();
        },
        (why: unknown) => setError(refusal(why)),
      )
      .finally(() => setReads(false));
  };
  return (
    <>
      {error && <Failure error={error} />}
      <Choice onChoose={() => save(runsAsCsv, "runs")}>
        {reads ? "Reading the table…" : `Table of ${amount(matched, "run")} (CSV)`}
      </Choice>
      {groups && <Choice onChoose={() => save(groupsAsCsv, "groups")}>Table of the groups (CSV)</Choice>}
    </>
  );
}

function Edit({ drawn, close }: { drawn: string[]; close: () => void }) {
  const [tag, setTag] = useState("");
  const [error, setError] = useState<Refusal | null>(null);
  const [all, setAll] = useState<string[] | null>(null);
  const runs = all ?? drawn;
  const matched = all?.length ?? table.answer.value?.matched ?? 0;
  const many = amount(runs.length, "run");
  const tags = tag
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
  const edit = (set: EditQuery["set"]): void => {
    inParts(runs, (some) => source.edit({ runs: some, set })).then(
      (parts) => {
        const refused = parts.flatMap((part) => part.refused);
        const [first] = refused;
        if (first) setError(refusal(new Error(`${amount(refused.length, "run")} stayed as before: ${first.why}`)));
        else close();
        void table.again();
      },
      (why: unknown) => setError(refusal(why)),
    );
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (tags.length > 0) edit({ add_tags: tags });
      }}
    >
      {error && <Failure error={error} />}
      {(matched > drawn.length || all !== null) && (
        <div class="words">
          <span class="seg" role="group" aria-label="Which runs">
            <button type="button" aria-pressed={all === null} onClick={() => setAll(null)}>
              {count(drawn.length)} drawn
            </button>
            <button
              type="button"
              aria-pressed={all !== null}
              onClick={() => void fitting().then(setAll, (why: unknown) => setError(refusal(why)))}
            >
              all {count(matched)} that fit
            </button>
          </span>
        </div>
      )}
      <div class="words">
        <label>
          tags{" "}
          <input
            value={tag}
            placeholder="comma between them"
            aria-label={`Tags of ${many}`}
            onInput={(event) => setTag(event.currentTarget.value)}
          />
        </label>
      </div>
      <Choice onChoose={() => tags.length > 0 && edit({ add_tags: tags })}>Add to {many}</Choice>
      <Choice onChoose={() => tags.length > 0 && edit({ remove_tags: tags })}>Take away from {many}</Choice>
      <hr />
      <Choice onChoose={() => edit({ archived: true })}>Archive {many}</Choice>
      <Choice onChoose={() => edit({ archived: false })}>Bring {many} back from the archive</Choice>
      <ToTheBin key={all === null ? "drawn" : "all"} runs={runs} />
    </form>
  );
}
