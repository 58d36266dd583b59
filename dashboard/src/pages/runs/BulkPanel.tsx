/** What can be done at once with all runs that are drawn, or with all that fit: tags, the archive, the bin. */

import { useState } from "preact/hooks";
import type { EditQuery } from "../../api/names.ts";
import { amount, count } from "../../data/numbers.ts";
import { Choice } from "../../parts/Menu.tsx";
import { Failure } from "../../parts/Say.tsx";
import { addressOf, joined } from "../../state/address.ts";
import { source } from "../../state/here.ts";
import { refusal, type Refusal } from "../../state/source.ts";
import { fitting, inParts } from "./many.ts";
import { ToTheBin } from "./ToTheBin.tsx";
import { entities, table } from "./table.ts";

const MOST_BESIDE = 6; // runs side by side

export function BulkPanel({ close }: { close: () => void }) {
  const [tag, setTag] = useState("");
  const [error, setError] = useState<Refusal | null>(null);
  const [all, setAll] = useState<string[] | null>(null);
  const drawn = [...new Set(entities.value.flatMap((entity) => entity.runs.map(({ run }) => run)))];
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
  if (runs.length === 0 && matched === 0) return <p class="soft pad">No run fits.</p>;
  return (
    <form
      class="picker"
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
      <a
        class="choice"
        href={addressOf("media", { run: runs[0] ?? "", beside: joined(runs.slice(1, MOST_BESIDE)), at: "" })}
      >
        Pictures, texts, histograms
      </a>
      <Choice onChoose={() => edit({ archived: true })}>Archive {many}</Choice>
      <Choice onChoose={() => edit({ archived: false })}>Bring {many} back from the archive</Choice>
      <ToTheBin key={all === null ? "drawn" : "all"} runs={runs} />
    </form>
  );
}
