/** Which setting matters, and which configuration is best? The sentence first. Every number is the server's. */

import { useMemo } from "preact/hooks";
import type { SweepAnswer } from "../../api/names.ts";
import {
  axisOf,
  fits,
  readRanges,
  readScales,
  namesOfSettings,
  writeRanges,
  writeScales,
  type Ranges,
  type SettingAxis,
} from "../../data/sweep.ts";
import { amount, count, sentence } from "../../data/numbers.ts";
import { askedOf } from "../../data/search.ts";
import { Context } from "../../parts/Context.tsx";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { Choice, Menu } from "../../parts/Menu.tsx";
import { Answered, Empty } from "../../parts/Say.tsx";
import { GroupsOrSweep } from "../../parts/GroupsOrSweep.tsx";
import { say, word } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";
import { Against } from "./Against.tsx";
import { Configurations } from "./Configurations.tsx";
import { Matters } from "./Matters.tsx";
import { Parallel } from "./Parallel.tsx";
import "./sweep.css";

const project = word("project");
const key = word("key");
const filter = word("f");
const search = word("q");
const ranges = word("r");
const against = word("of");
const scales = word("axes");

export function Sweep() {
  const said = askedOf(filter.value);
  const asked = {
    project: project.value,
    metric: key.value,
    ...said,
    ...(search.value === "" ? {} : { search: [said.search ?? "", search.value].join(" ").trim() }),
  };
  const answer = useAnswer(JSON.stringify(asked), () => source.sweep(asked));
  const found = answer.value;
  return (
    <>
      <Context title="Sweep">
        <Menu what="runs of" label={<b>{nameOr(found?.project)}</b>}>
          {(close) =>
            found?.projects.map((one) => (
              <Choice
                key={one.project}
                chosen={one.project === found?.project}
                soft={`${amount(one.configurations, "configuration")}, ${amount(one.runs, "run")}`}
                onChoose={() => {
                  say({ project: one.project, r: "", of: "" });
                  close();
                }}
              >
                {one.project}
              </Choice>
            ))
          }
        </Menu>
        <Menu what="by" label={<b>{nameOr(found?.key)}</b>}>
          {(close) => (
            <div class="choices" tabIndex={0} aria-label="Key">
              {found?.keys.map((one) => (
                <Choice
                  key={one}
                  chosen={one === found?.key}
                  onChoose={() => {
                    say({ key: one });
                    close();
                  }}
                >
                  {one}
                </Choice>
              ))}
            </div>
          )}
        </Menu>
        {filter.value + search.value !== "" && (
          <button class="btn" type="button" onClick={() => say({ f: "", q: "" })}>
            {[filter.value, search.value].filter((one) => one !== "").join(" ")} ×
          </button>
        )}
        <span class="grow" />
        <GroupsOrSweep now="sweep" />
        <CopyLink />
      </Context>
      <main id="main" class="page scroll" tabIndex={0} aria-label="Sweep">
        <Answered of={answer} what="the sweep" many>
          {(said) => (said.configurations.length < 2 ? <Nothing of={said} /> : <Shown found={said} />)}
        </Answered>
      </main>
    </>
  );
}

/** "…" while it is not known, "–" where there is none: its menu stands there from the beginning. */
const nameOr = (name: string | undefined): string => (name === "" ? "–" : (name ?? "…"));

function Nothing({ of }: { of: SweepAnswer }) {
  return (
    <Empty title={of.configurations.length === 0 ? "No runs to look at" : "All runs have one configuration"}>
      <p>
        A sweep is a set of runs of one project whose configurations differ. Seeds, names and folders are no settings.
      </p>
      <pre class="line" tabIndex={0}>
        rollbook.init("cartpole", "ppo", seed=seed, config={"{"}"lr": lr{"}"})
      </pre>
    </Empty>
  );
}

function Shown({ found }: { found: SweepAnswer }) {
  const asLog = useMemo(() => readScales(scales.value), [scales.value]);
  const axes = useMemo(() => axesOf(found, asLog), [found, asLog]);
  const called = useMemo(
    () => namesOfSettings(found.settings.flatMap(({ column, together }) => [column, ...together])),
    [found],
  );
  const places = useMemo(
    () =>
      found.configurations.map(
        (one) =>
          new Map<string, number | null>([
            ...found.settings.map(
              ({ column }, i) => [column, (axes[i] as SettingAxis).at(one.values[i] ?? null)] as const,
            ),
            [found.key, (axes.at(-1) as SettingAxis).at(one.mean)],
          ]),
      ),
    [found, axes],
  );
  const drawn = useMemo(() => readRanges(ranges.value), [ranges.value]);
  const kept = places.map((one) => fits(one, drawn));
  const change = (next: Ranges): void => say({ r: writeRanges(next) });
  const turn = (column: string, isLog: boolean): void => {
    const others = new Map(drawn); // a range is a part of its axis, which is another one now
    others.delete(column);
    say({ axes: writeScales(new Map([...asLog, [column, isLog]])), r: writeRanges(others) });
  };
  const chosen = Math.max(
    0,
    found.settings.findIndex(({ column }) => column === against.value),
  );
  const matters = <Matters found={found} called={called} chosen={chosen} onChoose={(column) => say({ of: column })} />;
  return (
    <div class="cols">
      <section class="card c12 said">
        <p class="verdict long">{sentence(found.sentence)}</p>
        <p class="next">
          <span class="tag">run next</span> {found.todo}
        </p>
        <p class="notes">
          <span class="tag">
            {sentence(found.score)} of {found.key}
            {typeof found.at === "number" &&
              found.x !== "" &&
              ` up to ${count(found.at)} ${found.x}, ${found.at_why}`}; {found.better} is better
          </span>
          {found.notes.map((note) => (
            <span key={note} class="tag">
              {sentence(note)}
            </span>
          ))}
          {found.left_out > 0 && <span class="tag warn">{amount(found.left_out, "configuration")} left out</span>}
        </p>
      </section>
      {found.settings.length > 1 && (
        <>
          <Parallel
            found={found}
            called={called}
            axes={axes}
            places={places}
            kept={kept}
            ranges={drawn}
            chosen={chosen}
            onRanges={change}
            onAxis={(column) => say({ of: column })}
          />
          {matters}
        </>
      )}
      {found.settings.length > 0 && (
        <Against
          found={found}
          name={called(found.settings[chosen]?.column ?? "")}
          x={axes[chosen] as SettingAxis}
          y={axes.at(-1) as SettingAxis}
          onScale={turn}
          place={chosen}
          kept={kept}
        />
      )}
      <div class={`pile ${found.settings.length === 0 ? "c12" : "c7"}`}>
        {found.settings.length === 1 && matters /* beside the one picture: parallel lines would be a second one */}
        <Configurations found={found} called={called} kept={kept} />
      </div>
    </div>
  );
}

/** One axis for each setting, and the last for the score. */
function axesOf(found: SweepAnswer, asLog: ReadonlyMap<string, boolean>): SettingAxis[] {
  const scores = found.configurations.map((one) => one.mean);
  return [
    ...found.settings.map(({ column }, i) =>
      axisOf(
        found.configurations.map((one) => one.values[i] ?? null),
        true,
        asLog.get(column),
      ),
    ),
    axisOf(scores, false, asLog.get(found.key)),
  ];
}
