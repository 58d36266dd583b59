/** A chart of one's own: several keys in one, or an expression over keys. It is pinned, so a board keeps it. */

import { useRef, useState } from "preact/hooks";
import { read } from "../../data/calc.ts";
import { pattern } from "../../data/search.ts";
import { Choice } from "../../parts/Menu.tsx";
import { joined, say } from "../../state/address.ts";
import { heroes, keys } from "./charts.ts";

const MOST = 60;

export function AddPanel({ close }: { close: () => void }) {
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const known = (keys.value?.keys ?? []).map(({ key }) => key);
  const begun = /[^\s,()]*$/.exec(text)?.[0] ?? "";
  const search = pattern(known.includes(begun) ? "" : begun);
  const add = (event: Event): void => {
    event.preventDefault();
    const found = read(text, known);
    if ("error" in found) return setError(found.error);
    say({ pin: joined([...heroes.value.filter((one) => one !== found.name), found.name]), full: "" }, true);
    close();
  };
  return (
    <form class="picker" onSubmit={add}>
      <label class="field">
        <input
          ref={input}
          type="search"
          class="mono"
          placeholder="train/return - test/return"
          aria-label="Keys and signs: a comma puts two into one chart"
          aria-invalid={error !== ""}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setError("");
          }}
        />
      </label>
      <p class={error === "" ? "soft pad small" : "lost pad small"} role="status">
        {error === "" ? "+ − * / ( ) abs log sqrt exp; a comma: both in one chart" : error}
      </p>
      <div class="choices" tabIndex={0} aria-label="Keys">
        {known
          .filter((key) => search?.test(key) ?? true)
          .slice(0, MOST)
          .map((key) => (
            <Choice
              key={key}
              onChoose={() => {
                setText(text.slice(0, text.length - (known.includes(begun) ? 0 : begun.length)) + key + " ");
                input.current?.focus();
              }}
            >
              <span class="mono">{key}</span>
            </Choice>
          ))}
      </div>
      <button class="btn main" type="submit" disabled={text.trim() === ""}>
        Add the chart
      </button>
    </form>
  );
}
