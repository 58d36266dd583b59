/** Is something wrong? Alerts with their evidence, what was looked at and is quiet, the log, the files, the host. */

import { useMemo } from "preact/hooks";
import type { Cell, Health as Told, RunDetail } from "../../api/names.ts";
import { evidence } from "../../data/evidence.ts";
import { amount, clock, count, plain, sentence } from "../../data/numbers.ts";
import { Context } from "../../parts/Context.tsx";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { KeyChart } from "../../parts/KeyChart.tsx";
import { RunPicker } from "../../parts/RunPicker.tsx";
import { Answered, Empty, Failure } from "../../parts/Say.tsx";
import { word } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { deskOf, DeskContext } from "../../state/desk.ts";
import { source } from "../../state/here.ts";
import { useNews, useRun } from "../../state/run.ts";
import { AllRuns } from "./AllRuns.tsx";
import { causeOf } from "./causeOf.ts";
import { Moment } from "./Moment.tsx";
import { Files } from "./Files.tsx";
import { LogView } from "./LogView.tsx";

/** All runs, until one is chosen. */
export function Health() {
  return chosen.value === "" ? <AllRuns /> : <OneRun />;
}

function OneRun() {
  const { run, detail, none } = useRun();
  const news = useNews(run, ["alerts"], 2000);
  const health = useAnswer(run && `${run} ${news}`, () => source.health(run as string));
  return (
    <>
      <Context>
        <a class="btn" href={everyRun}>
          All runs
        </a>
        <RunPicker detail={detail.value} />
        <span class="grow" />
        <span class="soft hide-s">{health.value ? `watched by ${amount(health.value.rules, "rule")}` : ""}</span>
        <CopyLink />
      </Context>
      {detail.error && (
        <div class="pad">
          <Failure error={detail.error} again={detail.again} />
        </div>
      )}
      <main id="main" class="page scroll" tabIndex={0} aria-label="Health">
        {none && <Empty title="No runs here" code="rollbook demo" />}
        {run !== null && (
          <div class="cols">
            <Answered of={health} what="health">
              {(found) => (
                <>
                  <Alerts found={found} run={run} detail={detail.value} />
                  <Quiet found={found} detail={detail.value} />
                </>
              )}
            </Answered>
            <LogView key={run} run={run} />
            <Files run={run} />
            {health.value && health.value.host_keys.length > 0 && detail.value && (
              <Host run={run} keys={health.value.host_keys} detail={detail.value} />
            )}
          </div>
        )}
      </main>
    </>
  );
}

const chosen = word("run");
const everyRun = "#/health";
const LEVELS: Record<string, string> = { fail: "bad", warn: "warn" };
/** The worst first; what is alike stays in its order. */
const rank = ({ level }: { level: string }): number => [...Object.keys(LEVELS), level].indexOf(level);

function Alerts({ found, run, detail }: { found: Told; run: string; detail: RunDetail | null }) {
  return (
    <section class="card c12">
      <header>
        <h2>{found.alerts.length === 0 ? "No alerts" : amount(found.alerts.length, "alert")}</h2>
        <span class="soft">
          {found.alerts.length === 0 ? "no rule found anything" : "each opens the rows it rests on"}
        </span>
      </header>
      {detail?.failure && (
        <p class="in">
          <span class="tag bad">{detail.status}</span> {detail.failure.type}: {detail.failure.message}{" "}
          <a href={`#/run/${encodeURIComponent(detail.run)}`}>where, and how it goes on</a>
        </p>
      )}
      {found.alerts.length === 0 && (
        <p class="in soft">What a rule, the auditor or your own code finds stands here, with the rows it rests on.</p>
      )}
      {[...found.alerts]
        .sort((a, b) => rank(a) - rank(b))
        .map((alert) => (
          <div key={alert.id} class="finding">
            <div class="grow">
              <p>
                <span class={`tag ${LEVELS[alert.level] ?? ""}`}>{alert.level}</span> <b>{sentence(alert.message)}</b>
              </p>
              <Evidence of={alert.evidence} about={/^\S+\/\S+/.exec(alert.message)?.[0] ?? ""} />
              <p class="soft">
                {alert.rule}, {clock(alert.time)}, attempt {alert.attempt}{" "}
                {typeof alert.x === "number" && detail && (
                  <a href={causeOf(run, detail.x, alert.x, alert.key ?? "")}>Rows around {count(alert.x)}</a>
                )}
              </p>
            </div>
            {detail && <Moment at={{ run, key: alert.key ?? "", axis: detail.x, x: alert.x }} />}
          </div>
        ))}
    </section>
  );
}

function Evidence({ of, about }: { of: Cell; about: string }) {
  if (of === null || typeof of !== "object" || Array.isArray(of)) return of === null ? null : <p>{plain(of)}</p>;
  return (
    <p class="evidence">
      {evidence(of, about)
        .slice(0, 12)
        .map(([name, text]) => (
          <span key={name} class="tag">
            {name} <b>{text}</b>
          </span>
        ))}
    </p>
  );
}

function Quiet({ found, detail }: { found: Told; detail: RunDetail | null }) {
  const problems = detail?.problems ?? [];
  const [first] = found.quiet;
  return (
    <section class="card c12">
      <details class="in folded">
        <summary>
          {first === undefined ? (
            <span class="soft">No rule has looked at this run.</span>
          ) : (
            <>
              <Icon name="check" /> <b>{amount(found.quiet.length, "quiet rule")}.</b>{" "}
              <span class="soft">
                They looked at {sentence(found.quiet.at(-1)?.checked ?? "")}. {found.promise}
              </span>
            </>
          )}
        </summary>
        <ul class="quiet">
          {found.quiet.map((one) => (
            <li key={one.rule}>
              <Icon name="check" /> {one.label} <span class="soft">{sentence(one.checked)}</span>
            </li>
          ))}
        </ul>
      </details>
      {problems.length > 0 && (
        <ul class="in quiet">
          {problems.map((text) => (
            <li key={text} class="lost">
              <Icon name="info" /> {text}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Host({ run, keys, detail }: { run: string; keys: string[]; detail: RunDetail }) {
  const desk = useMemo(() => deskOf(run, detail.name, "time", "time"), [run]);
  return (
    <section class="card c12">
      <header>
        <h2>Host</h2>
        <span class="soft">{detail.host} · by wall time</span>
      </header>
      <div class="in charts hostcharts">
        <DeskContext.Provider value={desk}>
          {keys.slice(0, 12).map((key) => (
            <KeyChart key={key} name={key} />
          ))}
        </DeskContext.Provider>
      </div>
    </section>
  );
}
