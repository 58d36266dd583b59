/** Pictures, videos, texts and histograms at one step of training, side by side over runs. */

import type { ComponentChildren } from "preact";
import type { Media as Picture, RunDetail } from "../../api/names.ts";
import { fullName, shortNames } from "../../data/names.ts";
import { amount, count, value } from "../../data/numbers.ts";
import { Context } from "../../parts/Context.tsx";
import { CopyLink } from "../../parts/CopyLink.tsx";
import { Video } from "../../parts/Video.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { RunPicker } from "../../parts/RunPicker.tsx";
import { Answered, Empty } from "../../parts/Say.tsx";
import { joined, list, say, word } from "../../state/address.ts";
import { useAnswer } from "../../state/answer.ts";
import { colorOfRun } from "../../state/colors.ts";
import { useHands } from "../../state/hands.ts";
import { source } from "../../state/here.ts";
import { useNews, useRun } from "../../state/run.ts";
import { Beside } from "./Beside.tsx";
import { Histograms } from "./Histograms.tsx";
import "./media.css";

const MOST = 6; // runs side by side
const others = list("beside");
const place = word("at");

interface Item<T> {
  x: number;
  one: T;
}

/** What one run logged besides numbers, by key, each in the order of its steps. */
interface Logged {
  detail: RunDetail;
  pictures: Map<string, Item<Picture>[]>;
  texts: Map<string, Item<string>[]>;
  histograms: string[];
  of: number;
}

function byKey<T, R extends { key: string; x: unknown }>(
  rows: readonly R[],
  made: (row: R) => T,
): Map<string, Item<T>[]> {
  const all = new Map<string, Item<T>[]>();
  for (const row of rows)
    if (typeof row.x === "number") all.set(row.key, [...(all.get(row.key) ?? []), { x: row.x, one: made(row) }]);
  for (const items of all.values()) items.sort((a, b) => a.x - b.x);
  return all;
}

async function logged(run: string): Promise<Logged> {
  const [detail, media, text, histograms] = await Promise.all([
    source.run(run),
    source.media(run),
    source.text(run),
    source.histograms(run).catch(() => null), // an older copy has none
  ]);
  return {
    detail,
    pictures: byKey(media.media, (one) => one),
    texts: byKey(text.rows, (row) => row.text),
    histograms: histograms?.keys ?? [],
    of: media.total + text.total,
  };
}

/** The last one that was there at a step. */
const at = <T,>(items: readonly Item<T>[] | undefined, step: number): Item<T> | null =>
  items?.findLast(({ x }) => x <= step) ?? null;

export function Media() {
  const { run, detail, none } = useRun("media");
  const runs = run === null ? [] : [...new Set([run, ...others.value])].slice(0, MOST);
  const news = useNews(run, ["media", "text", "histograms"], 5000);
  const answer = useAnswer(run === null ? null : `${runs.join(" ")} ${news}`, () => Promise.all(runs.map(logged)));
  return (
    <>
      <Context>
        {detail.value && <RunPicker detail={detail.value} />}
        {others.value.map((other) => (
          <button
            key={other}
            class="chip"
            type="button"
            aria-label={`Take ${other} away`}
            onClick={() => say({ beside: joined(others.value.filter((one) => one !== other)) }, true)}
          >
            <i class={`dot s${colorOfRun(other)}`} /> {nameIn(answer.value, other)} ×
          </button>
        ))}
        {runs.length > 0 && runs.length < MOST && <Beside now={runs} />}
        <span class="grow" />
        <CopyLink />
      </Context>
      <main id="main" class="page scroll" tabIndex={0} aria-label="Media">
        {none ? (
          <Empty title="No run yet" />
        ) : (
          <Answered of={answer} what="what was logged">
            {(found) => <Shown found={found} />}
          </Answered>
        )}
      </main>
    </>
  );
}

const nameIn = (found: Logged[] | null, run: string): string => {
  const one = found?.find(({ detail }) => detail.run === run)?.detail;
  return one ? fullName(one) : run;
};

function Shown({ found }: { found: Logged[] }) {
  const items = found.flatMap((one) => [...one.pictures.values(), ...one.texts.values()]);
  const steps = [...new Set(items.flatMap((all) => all.map(({ x }) => x)))].sort((a, b) => a - b);
  const said = place.value === "" ? Infinity : Number(place.value);
  const index = Math.max(
    0,
    steps.findLastIndex((x) => x <= said),
  );
  const step = steps[index] ?? (Number.isFinite(said) ? said : Infinity);
  const go = (i: number): void => {
    const next = Math.max(0, Math.min(steps.length - 1, i));
    say({ at: next === steps.length - 1 ? "" : String(steps[next]) });
  };
  useHands(() => [
    { keys: ["ArrowLeft"], shown: "←", what: "a step back", act: () => go(index - 1), when: () => steps.length > 1 },
    { keys: ["ArrowRight"], shown: "→", what: "a step on", act: () => go(index + 1), when: () => steps.length > 1 },
  ]);
  const names = shortNames(
    found.map(({ detail }) => fullName(detail)),
    28,
    true,
  );
  const keysOf = (of: (one: Logged) => Iterable<string>): string[] => [
    ...new Set(found.flatMap((one) => [...of(one)])),
  ];
  const pictures = keysOf((one) => one.pictures.keys());
  const texts = keysOf((one) => one.texts.keys());
  const histograms = keysOf((one) => one.histograms);
  if (pictures.length + texts.length + histograms.length === 0)
    return (
      <Empty title="No picture, text or histogram" code={'run.log_histogram("weights", values, env_step=step)'}>
        <p>What is logged besides numbers stands here, step by step, side by side with other runs.</p>
      </Empty>
    );
  const columns = { "--many": found.length };
  const cells = (cell: (one: Logged) => ReturnType<typeof PictureCell>) => (
    <div class="beside" style={columns}>
      {found.map((one, i) => (
        <div key={one.detail.run}>
          <p class="small">
            <i class={`dot s${colorOfRun(one.detail.run)}`} /> {names[i]}
          </p>
          {cell(one)}
        </div>
      ))}
    </div>
  );
  return (
    <div class="cols one">
      {steps.length > 1 && (
        <section class="card stepper">
          <button class="btn bare icon" type="button" aria-label="A step back" onClick={() => go(index - 1)}>
            <Icon name="left" />
          </button>
          <input
            type="range"
            min="0"
            max={steps.length - 1}
            step="1"
            value={index}
            aria-label="Step"
            aria-valuetext={value(step, 6)}
            onInput={(event) => go(Number(event.currentTarget.value))}
          />
          <button class="btn bare icon" type="button" aria-label="A step on" onClick={() => go(index + 1)}>
            <Icon name="right" />
          </button>
          <span class="mono">step {value(step, 6)}</span>
          <span class="soft">
            {count(index + 1)} of {count(steps.length)}
          </span>
        </section>
      )}
      {pictures.map((key) => (
        <Card key={`picture ${key}`} name={key} soft="pictures and videos">
          {cells((one) => (
            <PictureCell item={at(one.pictures.get(key), step)} />
          ))}
        </Card>
      ))}
      {texts.map((key) => (
        <Card key={`text ${key}`} name={key} soft="texts">
          {cells((one) => (
            <TextCell item={at(one.texts.get(key), step)} />
          ))}
        </Card>
      ))}
      {histograms.map((key) => (
        <Card key={`histogram ${key}`} name={key} soft="histograms over training; the line is the step">
          <Histograms
            of={key}
            step={step}
            runs={found.map(({ detail }, i) => ({ run: detail.run, name: names[i] ?? detail.run }))}
          />
        </Card>
      ))}
      {found.some(({ pictures: some, texts: more, of }) => {
        const shown = [...some.values(), ...more.values()].reduce((n, all) => n + all.length, 0);
        return shown < of;
      }) && (
        <p class="soft pad">
          Of{" "}
          {amount(
            found.reduce((n, { of }) => n + of, 0),
            "row",
          )}{" "}
          the newest are shown.
        </p>
      )}
    </div>
  );
}

function Card({ name, soft, children }: { name: string; soft: string; children: ComponentChildren }) {
  return (
    <section class="card">
      <header>
        <h2 class="mono">{name}</h2>
        <span class="soft">{soft}</span>
      </header>
      <div class="in">{children}</div>
    </section>
  );
}

function PictureCell({ item }: { item: Item<Picture> | null }) {
  return item === null ? (
    <p class="soft small">not yet</p>
  ) : (
    <>
      <Video key={item.one.id} media={item.one} />
      <p class="soft small">step {value(item.x, 6)}</p>
    </>
  );
}

function TextCell({ item }: { item: Item<string> | null }) {
  return item === null ? (
    <p class="soft small">not yet</p>
  ) : (
    <>
      <pre class="logged" tabIndex={0}>
        {item.one}
      </pre>
      <p class="soft small">step {value(item.x, 6)}</p>
    </>
  );
}
