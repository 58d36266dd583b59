/** Why a run ended before its time, and how it goes on: first of all that is said of it. */

import type { RunDetail } from "../../api/names.ts";
import { frames, lastMessages } from "../../data/failure.ts";
import { amount, count, plain } from "../../data/numbers.ts";
import { Copy } from "../../parts/CopyLink.tsx";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";

/** The same of a run whose details are not known yet. */
export function Crashed({ run }: { run: string }) {
  const detail = useAnswer(run, () => source.run(run)).value;
  return detail && <Ending detail={detail} />;
}

export function Ending({ detail }: { detail: RunDetail }) {
  const { failure, status, why } = detail;
  if (failure === null && (status === "running" || status === "finished")) return null;
  return (
    <>
      <section class="ended">
        <h2>
          {failure === null
            ? (why ?? status)
            : `${failure.type}${failure.message === "" ? "" : `: ${failure.message}`}`}
        </h2>
      </section>
      {failure !== null && failure.traceback !== "" && <Traceback failure={failure} />}
      {failure !== null && <Messages failure={failure} />}
      <Resume detail={detail} />
    </>
  );
}

function Traceback({ failure }: { failure: NonNullable<RunDetail["failure"]> }) {
  return (
    <section>
      <h3>
        Traceback <span class="soft">frames of libraries are folded</span>
        <Copy text={failure.traceback} what="the traceback" />
      </h3>
      <div class="trace" tabIndex={0} role="region" aria-label="Traceback">
        {frames(failure.traceback).map((frame, i) =>
          frame.folded > 0 ? (
            <p key={i} class="soft">
              … {amount(frame.folded, "frame")} of {frame.place}
            </p>
          ) : frame.place === "" ? (
            <p key={i} class="lost">
              {frame.code}
            </p>
          ) : (
            <p key={i}>
              <b>{frame.place}</b> in {frame.where}
              {frame.code !== "" && <code>{frame.code}</code>}
            </p>
          ),
        )}
      </div>
    </section>
  );
}

function Messages({ failure }: { failure: NonNullable<RunDetail["failure"]> }) {
  const lines = lastMessages(failure.stderr, failure.traceback, 8);
  if (lines.length === 0) return null;
  return (
    <section>
      <h3>
        stderr <span class="soft">its last {amount(lines.length, "line")}</span>
      </h3>
      <div class="log" tabIndex={0} role="region" aria-label="The last lines of stderr">
        {lines.map((line, i) => (
          <div key={i} class={/warn|error|nan|inf\b/i.test(line) ? "warn" : ""}>
            {line}
          </div>
        ))}
      </div>
    </section>
  );
}

/** The last checkpoint, and what goes on from it. */
function Resume({ detail }: { detail: RunDetail }) {
  const { run, x, resume_line: line, resume_command: command } = detail;
  const marks = useAnswer(`${run} marks`, () => source.marks([run], x === "" ? null : x));
  const last = marks.value?.marks.filter(({ kind }) => kind === "checkpoint").at(-1);
  if (detail.status === "running" || detail.status === "finished" || line === "") return null;
  const where = last === undefined ? "" : ` at ${typeof last.x === "number" ? count(last.x) : plain(last.x)} ${x}`;
  return (
    <section>
      <h3>
        {last === undefined ? "Start again" : "Go on from the last checkpoint"}{" "}
        <span class="soft">
          {last === undefined
            ? marks.value
              ? "no checkpoint was saved"
              : ""
            : `${last.label === "" ? last.id : last.label}${where}`}
        </span>
        <Copy text={line} what="the line that resumes" />
      </h3>
      <pre class="line wraps" tabIndex={0}>
        {line}
      </pre>
      {command !== "" && command !== line && (
        <>
          <p class="soft">
            in the script, or without a change of it: <Copy text={command} what="the command that resumes" />
          </p>
          <pre class="line wraps" tabIndex={0}>
            {command}
          </pre>
        </>
      )}
    </section>
  );
}
