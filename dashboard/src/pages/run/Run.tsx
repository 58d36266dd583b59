/** One run: what it is, how it was started, its attempts, configuration, pictures and files. */

import type { RunDetail } from "../../api/names.ts";
import { amount, clock, count, plain, seconds, value } from "../../data/numbers.ts";
import { Context } from "../../parts/Context.tsx";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { Markdown } from "../../parts/Markdown.tsx";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { fullName } from "../../data/names.ts";
import { Answered } from "../../parts/Say.tsx";
import { Status } from "../../parts/Status.tsx";
import { address } from "../../state/address.ts";
import { useAnswer, type Answer } from "../../state/answer.ts";
import { colorOfRun } from "../../state/colors.ts";
import { hello, source } from "../../state/here.ts";
import { useNews } from "../../state/run.ts";
import { Ending } from "../cause/Crashed.tsx";
import { Files } from "../health/Files.tsx";
import { LogView } from "../health/LogView.tsx";
import { Config, Fact, json, Packages, Pictures } from "./cards.tsx";
import { Patch } from "./Patch.tsx";
import { RunCharts } from "./RunCharts.tsx";
import { Words } from "../../parts/Words.tsx";

const PAGES = ["episodes", "samples", "media", "timings", "health", "sql"];

export function Run() {
  const run = address.value.rest[0] ?? address.value.words.get("run") ?? "";
  const news = useNews(run, null, 5000);
  const answer = useAnswer(run === "" ? null : `${run} ${news}`, () => source.run(run));
  const detail = answer.value;
  const here = encodeURIComponent(run);
  return (
    <>
      <Context title={detail ? fullName(detail) : "Run"}>
        {detail && <Status status={detail.status} />}
        <span class="grow" />
        {PAGES.map((page) => (
          <a key={page} class="btn hide-s" href={`#/${page}?run=${here}`}>
            {page === "sql" ? "SQL" : page}
          </a>
        ))}
        <a class="btn main" href={`#/runs?g=none&show=${here}.${colorOfRun(run)}`}>
          Curves
        </a>
        <CopyLink />
      </Context>
      <main id="main" class="page scroll" tabIndex={0} aria-label="The run">
        <Answered of={answer} what="the run">
          {(found) => (
            <div class="cols">
              <HowItEnded detail={found} />
              <Damage detail={found} />
              <About detail={found} />
              <div class="c6 pile">
                <Attempts detail={found} />
                <Notes detail={found} answer={answer} />
              </div>
              <RunCharts run={run} detail={found} />
              <LogView key={run} run={run} />
              <Files run={run} />
              <Config detail={found} />
              <Packages detail={found} />
              <Patch run={run} />
              <Pictures run={run} />
            </div>
          )}
        </Answered>
      </main>
    </>
  );
}

/** The commit of a program, and what was not committed: `rollbook show` says the same. */
function codeInWords(git: RunDetail["git"]): string {
  const { commit, branch, files_changed, insertions, deletions, files_untracked } = git ?? {};
  if (!commit && !branch) return "–";
  return [
    `${commit ? plain(commit) : "no commit"}${branch ? ` on ${plain(branch)}` : ""}`,
    ...(typeof files_changed === "number" && files_changed > 0
      ? [`${amount(files_changed, "file")} changed (+${plain(insertions ?? 0)} −${plain(deletions ?? 0)})`]
      : []),
    ...(typeof files_untracked === "number" && files_untracked > 0 ? [`${count(files_untracked)} unknown to git`] : []),
  ].join(", ");
}

function About({ detail }: { detail: RunDetail }) {
  const facts: [string, string][] = [
    ["project", detail.project],
    ["id", detail.id],
    ...(detail.made_by === "" ? [] : [["made by", detail.made_by] as [string, string]]),
    ["begun", `${clock(detail.created)}${detail.host === "" ? "" : ` on ${detail.host}`}`],
    [
      "took",
      `${seconds(Math.max(0, (detail.ended ?? detail.updated ?? 0) - (detail.created ?? 0)))}${
        detail.attempts.length > 1 ? `, at work ${seconds(detail.worked)} of it` : ""
      }`,
    ],
    [
      "total",
      Object.entries(detail.total ?? {})
        .map(([name, n]) => `${typeof n === "number" ? count(n) : plain(n)} ${name}`)
        .join(", ") || "–",
    ],
    ["command", detail.command.join(" ")],
    ["code", codeInWords(detail.git)],
    ["python", detail.python || "–"],
    ["folder", detail.path],
    [
      "tables",
      Object.entries(detail.tables)
        .map(([name, n]) => `${name} ${count(n)}`)
        .join(", "),
    ],
  ];
  return (
    <section class="card c6">
      <header>
        <h2>What it is</h2>
      </header>
      <div class="in">
        <dl class="facts">
          <Origin name="started by" text={detail.parent} other={detail.parent_run} />
          <Origin name="forked from" text={detail.forked_from} other={detail.forked_run} />
          {facts.map(([name, text]) => (
            <Fact key={name} name={name} text={text} />
          ))}
          {Object.entries(detail.summary)
            .filter(([name]) => name !== "status")
            .slice(0, 12)
            .map(([name, v]) => (
              <Fact key={`summary ${name}`} name={name} text={typeof v === "number" ? value(v, 4) : json(v)} />
            ))}
        </dl>
      </div>
    </section>
  );
}

/** The run or checkpoint it came from, with a way there. */
function Origin({ name, text, other }: { name: string; text: string | null; other: RunDetail["forked_run"] }) {
  if (text === null) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd class="wraps">
        {other && <a href={`#/run/${encodeURIComponent(other.run)}`}>{fullName(other)}</a>}
        {other && ", "}
        {text}
      </dd>
    </>
  );
}

/** Its name, tags and notes, to be changed. */
function Notes({ detail, answer }: { detail: RunDetail; answer: Answer<RunDetail> }) {
  const fixed = hello.value?.writable === false || !source.live;
  if (fixed && detail.notes === "") return null;
  return (
    <section class="card">
      <header>
        <h2>{fixed ? "Notes" : "Name, tags and notes"}</h2>
        {!fixed && <span class="soft">notes may be Markdown</span>}
      </header>
      {detail.notes !== "" && (
        <div class="in">
          <Markdown text={detail.notes} />
        </div>
      )}
      {!fixed && (
        <Words
          row={detail}
          edit={(query) => void source.edit({ runs: [detail.run], ...query }).then(answer.again, () => undefined)}
        />
      )}
    </section>
  );
}

/** What of the run cannot be read, and what to do about it. */
function Damage({ detail: { problems, path } }: { detail: RunDetail }) {
  if (problems.length === 0) return null;
  return (
    <section class="card c12">
      <header>
        <h2>Not everything can be read</h2>
        <span class="tag bad">{amount(problems.length, "problem")}</span>
      </header>
      <div class="in damage">
        {problems.slice(0, 8).map((problem) => (
          <p key={problem} class="wraps">
            {problem}
          </p>
        ))}
        {problems.length > 8 && <p class="soft">and {count(problems.length - 8)} more</p>}
        <p class="soft">What can be read is shown. This tells all of it, and saves what can be saved:</p>
        <pre class="line" tabIndex={0}>
          rollbook verify {path}
          {"\n"}rollbook repair {path}
        </pre>
      </div>
    </section>
  );
}

/** Why it ended before its time. */
function HowItEnded({ detail }: { detail: RunDetail }) {
  if (detail.status === "running" || detail.status === "finished") return null;
  return (
    <section class="card c12 drawerlike">
      <Ending detail={detail} />
    </section>
  );
}

const SHOWN = 12;

function Attempts({ detail }: { detail: RunDetail }) {
  const columns = [
    { id: "n", head: "attempt", number: true },
    { id: "status", head: "status" },
    { id: "started", head: "begun" },
    { id: "took", head: "took", number: true },
    { id: "from", head: "from" },
    { id: "changes", head: "configuration" },
  ];
  return (
    <section class="card">
      <header>
        <h2>{detail.attempts.length === 1 ? "One attempt" : amount(detail.attempts.length, "attempt")}</h2>
        {detail.attempts.some(({ checkpoint }) => checkpoint !== null) && (
          <span class="soft">abandoned stretches are ghosts in the charts</span>
        )}
      </header>
      <MiniTable
        label="Attempts"
        columns={columns}
        rows={detail.attempts}
        rowClass={(row) => (row.effective ? "" : "off")}
        cell={(row, id) => {
          if (id === "n") return row.n;
          if (id === "status") return <Status status={row.status} />;
          if (id === "started") return clock(row.started);
          if (id === "took") return row.ended === null || row.started === null ? "–" : seconds(row.ended - row.started);
          if (id === "from")
            return row.checkpoint !== null ? (
              <span class="mono">{row.checkpoint}</span>
            ) : (
              <span class="soft">{row.parent === null ? "the beginning" : `the end of attempt ${row.parent}`}</span>
            );
          return row.n === 1 || row.config_changes.length === 0 ? (
            <span class="soft">{row.n === 1 ? "as begun" : "as before"}</span>
          ) : (
            <span class="full">
              {row.config_changes.slice(0, SHOWN).map((one) => (
                <span key={one.path} class="tag mono">
                  {one.path}: {json(one.before)} → {json(one.after)}
                </span>
              ))}
              {row.config_changes.length > SHOWN && (
                <span class="soft"> and {row.config_changes.length - SHOWN} more</span>
              )}
            </span>
          );
        }}
      />
    </section>
  );
}
