/** What does the agent do? All episodes of a run as points and rows; one of them with its video and its traces. */

import { computed, useSignal } from "@preact/signals";
import { Context } from "../../parts/Context.tsx";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { RunPicker } from "../../parts/RunPicker.tsx";
import { Empty, Failure } from "../../parts/Say.tsx";
import { address } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { useRun } from "../../state/run.ts";
import { firstWhole } from "./ending.ts";
import { EpisodeList, queryOf } from "./EpisodeList.tsx";
import { OneEpisode } from "./OneEpisode.tsx";

const episode = computed(() => address.value.words.get("episode") ?? "");

export function Episodes() {
  const { run, detail, none } = useRun("episodes");
  const has = detail.value?.tables["episodes"];
  const axis = detail.value?.x ?? "";
  const query = queryOf(axis);
  const isAll = JSON.stringify(query) === JSON.stringify({ sort: query.sort });
  // Where nobody chose an episode: of all of them one with a video says most.
  const asked = isAll ? "all" : JSON.stringify(query);
  const unchosen = useAnswer(run !== null && has ? `${run} ${asked}` : null, async () => {
    const of = run as string;
    const id = isAll
      ? ((await firstWhole(of, { video: true })) ?? (await firstWhole(of, {})))
      : await firstWhole(of, query);
    return { of, id: id ?? "last" };
  }).value;
  const shown = useSignal("");
  const one = episode.value !== "" ? episode.value : unchosen?.of === run ? unchosen.id : "";
  return (
    <>
      <Context>
        <RunPicker detail={detail.value} />
        <span class="grow" />
        <CopyLink />
      </Context>
      {detail.error && (
        <div class="pad">
          <Failure error={detail.error} again={detail.again} />
        </div>
      )}
      {none && (
        <main id="main">
          <Empty title="No runs here" code="rollbook demo">
            <p>Episodes stand here once a run records them.</p>
          </Empty>
        </main>
      )}
      {run !== null && detail.value && (
        <main id="main" class={has ? "split eps" : ""}>
          {has ? (
            <>
              <EpisodeList key={run} run={run} axis={axis} episode={episode.value} shown={shown.value} />
              {one !== "" && <OneEpisode key={`${run} ${one}`} run={run} episode={one} shown={shown} />}
            </>
          ) : (
            <Empty title="No episodes were recorded" code="env = rollbook.capture.gym.RecordEpisodes(env, run)">
              <p>
                Wrap the environment once; returns, lengths and traces follow, videos where the environment can render:
              </p>
            </Empty>
          )}
        </main>
      )}
    </>
  );
}
