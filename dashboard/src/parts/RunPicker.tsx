/** Which run a page is about: its name, its status, and a list to choose another. */

import { useState } from "preact/hooks";
import type { ColumnsAnswer, RunDetail, RunRow } from "../api/names.ts";
import { apart } from "../data/finding.ts";
import { count, plain } from "../data/numbers.ts";
import { say } from "../state/address.ts";
import { useAnswer } from "../state/answer.ts";
import { colorOfRun } from "../state/colors.ts";
import { source } from "../state/here.ts";
import { Choice, Menu } from "./Menu.tsx";
import { Status } from "./Status.tsx";

export const fullName = (run: { name: string; seed: number | null }): string =>
  run.seed === null ? run.name : `${run.name}, seed ${run.seed}`;

const SETTINGS = 12; // a copy of the page has them of all runs

/** The settings that tell runs of one name apart, as columns. */
export const tellingApart = (columns: ColumnsAnswer | null): string[] =>
  (columns?.config ?? [])
    .filter(({ varies }) => varies)
    .sort((a, b) => b.runs - a.runs || a.column.length - b.column.length)
    .slice(0, SETTINGS)
    .map(({ column }) => column);

/** How runs are called in a list; of runs of one name also what their settings have of their own. */
export function namesApart(rows: readonly RunRow[]): string[] {
  const runs = rows.map((row) => ({ name: fullName(row), id: row.id, cells: row.cells }));
  return apart(runs).map((own, i) => [runs[i]?.name, own].filter(Boolean).join(" · "));
}

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
    const columns = tellingApart(await source.columns().catch(() => null));
    const { rows } = await source.runs({ limit: 100, columns, sections: false, ...(search && { search }) }, signal);
    return rows.flatMap((row) => (row.kind === "run" ? [row] : []));
  });
  const names = namesApart(answer.value ?? []);
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
          (row, i) =>
            !without.includes(row.run) && (
              <Choice
                key={row.run}
                chosen={row.run === now}
                soft={`${row.project} · ${row.status}`}
                onChoose={() => onChoose(row.run)}
              >
                {names[i]}
              </Choice>
            ),
        )}
      </div>
    </div>
  );
}
