/** What is the model trained on? All rollouts, one of them as a conversation, each prompt, and what became of all. */

import { signal } from "@preact/signals";
import { Context } from "../../parts/Context.tsx";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { RunPicker } from "../../parts/RunPicker.tsx";
import { Empty, Failure } from "../../parts/Say.tsx";
import { addressOf, say, word } from "../../state/address.ts";
import { source } from "../../state/here.ts";
import { useNews, useRun } from "../../state/run.ts";
import { Fates } from "./Fates.tsx";
import { List } from "./List.tsx";
import { OneRollout } from "./OneRollout.tsx";
import { goesOn, wideWord } from "./opened.ts";
import { OverTraining } from "./OverTraining.tsx";
import { OnePrompt, Prompts } from "./Prompts.tsx";
import { SharedPrompts } from "./SharedPrompts.tsx";
import "./rollouts.css";

const row = word("row");
const tab = word("tab");
/** The rollout whose row was pressed; before that the first of the table, so that there is something to read. */
const first = signal("");

export function Rollouts() {
  const { run, detail, none } = useRun("rollouts");
  const has = (detail.value?.tables["rollouts"] ?? 0) > 0;
  const news = useNews(run, ["rollouts", "fates"], 5000);
  goesOn.value = detail.value?.status === "running";
  return (
    <>
      <Context>
        <RunPicker detail={detail.value} />
        <span class="grow" />
        {has ? (
          <span class="seg" role="group" aria-label="What to look at">
            {[
              ["", "Rollouts"],
              ["tasks", "Prompts"],
              ["fates", "Fates"],
              ...(source.live ? [["prompts", "Two runs"]] : []),
            ].map(([id = "", name]) => (
              <button key={id} type="button" aria-pressed={tab.value === id} onClick={() => say({ tab: id })}>
                {name}
              </button>
            ))}
          </span>
        ) : null}
        <CopyLink />
      </Context>
      {detail.error && (
        <div class="pad">
          <Failure error={detail.error} again={detail.again} />
        </div>
      )}
      {none && (
        <main id="main">
          <Empty title="No runs here" code="rollbook demo" />
        </main>
      )}
      {run !== null && detail.value && (
        <main
          id="main"
          class={
            !has
              ? ""
              : ({ "": `split over${wideWord.value === "" ? "" : " whole"}`, tasks: "split prompts" }[tab.value] ?? "")
          }
        >
          {!has ? (
            <Empty title="This run has no rollouts" code="with run.rollouts.begin(task=prompt) as rollout: …">
              {(detail.value.tables["samples"] ?? 0) > 0 && (
                <a href={addressOf("samples", { run })}>Show its samples</a>
              )}
              <p>What a language model or an agent said and did, and whether it was trained on, stands here:</p>
            </Empty>
          ) : tab.value === "fates" ? (
            <Fates key={run} run={run} />
          ) : tab.value === "tasks" ? (
            <>
              <Prompts key={run} run={run} row={row.value} first={first} />
              <section class="pane" aria-label="One prompt">
                <Chosen run={run} as={OnePrompt} />
              </section>
            </>
          ) : tab.value === "prompts" ? (
            <SharedPrompts run={run} />
          ) : (
            <>
              <OverTraining key={`${run} over`} run={run} news={news} />
              <List key={run} run={run} row={row.value} first={first} news={news} clocks={detail.value.clocks} />
              <section class="pane" aria-label="One rollout">
                <Chosen run={run} as={OneRollout} />
              </section>
            </>
          )}
        </main>
      )}
    </>
  );
}

function Chosen({ run, as: One }: { run: string; as: typeof OneRollout }) {
  const id = row.value !== "" ? row.value : first.value;
  return id === "" ? null : <One key={run} run={run} id={id} />;
}
