/** What a person says about runs of other tools: written to a file beside them. */

import { useState } from "preact/hooks";
import { amount } from "../../data/numbers.ts";
import { Failure } from "../../parts/Say.tsx";
import { source } from "../../state/here.ts";
import { refusal, type Refusal } from "../../state/source.ts";

const OTHERS = "others";

export function LabelPanel({ runs }: { runs: string[] }) {
  const [done, setDone] = useState("");
  const [error, setError] = useState<Refusal | null>(null);
  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    const said = new FormData(event.currentTarget as HTMLFormElement);
    const fields: Record<string, string> = {};
    for (const [name, text] of said) if (name !== OTHERS && text !== "") fields[name] = String(text);
    for (const word of String(said.get(OTHERS) ?? "").match(/\S+/g) ?? []) {
      const [name = "", ...text] = word.split("=");
      fields[name] = text.join("=");
    }
    source.label({ runs, fields }).then(
      ({ files, labelled, refused: [first] }) => {
        setError(first ? refusal(new Error(first.why)) : null);
        setDone(labelled > 0 ? `${amount(labelled, "run")}: ${files.join(", ")}` : "");
      },
      (why: unknown) => setError(refusal(why)),
    );
  };
  return (
    <form class="words" onSubmit={save}>
      {["algo", "env", "seed", "group", OTHERS].map((name) => (
        <label key={name}>
          {name} <input name={name} placeholder={name === OTHERS ? "lr=0.01 width=64" : ""} />
        </label>
      ))}
      {error && <Failure error={error} />}
      <span role="status" class="soft">
        {done || `Of ${amount(runs.length, "chosen run")}. NAME= in others takes it back.`}
      </span>
      <button class="btn" type="submit">
        Save
      </button>
    </form>
  );
}
