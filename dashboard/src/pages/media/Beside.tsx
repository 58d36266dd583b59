import { useState } from "preact/hooks";
import { Choice, Menu } from "../../parts/Menu.tsx";
import { fullName } from "../../parts/RunPicker.tsx";
import { joined, list, say } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";

const others = list("beside");

/** Adds a run beside the others. */
export function Beside({ now }: { now: readonly string[] }) {
  const [search, setSearch] = useState("");
  const answer = useAnswer(`beside ${search}`, (signal) =>
    source.runs({ limit: 100, columns: [], sections: false, ...(search === "" ? {} : { search }) }, signal),
  );
  return (
    <Menu label="+ run" plain>
      {(close) => (
        <div class="picker">
          <label class="field">
            <input
              type="search"
              placeholder="find a run"
              aria-label="Find a run to put beside"
              value={search}
              onInput={(event) => setSearch(event.currentTarget.value)}
            />
          </label>
          <div class="choices" tabIndex={0} aria-label="Runs">
            {answer.value?.rows.map(
              (row) =>
                row.kind === "run" &&
                !now.includes(row.run) && (
                  <Choice
                    key={row.run}
                    soft={`${row.project} · ${row.status}`}
                    onChoose={() => {
                      say({ beside: joined([...others.value, row.run]) }, true);
                      close();
                    }}
                  >
                    {fullName(row)}
                  </Choice>
                ),
            )}
          </div>
        </div>
      )}
    </Menu>
  );
}
