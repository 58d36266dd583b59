/** Cards of the page of one run that hold long lists: configuration, packages, pictures. */

import { useState } from "preact/hooks";
import type { Cell, RunDetail } from "../../api/names.ts";
import { amount, count, plain } from "../../data/numbers.ts";
import { pattern } from "../../data/search.ts";
import { Video } from "../../parts/Video.tsx";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";

export const json = (cell: Cell): string =>
  cell !== null && typeof cell === "object" ? JSON.stringify(cell) : plain(cell);

export const Fact = ({ name, text }: { name: string; text: string }) => (
  <>
    <dt>{name}</dt>
    <dd class="wraps">{text}</dd>
  </>
);

/** Nested configuration as dotted paths. */
function flat(config: { [key: string]: Cell }, before = ""): [string, Cell][] {
  return Object.entries(config).flatMap(([name, v]): [string, Cell][] =>
    v !== null && typeof v === "object" && !Array.isArray(v) && Object.keys(v).length > 0
      ? flat(v, `${before}${name}.`)
      : [[before + name, v]],
  );
}

export function Config({ detail }: { detail: RunDetail }) {
  const [text, setText] = useState("");
  const search = pattern(text);
  const rows = flat(detail.config).filter(([path]) => search === null || search.test(path));
  return (
    <section class="card c6">
      <header>
        <h2>Configuration</h2>
        <span class="soft">{amount(rows.length, "value")}</span>
        <span class="grow" />
        <label class="field">
          <input
            type="search"
            placeholder="find"
            aria-label="Find in the configuration"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
      </header>
      <div class="in limited" tabIndex={0} role="region" aria-label="Configuration">
        <dl class="facts mono">
          {rows.slice(0, 500).map(([path, v]) => (
            <Fact key={path} name={path} text={json(v)} />
          ))}
        </dl>
      </div>
    </section>
  );
}

export function Packages({ detail }: { detail: RunDetail }) {
  const all = Object.entries(detail.packages ?? {});
  return (
    <section class="card c6">
      <header>
        <h2>Packages</h2>
        <span class="soft">{count(all.length)}</span>
      </header>
      <div class="in limited" tabIndex={0} role="region" aria-label="Packages">
        <dl class="facts mono">
          {all.slice(0, 500).map(([name, version]) => (
            <Fact key={name} name={name} text={String(version)} />
          ))}
        </dl>
      </div>
    </section>
  );
}

export function Pictures({ run }: { run: string }) {
  const answer = useAnswer(`${run} media`, () => source.media(run));
  const media = answer.value?.media ?? [];
  if (media.length === 0) return null;
  return (
    <section class="card c12">
      <header>
        <h2>Pictures and videos</h2>
        <span class="soft">{count(answer.value?.total ?? 0)}</span>
      </header>
      <div class="in videos">
        {media.slice(0, 24).map((one) => (
          <figure key={one.id}>
            <Video media={one} />
            <figcaption class="soft small">{one.key}</figcaption>
          </figure>
        ))}
      </div>
    </section>
  );
}
