import { useState } from "preact/hooks";
import { Choice } from "../../parts/Menu.tsx";
import { joined, say } from "../../state/address.ts";
import { pattern } from "../../data/search.ts";
import { chosen, offered } from "./columns.tsx";

/** Which columns the runs table shows. */
export function ColumnPanel() {
  const [text, setText] = useState("");
  const now = chosen();
  const search = pattern(text);
  const all = offered().filter(({ label }) => search === null || search.test(label));
  return (
    <div class="picker">
      <label class="field">
        <input
          type="search"
          placeholder="find a column"
          aria-label="Find a column"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <div class="choices" tabIndex={0} aria-label="Columns">
        {all.slice(0, 200).map(({ column, label, soft }) => (
          <Choice
            key={column}
            chosen={now.includes(column)}
            soft={soft}
            onChoose={() =>
              say({ cols: joined(now.includes(column) ? now.filter((c) => c !== column) : [...now, column]) })
            }
          >
            {label}
          </Choice>
        ))}
        {all.length > 200 && <p class="soft pad">and {all.length - 200} more: type to find them</p>}
      </div>
    </div>
  );
}
