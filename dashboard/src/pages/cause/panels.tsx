/** The panels of the drawer, in order. A panel is a component and one line in `PANELS`. */

import type { ComponentType } from "preact";
import type { Cause, Obj } from "../../api/names.ts";
import { unstamped } from "../../data/log.ts";
import { bytes, clock, count, percent, plain, seconds, value } from "../../data/numbers.ts";
import { AlertLine } from "../../parts/AlertLine.tsx";
import { Video } from "../../parts/Video.tsx";
import { ending } from "../episodes/ending.ts";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { Unusual } from "./Unusual.tsx";

export interface PanelProps {
  found: Cause;
  /** Looks further around the point. */
  widen: () => void;
}

export const PANELS: { id: string; show: (found: Cause) => boolean; Panel: ComponentType<PanelProps> }[] = [
  { id: "alerts", show: (found) => found.alerts.length > 0, Panel: Alerts },
  { id: "unusual", show: (found) => found.unusual.some(({ times }) => Number(times) >= 1), Panel: Unusual },
  { id: "episodes", show: () => true, Panel: Episodes },
  { id: "videos", show: (found) => found.videos.length > 0, Panel: Videos },
  { id: "samples", show: (found) => found.samples.rows.length > 0, Panel: Samples },
  {
    id: "checkpoint",
    show: (found) => found.checkpoint.before !== null || found.checkpoint.after !== null,
    Panel: Checkpoints,
  },
  { id: "timings", show: (found) => (found.timings?.stages.length ?? 0) > 0, Panel: Timings },
  { id: "text", show: (found) => found.text.length > 0, Panel: Texts },
  { id: "log", show: (found) => found.log.length > 0, Panel: Log },
];

const of = (page: string, found: Cause, words: Record<string, string> = {}): string =>
  `#/${page}?${new URLSearchParams({ run: found.run, ...words }).toString()}`;

function Alerts({ found }: PanelProps) {
  return (
    <section>
      {found.alerts.map((alert) => (
        <AlertLine key={alert.id} alert={alert} href={of("health", found)} />
      ))}
    </section>
  );
}

const HIDDEN = [
  "episode_id",
  "terminated",
  "truncated",
  "outcome",
  "time",
  "attempt",
  "video",
  "traces",
  "writer",
  "lane",
  "seq",
  "index",
  "scope",
  "at",
  "seed",
  "options",
];
const LIKED = ["env_step", "length", "return"];
const liked = (name: string): number => (LIKED.includes(name) ? LIKED.indexOf(name) : LIKED.length);

function Episodes({ found, widen }: PanelProps) {
  const { rows, columns, total_in_window: total, nearest } = found.episodes;
  const shown = columns
    .map(({ name }) => name)
    .filter((name) => !HIDDEN.includes(name) && (name === found.x || !(name in found.clocks)))
    .sort((a, b) => liked(a) - liked(b))
    .slice(0, 4);
  return (
    <section>
      <h3>
        Episodes{" "}
        <span class="soft">{total > 0 ? `${count(total)} ended within ${count(found.window)} of ${found.x}` : ""}</span>
        <a href={of("episodes", found)}>all</a>
      </h3>
      {rows.length > 0 ? (
        <MiniTable
          label="Episodes near the point"
          columns={[
            { id: "episode_id", head: "episode" },
            ...shown.map((id) => ({ id, head: id, number: true })),
            { id: "end", head: "end" },
          ]}
          rows={rows}
          cell={(row, id) =>
            id === "episode_id" ? (
              <a class="mono" href={of("episodes", found, { episode: String(row[id]) })}>
                {short(String(row[id]))}
              </a>
            ) : id === "end" ? (
              ending(row)
            ) : typeof row[id] === "number" ? (
              value(row[id])
            ) : (
              plain(row[id])
            )
          }
        />
      ) : nearest ? (
        <p>
          No episode ended within {count(found.window)} of {found.x}. The nearest ended{" "}
          {count(Math.abs(Number(nearest.away)))} {Number(nearest.away) < 0 ? "earlier" : "later"}.{" "}
          <a class="btn" href={of("episodes", found, { episode: nearest.id })}>
            Show it
          </a>{" "}
          <button class="btn" type="button" onClick={widen}>
            Look {count(found.window * 4)} around
          </button>
        </p>
      ) : (
        <p class="soft">
          No episodes were recorded. <code>env = rollbook.capture.gym.RecordEpisodes(env, run)</code>
        </p>
      )}
    </section>
  );
}

const short = (id: string): string => (id.length > 18 ? `…${id.slice(-8)}` : id); // their ends tell them apart

function Videos({ found }: PanelProps) {
  return (
    <section>
      <h3>
        Video <span class="soft">{found.videos.length === 1 ? "" : `${found.videos.length} near this point`}</span>
      </h3>
      <div class="videos">
        {found.videos.slice(0, 3).map((media) => (
          <Video key={media.id} media={media} />
        ))}
      </div>
    </section>
  );
}

function Samples({ found }: PanelProps) {
  const columns = found.samples.columns.filter(({ name }) => !["sample_id", "time"].includes(name)).slice(0, 5);
  return (
    <section>
      <h3>
        Samples <span class="soft">{count(found.samples.total_in_window)} near this step</span>
        <a href={of("samples", found)}>all</a>
      </h3>
      <MiniTable
        label="Samples near the point"
        columns={columns.map(({ name, type }) => ({
          id: name,
          head: name,
          number: type === "number" || type === "integer",
        }))}
        rows={found.samples.rows.slice(0, 5)}
        cell={(row, id) => said(row[id])}
      />
    </section>
  );
}

function said(cell: Obj[string] | undefined): string {
  if (typeof cell === "number") return value(cell);
  if (cell !== null && typeof cell === "object" && !Array.isArray(cell) && typeof cell["text"] === "string")
    return `${cell["text"]}…`;
  return plain(cell);
}

function Checkpoints({ found }: PanelProps) {
  const line = (row: Obj | null) =>
    row && (
      <>
        <b class="mono">{plain(row["checkpoint_id"] ?? row["id"])}</b>
        {typeof row[found.x] === "number" && ` at ${count(row[found.x] as number)}`}
        {typeof row["score"] === "number" && `, score ${value(row["score"])}`}
        {row["is_best"] === true && ", best"}
        {typeof row["bytes"] === "number" && `, ${bytes(row["bytes"])}`}
      </>
    );
  return (
    <section>
      <h3>Checkpoints</h3>
      <dl class="facts">
        {found.checkpoint.before && (
          <>
            <dt>before</dt>
            <dd>{line(found.checkpoint.before)}</dd>
          </>
        )}
        {found.checkpoint.after && (
          <>
            <dt>after</dt>
            <dd>{line(found.checkpoint.after)}</dd>
          </>
        )}
      </dl>
    </section>
  );
}

function Timings({ found }: PanelProps) {
  if (!found.timings) return null;
  const { seconds: total, median, stages } = found.timings;
  return (
    <section>
      <h3>
        Timings{" "}
        <span class="soft">
          {seconds(Number(total))} near here{typeof median === "number" ? `, median ${seconds(median)}` : ""}
        </span>
        <a href={of("timings", found)}>timeline</a>
      </h3>
      <div
        class="stack"
        role="img"
        aria-label={stages.map((stage) => `${stage.name} ${percent(stage.share)}`).join(", ")}
      >
        {stages.slice(0, 10).map((stage, i) => (
          <i key={stage.name} class={`s${i + 1}`} style={{ width: `${stage.share * 100}%` }} />
        ))}
      </div>
      <p class="legend">
        {stages.slice(0, 6).map((stage, i) => (
          <span key={stage.name}>
            <i class={`dot s${i + 1}`} />
            {stage.name} {percent(stage.share)}
          </span>
        ))}
      </p>
    </section>
  );
}

function Texts({ found }: PanelProps) {
  return (
    <section>
      <h3>Notes and texts</h3>
      <div class="log">
        {found.text.map((row, i) => (
          <div key={i} title={row.text}>
            <time>{clock(row.time)}</time>
            {row.key === "note" ? "" : `${row.key}: `}
            {row.text}
          </div>
        ))}
      </div>
    </section>
  );
}

function Log({ found }: PanelProps) {
  const lines = found.log;
  const now = found.time ?? 0;
  const nearest = lines.reduce(
    (best, line, i) =>
      Math.abs(Number(line.time ?? 0) - now) < Math.abs(Number(lines[best]?.time ?? 0) - now) ? i : best,
    0,
  );
  return (
    <section>
      <h3>
        Log{" "}
        <a href={of("health", found, found.log_name === null ? {} : { log: found.log_name })}>
          {found.log_name ?? "all"}
        </a>
      </h3>
      <div class="log">
        {lines.map((line, i) => (
          <div
            key={line.offset}
            class={`${i === nearest ? "here" : ""}${/warn|error|traceback/i.test(line.text) ? " warn" : ""}`}
            title={line.text}
          >
            {line.time !== null && <time>{clock(Number(line.time))}</time>}
            {unstamped(line)}
          </div>
        ))}
      </div>
    </section>
  );
}
