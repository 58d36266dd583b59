/** One episode: its video, what is known of it, and its traces under one cursor. */

import type { Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { EpisodeDetail, Obj } from "../../api/names.ts";
import { Hub } from "../../charts/hub.ts";
import { count, plain, value } from "../../data/numbers.ts";
import { AlertLine } from "../../parts/AlertLine.tsx";
import { Video } from "../../parts/Video.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { Answered, Empty } from "../../parts/Say.tsx";
import { say } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { useHands } from "../../state/hands.ts";
import { source } from "../../state/here.ts";
import { beside, BesideMenu, Other, Shot, useDeck } from "./Beside.tsx";
import { ending } from "./ending.ts";
import { Traces } from "./Traces.tsx";

const SPEEDS = [0.25, 1, 4];
const KNOWN = [
  "episode_id",
  "return",
  "length",
  "terminated",
  "truncated",
  "outcome",
  "video",
  "traces",
  "time",
  "attempt",
  "writer",
  "lane",
  "seq",
  "index",
  "scope",
  "at",
];

export interface OneEpisodeProps {
  run: string;
  /** Its id, or "last". */
  episode: string;
  /** Told its id. */
  shown: Signal<string>;
}

export function OneEpisode({ run, episode, shown }: OneEpisodeProps) {
  const answer = useAnswer(`${run} ${episode}`, () => source.episode(run, episode));
  return (
    <section class="pane" aria-label="One episode">
      <Answered of={answer} what="the episode">
        {(found) => {
          shown.value = String(found.row["episode_id"]);
          return <Shown run={run} found={found} />;
        }}
      </Answered>
    </section>
  );
}

function Shown({ run, found }: { run: string; found: EpisodeDetail }) {
  const hub = useMemo(() => new Hub(), [found]);
  const { row, steps } = found;
  const id = String(row["episode_id"]);
  const video = found.media.find((media) => media.kind === "video") ?? found.media[0];
  const length = typeof row["length"] === "number" ? row["length"] : steps;
  const cursor = hub.cursor.value;
  const deck = useDeck(hub, length);
  const { playing, rate, step } = deck;
  const several = video !== undefined && beside.value.length > 0;
  useHands(() => [
    {
      keys: [" "],
      shown: "Space",
      what: "play the video, or stop it",
      act: deck.toggle,
    },
    { keys: ["b"], what: "put a video beside this one", act: () => document.getElementById("beside")?.click() },
    { keys: [","], what: "one step back", act: () => step(-1) },
    { keys: ["."], what: "one step on", act: () => step(1) },
  ]);
  useEffect(() => hub.view.subscribe(() => undefined), [hub]);
  const rank = found.rank;
  return (
    <>
      <div class="bar">
        <h2>
          Episode <span class="mono">{id}</span>
        </h2>
        {rank && rank.of > 1 && (
          <span class={`tag ${toneOf(rank)}`}>
            return {value(Number(row["return"]))}
            {rank.equal === rank.of
              ? `, as all ${count(rank.of)}`
              : `, better than ${Math.round((100 * rank.lower) / rank.of)} % of ${count(rank.of)}`}
          </span>
        )}
        <span class="tag">{ending(row)}</span>
        <span class="grow" />
        {video && <BesideMenu run={run} />}
        <button
          class="btn"
          type="button"
          disabled={found.previous === null}
          onClick={() => say({ episode: found.previous ?? "" })}
        >
          <Icon name="left" />
          Earlier
        </button>
        <button
          class="btn"
          type="button"
          disabled={found.next === null}
          onClick={() => say({ episode: found.next ?? "" })}
        >
          Later
          <Icon name="right" />
        </button>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Video and traces">
        {several && (
          <div class="videos shots pad">
            <Shot run={run} row={row} media={video} steps={length} deck={deck} hub={hub} />
            {beside.value.map((word) => (
              <Other key={word} word={word} deck={deck} hub={hub} />
            ))}
          </div>
        )}
        <div class={video && !several ? "video-top" : "video-top alone"}>
          {video && !several && <Video media={video} {...deck.video("", length)} />}
          <div>
            {video?.kind === "video" && (
              <div class="row">
                <button class="btn" type="button" onClick={deck.toggle} aria-pressed={playing.value}>
                  <Icon name={playing.value ? "pause" : "play"} />
                  {playing.value ? "Stop" : "Play"}
                </button>
                <button class="btn icon" type="button" aria-label="One step back" onClick={() => step(-1)}>
                  <Icon name="left" />
                </button>
                <button class="btn icon" type="button" aria-label="One step on" onClick={() => step(1)}>
                  <Icon name="right" />
                </button>
                <span class="seg" role="group" aria-label="Speed">
                  {SPEEDS.map((speed) => (
                    <button
                      key={speed}
                      type="button"
                      aria-pressed={rate.value === speed}
                      onClick={() => {
                        rate.value = speed;
                      }}
                    >
                      {speed === 0.25 ? "¼" : speed}×
                    </button>
                  ))}
                </span>
                <span class="grow" />
                <span>
                  step <b>{count(cursor ?? 0)}</b> of {count(deck.longest)}
                </span>
              </div>
            )}
            <Facts found={found} length={length} />
            {found.alerts.map((alert) => (
              <AlertLine key={alert.id} alert={alert} href={`#/health?run=${encodeURIComponent(run)}`} />
            ))}
            {found.replay_line !== null && (
              <pre class="line" tabIndex={0}>
                {found.replay_line}
              </pre>
            )}
          </div>
        </div>
        {found.media.length > 1 && (
          <div class="videos pad">
            {found.media.slice(1, 9).map((media) => (
              <Video key={media.id} media={media} />
            ))}
          </div>
        )}
        {found.traces.length > 0 ? (
          <Traces run={run} episode={id} found={found} hub={hub} />
        ) : (
          <Empty
            title="The steps of this episode were not kept"
            code={'env = RecordEpisodes(env, run, steps="every 20, best, worst")'}
          >
            <p>Its return and length are; to keep every step of some episodes:</p>
          </Empty>
        )}
      </div>
      <div class="foot">
        {video && found.traces.length > 0 && <span>hover a trace to move the video</span>}
        <span class="grow" />
        <span class="hide-s">
          {video?.kind === "video" && (
            <>
              <kbd>Space</kbd> play <kbd>,</kbd> <kbd>.</kbd> step <kbd>b</kbd> beside{" "}
            </>
          )}
          <kbd>[</kbd> <kbd>]</kbd> episode
        </span>
      </div>
    </>
  );
}

/** The worst and the best twentieth stand out, not what is like many others. */
const toneOf = ({ lower, equal, of }: { lower: number; equal: number; of: number }): string =>
  equal < of && (lower + equal) / of <= 0.05 ? "bad" : lower / of > 0.95 ? "good" : "";

function Facts({ found, length }: { found: EpisodeDetail; length: number }) {
  const { row, rewards, checkpoint } = found;
  const more = Object.entries(row)
    .filter(([name, v]) => !KNOWN.includes(name) && v !== null && v !== "" && !(name in found.clocks))
    .slice(0, 10);
  const sum = (r: Obj): string => `${value(Number(r["sum"]))}`;
  return (
    <dl class="facts two">
      <dt>return</dt>
      <dd>
        <b>{value(Number(row["return"]))}</b>
      </dd>
      <dt>length</dt>
      <dd>
        {count(length)}, {ending(row)}
      </dd>
      {rewards
        .filter((r) => r["component"] !== null && r["component"] !== "")
        .slice(0, 6)
        .map((r) => (
          <Fact key={String(r["component"])} name={String(r["component"])} text={sum(r)} />
        ))}
      {Object.entries(found.clocks)
        .slice(0, 4)
        .map(([name, n]) => (
          <Fact
            key={name}
            name={name}
            text={
              found.start_clocks?.[name] !== undefined && found.start_clocks[name] !== n
                ? `${count(found.start_clocks[name] as number)} – ${count(n)}`
                : count(n)
            }
          />
        ))}
      {more.map(([name, v]) => (
        <Fact key={name} name={name} text={typeof v === "number" && name !== "seed" ? value(v) : plain(v)} />
      ))}
      {checkpoint && <Fact name="checkpoint" text={plain(checkpoint["checkpoint_id"] ?? checkpoint["id"])} />}
    </dl>
  );
}

const Fact = ({ name, text }: { name: string; text: string }) => (
  <>
    <dt>{name}</dt>
    <dd title={text}>{text}</dd>
  </>
);
