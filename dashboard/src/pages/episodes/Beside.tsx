/** Videos of other episodes beside the open one, at one time cursor: seed against seed, before against after. */

import { computed, useSignal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Media, Obj } from "../../api/names.ts";
import type { Hub } from "../../charts/hub.ts";
import { amount, value } from "../../data/numbers.ts";
import { Video } from "../../parts/Video.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { Choice, Menu } from "../../parts/Menu.tsx";
import { fullName } from "../../data/names.ts";
import { Answered } from "../../parts/Say.tsx";
import { joined, list, say } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { colorOfRun } from "../../state/colors.ts";
import { source } from "../../state/here.ts";
import { ending, firstWhole } from "./ending.ts";

const MOST = 5;
const said = list("with");

/** What stands beside the open episode, in the words of the address. */
export const beside = computed(() => said.value.slice(0, MOST));

/** Puts the video of an episode beside the open one, or takes it away again. */
export function toggleBeside(run: string, episode: string): void {
  const [word, now] = [`${run}:${episode}`, said.peek()];
  say({ with: joined(now.includes(word) ? now.filter((one) => one !== word) : [...now, word].slice(-MOST)) }, true);
}

/** How many steps a video shows, and how many seconds it takes to. */
interface Clock {
  steps: number;
  seconds: number;
}

/** Videos that play together. The longest moves the cursor; the others follow it, each at its own pace. */
export function useDeck(hub: Hub, steps: number) {
  const playing = useSignal(false);
  const rate = useSignal(1);
  const clocks = useSignal<ReadonlyMap<string, Clock>>(new Map());
  const there = [...clocks.value].filter(([key]) => key === "" || beside.value.includes(key));
  const [leads, lead] = there.sort(([, a], [, b]) => b.steps - a.steps)[0] ?? ["", { steps, seconds: 0 }];
  const longest = Math.max(steps, lead.steps);
  const cursor = hub.cursor.value;
  return {
    playing,
    rate,
    longest,
    toggle: () => {
      if (!playing.peek() && (hub.cursor.peek() ?? 0) >= longest - 1) hub.point(0, null);
      playing.value = !playing.peek();
    },
    step: (by: number) => {
      playing.value = false;
      hub.point(Math.max(0, Math.min(longest - 1, Math.round((hub.cursor.peek() ?? 0) + by))), null);
    },
    /** What a video of so many steps is shown with. */
    video: (key: string, long: number) => {
      const { seconds } = clocks.value.get(key) ?? { seconds: 0 };
      const known = cursor !== null && seconds > 0 && long > 0;
      const pace = seconds > 0 && lead.seconds > 0 ? (seconds / long) * (lead.steps / lead.seconds) : 1;
      return {
        bare: true,
        ...(known ? { second: Math.min(1, cursor / long) * seconds } : {}),
        playing: playing.value && (key === leads || !known || cursor < long),
        rate: Math.max(0.1, Math.min(16, rate.value * (key === leads ? 1 : pace))),
        onSecond: (at: number, of: number) => {
          if (!(of > 0)) return;
          const old = clocks.peek().get(key);
          if (old?.seconds !== of || old.steps !== long)
            clocks.value = new Map(clocks.peek()).set(key, { steps: long, seconds: of });
          if (key !== leads || !playing.peek()) return;
          hub.point((at / of) * long, null);
          if (at >= of) playing.value = false;
        },
      };
    },
  };
}

export type Deck = ReturnType<typeof useDeck>;

/** A video under its name, with where it stands. */
export function Shot(at: { run: string; row: Obj; media: Media; steps: number; deck: Deck; hub: Hub; word?: string }) {
  const { run, row, media, steps, deck, hub, word = "" } = at;
  const detail = useAnswer(run, () => source.run(run)).value;
  const step = hub.cursor.value;
  const over = step !== null && step >= steps - 1;
  return (
    <figure class="shot">
      <figcaption>
        <i class={`dot s${colorOfRun(run)}`} /> <b class="clip">{detail ? fullName(detail) : run}</b>
        <a
          class="mono"
          href={`#/episodes?run=${encodeURIComponent(run)}&episode=${encodeURIComponent(String(row["episode_id"]))}`}
        >
          {String(row["episode_id"]).slice(-8)}
        </a>
        <span class="grow" />
        {word !== "" && (
          <button
            class="btn bare icon"
            type="button"
            aria-label={`Take away the video of ${detail ? fullName(detail) : run}`}
            onClick={() => say({ with: joined(said.peek().filter((one) => one !== word)) }, true)}
          >
            <Icon name="close" />
          </button>
        )}
      </figcaption>
      <Video media={media} {...deck.video(word, steps)} />
      <p class="soft">
        return <b>{value(Number(row["return"]))}</b> · {over ? ending(row) : amount(steps, "step")}
      </p>
    </figure>
  );
}

/** The video of another episode. */
export function Other({ word, deck, hub }: { word: string; deck: Deck; hub: Hub }) {
  const cut = word.indexOf(":");
  const [run, episode] = [word.slice(0, cut), word.slice(cut + 1)];
  const answer = useAnswer(word, () => source.episode(run, episode));
  return (
    <Answered of={answer} what="the episode">
      {({ row, media, steps }) => {
        const video = media.find(({ kind }) => kind === "video") ?? media[0];
        const long = typeof row["length"] === "number" ? row["length"] : steps;
        return video ? (
          <Shot run={run} row={row} media={video} steps={long} deck={deck} hub={hub} word={word} />
        ) : (
          <p class="video gone">This episode has no video.</p>
        );
      }}
    </Answered>
  );
}

const OWN: [string, { column: string; descending: boolean }[]][] = [
  ["its first video", [{ column: "time", descending: false }]],
  ["its newest video", [{ column: "time", descending: true }]],
  ["its best video", [{ column: "return", descending: true }]],
  ["its worst video", [{ column: "return", descending: false }]],
];

/** Chooses what stands beside: other videos of the run, or the newest ones of other runs. */
export function BesideMenu({ run }: { run: string }) {
  return (
    <Menu id="beside" label="Beside" kbd="b">
      {(close) => <Choices run={run} close={close} />}
    </Menu>
  );
}

function Choices({ run, close }: { run: string; close: () => void }) {
  const [none, setNone] = useState("");
  const others = useAnswer(`beside ${run}`, async () => {
    const { project } = await source.run(run);
    const { rows } = await source.runs({ limit: 200, columns: [], sections: false });
    return rows.flatMap((row) => (row.kind === "run" && row.run !== run && row.project === project ? [row] : []));
  });
  useEffect(() => setNone(""), [run]);
  const put = async (of: string, sort: { column: string; descending: boolean }[], name: string): Promise<void> => {
    const id = await firstWhole(of, { video: true, sort });
    if (id === null) return setNone(`${name} has no video.`);
    toggleBeside(of, id);
    close();
    (document.activeElement as HTMLElement | null)?.blur(); // so that Space plays
  };
  return (
    <div class="picker">
      {none !== "" && <p class="pad soft">{none}</p>}
      {OWN.map(([name, sort]) => (
        <Choice key={name} onChoose={() => void put(run, sort, "This run")}>
          {name}
        </Choice>
      ))}
      {beside.value.length > 0 && <Choice onChoose={() => (say({ with: "" }, true), close())}>nothing</Choice>}
      <hr />
      <div class="choices" tabIndex={0} role="group" aria-label="The newest video of another run">
        {others.value?.map((row) => (
          <Choice key={row.run} soft="newest video" onChoose={() => void put(row.run, [], fullName(row))}>
            {fullName(row)}
          </Choice>
        ))}
      </div>
    </div>
  );
}
