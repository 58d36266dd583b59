/** Health over all runs: one list, the worst first, in sentences; what is quiet in one line. */

import { useEffect, useState } from "preact/hooks";
import type { FindingsAnswer, Finding } from "../../api/names.ts";
import { amount, clock, count, sentence } from "../../data/numbers.ts";
import { Context } from "../../parts/Context.tsx";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { fullName } from "../../data/names.ts";
import { Choice, Menu } from "../../parts/Menu.tsx";
import { Answered, Empty } from "../../parts/Say.tsx";
import { say, word } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { toneOf } from "../../state/colors.ts";
import { source } from "../../state/here.ts";
import { hear } from "../../state/live.ts";
import { causeOf } from "./causeOf.ts";
import { Moment } from "./Moment.tsx";

const TONES: Record<string, string> = { crashed: "bad", fail: "bad", warn: "warn" };
const project = word("project");
/** The rule whose findings alone are shown; "": all. */
const ruled = word("rule");
const FEW = 3;
const EVERY = 5_000;

export function AllRuns() {
  const answer = useAnswer("findings", () => source.findings());
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = hear("runs", () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        answer.again();
      }, EVERY);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, []);
  return (
    <>
      <Context>
        <span class="grow" />
        <CopyLink />
      </Context>
      <main id="main" class="page scroll" tabIndex={0} aria-label="Health">
        <Answered of={answer} what="health" many>
          {(found) => <List found={found} />}
        </Answered>
      </main>
    </>
  );
}

function List({ found }: { found: FindingsAnswer }) {
  const every = found.findings ?? [];
  const projects = [...new Set(every.flatMap(({ runs }) => runs.map((at) => at.project)))].sort();
  const only = projects.includes(project.value) ? project.value : "";
  const findings = every.flatMap((one) => {
    if (ruled.value !== "" && one.rule !== ruled.value) return [];
    if (only === "") return [one];
    const runs = one.runs.filter((at) => at.project === only);
    return runs.length === 0 ? [] : [{ ...one, runs, many: runs.length === one.runs.length ? one.many : runs.length }];
  });
  // What one reads does not move: what is new waits in one line, and the others keep their places.
  const [places, setPlaces] = useState(() => every.map(keyOf));
  if (places.length === 0 && every.length > 0) setPlaces(every.map(keyOf)); // there was nothing that could move
  const place = (one: Finding): number => places.indexOf(keyOf(one));
  const fresh = findings.filter((one) => place(one) < 0).length;
  const shown = findings.filter((one) => place(one) >= 0).sort((a, b) => place(a) - place(b));
  const [quiet, all] = [found.quiet ?? 0, found.looked_at ?? 0];
  if (all === 0) return <Empty title="No runs here" code="rollbook demo" />;
  return (
    <div class="cols">
      {(findings.length > 0 || ruled.value !== "") && (
        <section class="card c12 worst">
          <header>
            <h2>{amount(findings.length, "finding")}, the worst first</h2>
            {ruled.value === "" ? (
              <span class="soft">each once, however many runs have it</span>
            ) : (
              <button
                class="chip"
                type="button"
                aria-label={`Of the rule ${ruled.value}: show all`}
                onClick={() => say({ rule: "" })}
              >
                rule {ruled.value} ×
              </button>
            )}
            {fresh > 0 && (
              <button class="link" type="button" onClick={() => setPlaces(every.map(keyOf))}>
                {count(fresh)} new · show
              </button>
            )}
            <span class="grow" />
            {projects.length > 1 && (
              <Menu what="Project" label={<b class="clip">{only === "" ? "all" : only}</b>} id="project">
                {(close) => (
                  <div class="picker">
                    {["", ...projects].map((name) => (
                      <Choice key={name} chosen={name === only} onChoose={() => (say({ project: name }), close())}>
                        {name === "" ? "all projects" : name}
                      </Choice>
                    ))}
                  </div>
                )}
              </Menu>
            )}
          </header>
          {shown.map((one) => (
            <One key={keyOf(one)} finding={one} />
          ))}
        </section>
      )}
      <section class="card c12">
        <p class="in quietline">
          {quiet > 0 && <Icon name="check" />}{" "}
          <b>
            {quiet === all ? `All is quiet: ${amount(all, "run")}.` : `${count(quiet)} of ${amount(all, "run")} quiet.`}
          </b>{" "}
          <span class="soft">
            They ended as they should, or go on, and no rule warned. A run's own page has its rules.
          </span>
        </p>
      </section>
    </div>
  );
}

const keyOf = (one: Finding): string => `${one.level} ${one.rule} ${one.message}`;

function One({ finding }: { finding: Finding }) {
  const shown = finding.runs.slice(0, FEW);
  const rest = finding.runs.slice(FEW);
  return (
    <div class="worstrow">
      <span class={`tag ${TONES[finding.level] ?? ""}`}>{finding.level}</span>
      <div>
        <p>
          {sentence(finding.message)}{" "}
          <span class="soft">
            {[
              finding.rule === "ended" ? "" : `rule\u00a0${finding.rule}`,
              finding.many > 1 ? `${amount(finding.many, "run")}, the newest first` : "",
            ]
              .filter((one) => one !== "")
              .map((one) => `· ${one}`)
              .join(" ")}
          </span>
        </p>
        <ul>
          {shown.map((at) => (
            <Where key={at.run} at={at} ended={finding.rule === "ended"} />
          ))}
        </ul>
        {rest.length > 0 && (
          <details>
            <summary>
              {count(finding.many - FEW)} more
              {finding.many > finding.runs.length ? `, ${count(rest.length)} of them here` : ""}
            </summary>
            <ul>
              {rest.map((at) => (
                <Where key={at.run} at={at} ended={finding.rule === "ended"} />
              ))}
            </ul>
          </details>
        )}
      </div>
      {finding.runs[0] && <Moment at={finding.runs[0]} />}
    </div>
  );
}

function Where({ at, ended }: { at: Finding["runs"][number]; ended: boolean }) {
  return (
    <li>
      <i class={`dot ${toneOf(at.run)}`} />{" "}
      <a href={ended ? `#/run/${encodeURIComponent(at.run)}` : `#/health?run=${encodeURIComponent(at.run)}`}>
        {fullName(at)}
      </a>{" "}
      <span class="soft">
        {at.project} · {clock(at.time)}
      </span>{" "}
      {!ended && typeof at.x === "number" && (
        <a href={causeOf(at.run, at.axis, at.x, at.key)}>
          what happened at {count(at.x)} {at.axis}
        </a>
      )}
    </li>
  );
}
