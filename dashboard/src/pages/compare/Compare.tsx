/** Which is better, and is that certain? The sentence first, then what it rests on. Every number is the server's. */

import { amount } from "../../data/numbers.ts";
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { CompareAnswer, GroupOf } from "../../api/names.ts";
import { Context } from "../../parts/Context.tsx";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { GroupsOrSweep } from "../../parts/GroupsOrSweep.tsx";
import { Choice, Menu } from "../../parts/Menu.tsx";
import { Answered, Empty } from "../../parts/Say.tsx";
import { addressOf, joined, say, word } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";
import { rankings } from "../../data/ranking.ts";
import { pinnedFirst } from "../../data/keys.ts";
import { place } from "../../charts/place.ts";
import { kindOf } from "../../state/desk.ts";
import { colorOf, drawn, table } from "../runs/table.ts";
import { Diff } from "./Diff.tsx";
import { Curves } from "./Curves.tsx";
import { groups, open } from "./groups.ts";
import { Plans } from "./Plans.tsx";
import { Answer } from "./Answer.tsx";
import { Next, ProjectMenu } from "./Projects.tsx";
import { Better, Intervals, Profile } from "./findings.tsx";
import { Pairs } from "./Pairs.tsx";

/** How a run's key becomes one number where nobody chose. */
const USUAL = "mean of the last 10%";
const key = word("key");
const statistic = word("of", "iqm");
const atStep = word("step");
const floor = word("floor");
const score = word("score", USUAL);

const ready = signal(false);

export function Compare() {
  useEffect(() => {
    const stop = open();
    ready.value = true;
    return stop;
  }, []);
  const chosen = groups.value;
  void colorOf.value;
  const question = chosen.map((group) => `${group.name}: ${group.runs.join(" ")}`).join("; ");
  const keys = useAnswer(chosen.length > 0 ? `keys ${question}` : null, () =>
    source.keys(chosen.flatMap((group) => group.runs)),
  );
  const of = key.value !== "" ? key.value : (pinnedFirst(keys.value?.keys ?? [], 1)[0] ?? "");
  const known = key.value !== "" || !keys.old; // the keys of the groups before may be none of these
  const seen = useRef(""); // what a person has opened is a look; drawing it again is none
  const answer = useAnswer(
    known && of !== "" && chosen.length > 0
      ? `${of} ${score.value} ${statistic.value} ${atStep.value} ${floor.value} ${question}`
      : null,
    () => {
      const opened = seen.current !== `${of} ${score.value} ${atStep.value} ${question}`;
      seen.current = `${of} ${score.value} ${atStep.value} ${question}`;
      return source.compare({
        opened,
        metric: of,
        by: chosen,
        statistic: ["mean", "median"].includes(statistic.value) ? (statistic.value as "mean" | "median") : "iqm",
        ...(score.value === USUAL ? {} : { score: score.value }),
        ...(atStep.value === "" ? {} : { at: Number(atStep.value) }),
        ...(floor.value === "" ? {} : { floor: Number(floor.value) }),
      });
    },
  );
  const found = answer.value;
  const asked = keys.error ? { ...answer, error: keys.error, again: keys.again } : answer;
  return (
    <>
      <Context>
        <ProjectMenu />
        <Menu what="of" label={<b>{of === "" ? "…" : of}</b>}>
          {(close) => (
            <div class="choices" tabIndex={0} aria-label="Key">
              {keys.value?.keys.map((one) => (
                <Choice
                  key={one.key}
                  chosen={one.key === of}
                  soft={amount(one.runs, "run")}
                  onChoose={() => {
                    say({ key: one.key });
                    close();
                  }}
                >
                  {one.key}
                </Choice>
              ))}
            </div>
          )}
        </Menu>
        {source.live && (
          <Menu what="by" label={<b>{statistic.value === "iqm" ? "IQM" : statistic.value}</b>}>
            {(close) =>
              ["iqm", "mean", "median"].map((name) => (
                <Choice
                  key={name}
                  chosen={statistic.value === name}
                  onChoose={() => {
                    say({ of: name === "iqm" ? "" : name });
                    close();
                  }}
                >
                  {name === "iqm" ? "IQM" : name}
                </Choice>
              ))
            }
          </Menu>
        )}
        {source.live && <Score />}
        {source.live && <AtStep found={found} />}
        {source.live && found && <Crashed found={found} />}
        <span class="grow" />
        <GroupsOrSweep now="compare" />
        <a class="btn" href={addressOf("runs", shownWords())}>
          Curves
        </a>
        <CopyLink />
      </Context>
      <main id="main" class="page scroll" tabIndex={0} aria-label="Compare">
        {ready.value && table.answer.value !== null && chosen.length < 1 ? (
          <Empty title="Nothing to compare is chosen">
            <p>
              Choose groups or runs by the squares of the table of runs, then press <kbd>c</kbd>.
            </p>
            <a class="btn main" href={addressOf("runs")}>
              To the runs
            </a>
          </Empty>
        ) : keys.value !== null && !keys.old && keys.value.keys.length === 0 ? (
          <Empty title="These runs hold no numbers yet">
            <p>What is compared is a number that runs log, such as a return.</p>
            <Next elsewhere />
          </Empty>
        ) : (
          <Answered of={asked} what="the comparison" many>
            {(said) => <Shown found={said} groups={chosen} />}
          </Answered>
        )}
      </main>
    </>
  );
}

/** What is compared, for the page of runs. */
const shownWords = (): Record<string, string> =>
  drawn.value.length === 0 ? {} : { show: joined(drawn.value.map(({ id, color }) => `${id}.${color}`)) };

const STEPS = /^steps to (.*)$/;

/** How a run's key becomes the one number that is compared. A copy has the usual one. */
function Score() {
  const now = score.value;
  const steps = STEPS.exec(now)?.[1] ?? "";
  return (
    <Menu what="score" label={<b>{now.replace("%", " %")}</b>}>
      {(close) => (
        <>
          {[USUAL, "last", "best"].map((name) => (
            <Choice
              key={name}
              chosen={now === name}
              onChoose={() => {
                say({ score: name === USUAL ? "" : name });
                close();
              }}
            >
              {name.replace("%", " %")}
            </Choice>
          ))}
          <form
            class="words"
            onSubmit={(event) => {
              event.preventDefault();
              const to = new FormData(event.currentTarget).get("steps")?.toString() ?? "";
              say({ score: to === "" ? "" : `steps to ${to}` });
              close();
            }}
          >
            <label>
              steps to <input name="steps" type="number" step="any" placeholder="a value" defaultValue={steps} />
            </label>
            <button class="btn" type="submit">
              Compare how soon it is reached
            </button>
          </form>
        </>
      )}
    </Menu>
  );
}

function AtStep({ found }: { found: CompareAnswer | null }) {
  return (
    <Menu
      what="at"
      label={<b>{typeof found?.at === "number" ? `${place(found.at, kindOf(found.x))} ${found.x}` : "own end"}</b>}
    >
      {(close) => (
        <form
          class="words"
          onSubmit={(event) => {
            event.preventDefault();
            say({ step: new FormData(event.currentTarget).get("step")?.toString() ?? "" });
            close();
          }}
        >
          <p class="soft">{found?.at_why}</p>
          <label>
            step <input name="step" type="number" step="any" placeholder="each at its own end" />
          </label>
          <button class="btn" type="submit">
            Compare there
          </button>
        </form>
      )}
    </Menu>
  );
}

/** What runs that did not finish are worth, where there are some. */
function Crashed({ found }: { found: CompareAnswer }) {
  if (floor.value === "" && !found.groups.some(({ missing }) => missing.some(({ why }) => why === "did not finish")))
    return null;
  return (
    <Menu what="unfinished" label={<b>{floor.value === "" ? "worst" : `as ${floor.value}`}</b>}>
      {(close) => (
        <form
          class="words"
          onSubmit={(event) => {
            event.preventDefault();
            say({ floor: new FormData(event.currentTarget).get("floor")?.toString() ?? "" });
            close();
          }}
        >
          <p class="soft">
            Runs that did not finish count as worse than all others in the verdict. Say what such a run is worth to have
            them in intervals, too.
          </p>
          <label>
            worth{" "}
            <input name="floor" type="number" step="any" placeholder="worse than all" defaultValue={floor.value} />
          </label>
          <button class="btn" type="submit">
            Compare so
          </button>
        </form>
      )}
    </Menu>
  );
}

function Shown({ found, groups: chosen }: { found: CompareAnswer; groups: GroupOf[] }) {
  const order = rankings(found.groups, found.pairs).flatMap((each) => each.map(({ group }) => group));
  const sorted = { ...found, groups: order };
  return (
    <div class="cols compared">
      <Answer found={found} groups={chosen} />
      <Intervals found={sorted} />
      <Curves of={found.key} axis={found.x} statistic={found.statistic} parted={found.parted ?? []} />
      {order.length === 2 && <Better found={found} />}
      {order.length > 2 && <Pairs found={sorted} />}
      <Diff groups={order.flatMap(({ name }) => chosen.find((one) => one.name === name) ?? [])} />
      {order.length > 1 && <Profile found={found} />}
      <Plans found={found} />
    </div>
  );
}
