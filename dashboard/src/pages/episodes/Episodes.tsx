/** What does the agent do? All episodes of a run as points and rows; one of them with its video and its traces. */

import { computed, useSignal } from "@preact/signals";
import { Context } from "../../parts/Context.tsx";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { RunPicker } from "../../parts/RunPicker.tsx";
import { Empty, Failure } from "../../parts/Say.tsx";
import { address } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";
import { useRun } from "../../state/run.ts";
import { EpisodeList, first, only, scope } from "./EpisodeList.tsx";
import { OneEpisode } from "./OneEpisode.tsx";

const episode = computed(() => address.value.words.get("episode") ?? "");

export function Episodes() {
  const { run, detail, none } = useRun("episodes");
  const has = detail.value?.tables["episodes"];
  // Where nobody chose an episode, the newest one with a video says most.
  const filmed = useAnswer(run !== null && has ? `${run} filmed` : null, async () => {
    const { rows } = await source.episodes(run as string, { video: true, limit: 1 });
    return String(rows[0]?.["episode_id"] ?? "last");
  });
  const shown = useSignal("");
  const unchosen = only.value !== "" || scope.value !== "" ? first.value : (filmed.value ?? "last");
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
          <Empty title="No runs yet" code="rollbook demo">
            <p>Episodes stand here once a run records them.</p>
          </Empty>
        </main>
      )}
      {run !== null && detail.value && (
        <main id="main" class={has ? "split eps" : ""}>
          {has ? (
            <>
              <EpisodeList key={run} run={run} axis={detail.value.x} episode={episode.value} shown={shown.value} />
              <OneEpisode
                key={`${run} ${episode.value} ${unchosen}`}
                run={run}
                episode={episode.value !== "" ? episode.value : unchosen}
                shown={shown}
              />
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
