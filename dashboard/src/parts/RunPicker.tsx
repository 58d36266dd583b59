/** Which run a page is about: its name, its status, and a list to choose another. */

import { useState } from "preact/hooks";
import type { RunDetail } from "../api/names.ts";
import { fullName } from "../data/names.ts";
import { count, plain } from "../data/numbers.ts";
import { say } from "../state/address.ts";
import { useAnswer } from "../state/answer.ts";
import { colorOfRun } from "../state/colors.ts";
import { source } from "../state/here.ts";
import { Choice, Menu } from "./Menu.tsx";
import { Status } from "./Status.tsx";

export function RunPicker({ detail }: { detail: RunDetail | null }) {
  const last = detail?.attempts.at(-1);
  const total = Object.entries(detail?.total ?? {})[0];
  return (
    <>
      <Menu
        label={
          <>
            <i class={`dot s${detail ? colorOfRun(detail.run) : 0}`} />
            <b>{detail ? fullName(detail) : "…"}</b>
          </>
        }
        name={`Run: ${detail ? fullName(detail) : ""}`}
      >
        {(close) => (
          <FindRun
            name="Find a run"
            now={detail?.run ?? ""}
            onChoose={(run) => {
              say({ run, episode: "", row: "" }, true);
              close();
            }}
          />
        )}
      </Menu>
      {detail && (
        <>
          <span class="hide-s">
            <Status status={detail.status} />
          </span>
          <span class="soft hide-s">
            {detail.project}
            {total && ` · to ${typeof total[1] === "number" ? count(total[1]) : plain(total[1])} ${total[0]}`}
            {(last?.n ?? 1) > 1 && ` · attempt ${last?.n}`}
          </span>
        </>
      )}
    </>
  );
}

/** A search field, and the runs that it finds. */
export function FindRun({
  name,
  now = "",
  without = [],
  onChoose,
}: {
  name: string;
  now?: string;
  without?: readonly string[];
  onChoose: (run: string) => void;
}) {
  const [search, setSearch] = useState("");
  const answer = useAnswer(`runs ${search}`, async (signal) => {
    const { rows } = await source.runs({ limit: 100, columns: [], sections: false, ...(search && { search }) }, signal);
    return rows.flatMap((row) => (row.kind === "run" ? [row] : []));
  });
  return (
    <div class="picker">
      <label class="field">
        <input
          type="search"
          placeholder="find a run"
          aria-label={name}
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      </label>
      <div class="choices" tabIndex={0} aria-label="Runs">
        {answer.value?.map(
          (row) =>
            !without.includes(row.run) && (
              <Choice
                key={row.run}
                chosen={row.run === now}
                soft={`${row.project} · ${row.status}`}
                onChoose={() => onChoose(row.run)}
              >
                {fullName(row)}
              </Choice>
            ),
        )}
      </div>
    </div>
  );
}
