/** The columns of the list: a rollout in a line, or a whole group. */

import type { RolloutGroup } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { count, value } from "../../data/numbers.ts";
import { askedLast, fateIn } from "../../data/rollouts.ts";
import type { Column } from "../../parts/Grid.tsx";
import { Icon } from "../../parts/Icon.tsx";
import { halves } from "../../parts/Middle.tsx";
import { cellText } from "../samples/cells.ts";
import { Advantage, FateDot, FateMark, StatusMark } from "./marks.tsx";
import { fateWords } from "./opened.ts";
import type { Line } from "./unfolded.ts";

export const HEADS: [id: string, head: string, width: string, number: boolean, wide: boolean][] = [
  ["item", "prompt, last answer", "minmax(150px, 3fr)", false, false],
  ["gradient_step", "update", "54px", true, true],
  ["status", "status", "98px", false, true],
  ["reward", "reward", "var(--rewards)", true, false],
  ["fate", "fate", "minmax(154px, 1fr)", false, false],
  ["advantage", "advantage", "98px", true, true],
  ["staleness", "stale", "46px", true, true],
  ["turns", "turns", "46px", true, true],
  ["sampled_tokens", "tokens", "56px", true, true],
];

/** By which clock a list of rollouts says where in training each was made: the first of these that one of them has. */
export function clockOf(clocks: readonly string[], lines: Iterable<Line | undefined>): string {
  const usual = ["policy_version", "epoch", "env_step", "episode"];
  const order = ["gradient_step", ...clocks.filter((name) => !usual.includes(name)), ...usual];
  const all = [...lines];
  return order.find((name) => all.some((line) => line?.cells[name] != null)) ?? "gradient_step";
}

/** The column of a clock. */
const CLOCKS: { [clock: string]: string } = { gradient_step: "update", policy_version: "version", env_step: "step" };
export const clockHead = (clock: string): [head: string, width: string] => {
  const head = CLOCKS[clock] ?? clock;
  return [head, `${Math.max(54, Math.min(96, 14 + 6 * head.length))}px`];
};

/** What stands in a cell. `repeated`: the prompt is that of the line above. */
export function cellOf(
  line: Line,
  name: string,
  repeated: boolean,
  unfold: (line: Line) => void,
): ReturnType<Column<Line>["cell"]> {
  const { cells, group } = line;
  const cell = cells[name];
  if (group != null) return groupCell(line, group, name, unfold);
  if (name === "item") return <Answer line={line} repeated={repeated} />;
  if (name === "status") return <StatusMark status={cellText(cell)} />;
  if (name === "fate") return <FateMark cells={cells} />;
  if (name === "advantage") return <Advantage of={cell} most={2} />;
  if (name === "sampled_tokens" && typeof cell === "number") return <Tokens of={cells} sampled={cell} />;
  if (name === "reward" && typeof cell === "number" && fateIn(cells) === "used") return <b>{value(cell)}</b>;
  return typeof cell === "number" && !Number.isInteger(cell) ? value(cell) : cellText(cell);
}

/** Letters of an answer's end: those of one prompt begin alike, and end in what was asked for. */
export const ENDING = 16;

function Answer({ line: { cells, place }, repeated }: { line: Line; repeated: boolean }) {
  const failed = cells["status"] === "failed" || cells["status"] === "aborted";
  const said = shown(cellText((failed ? cells["error"] : null) ?? cells["item"] ?? cells["error"]));
  const prompt = cells["prompt"];
  return (
    <span class={place === undefined ? "" : "ofgroup"}>
      {place !== undefined && <span class="soft place">{place}</span>}
      {place === undefined && typeof prompt === "string" && (
        <span class="soft asked-for" title={shown(prompt)}>
          {repeated ? "″" : shown(askedLast(prompt))}
        </span>
      )}
      <span class={failed ? "bad itemtext" : "itemtext middle"} title={said} dir="auto">
        {failed ? said : halves(said, ENDING)}
      </span>
    </span>
  );
}

function groupCell(line: Line, group: RolloutGroup, name: string, unfold: (line: Line) => void) {
  const { cells, unfolded } = line;
  const dash = <span class="soft">–</span>;
  if (name === "item") {
    const text = cellText(cells["prompt"] ?? cells["task_id"]);
    return (
      <span class="ofgroup">
        <button
          type="button"
          class="fold"
          aria-expanded={unfolded === true}
          aria-label="The rollouts of this group"
          onClick={() => unfold(line)}
        >
          <Icon name={unfolded ? "down" : "right"} />
        </button>
        <b class="itemtext" title={shown(text)} dir="auto">
          {shown(askedLast(text))}
        </b>
      </span>
    );
  }
  if (name === "status") return <Marks of={group} />;
  if (name === "reward")
    return typeof group.mean === "number" ? (
      <>
        <b>{value(group.mean)}</b> {group.n > 1 && <span class="soft hide-s">± {value(Number(group.spread), 2)}</span>}
      </>
    ) : (
      dash
    );
  if (name === "advantage") return "";
  if (name === "staleness") return typeof group.stale === "number" ? `≤ ${count(group.stale)}` : dash;
  if (name === "turns") return typeof group.turns === "number" ? value(group.turns) : dash;
  if (name === "sampled_tokens") return typeof group.tokens === "number" ? count(group.tokens) : dash;
  if (name === "fate") return <Fates of={group} />;
  return cellText(cells[name]);
}

const MOST_MARKS = 10;

/** ■ solved, □ not, × no reward. */
function Marks({ of: { marks, n } }: { of: RolloutGroup }) {
  const solved = marks.split("1").length - 1;
  return (
    <span
      class="groupmarks"
      role="img"
      aria-label={`${count(solved)} of ${count(n)} solved`}
      title={`${count(solved)} of ${count(n)} solved`}
    >
      {[...marks.slice(0, MOST_MARKS)].map((mark, i) => (
        <i key={i} class={{ "1": "solved", "0": "not" }[mark] ?? "none"} />
      ))}
      {n > MOST_MARKS && <span class="soft">{`${count(solved)}/${count(n)}`}</span>}
    </span>
  );
}

/** Letters that two fates may take. */
const WIDE = 13;

function Fates({ of: { fates, n } }: { of: RolloutGroup }) {
  const all = Object.entries(fates);
  const both = all.length === 2 && all.reduce((sum, [fate]) => sum + fate.length, 0) <= WIDE;
  const first = both ? all : all.slice(0, 1);
  const rest = n - first.reduce((sum, [, many]) => sum + many, 0);
  return (
    <span title={all.map(([fate, many]) => `${count(many)} ${fateWords(fate)}`).join(", ")}>
      {first.map(([fate, many], i) => (
        <span key={fate} class={i > 0 ? "fateof hide-s" : "fateof"}>
          <FateDot fate={fate} /> {count(many)} {fateWords(fate)}
        </span>
      ))}
      {rest > 0 && <span class="soft hide-s">+{count(rest)} other</span>}
    </span>
  );
}

/** Sampled tokens, strong where the model was trained on them; with those of the prompt and of tools in the title. */
function Tokens({ of, sampled }: { of: Line["cells"]; sampled: number }) {
  const all = ["prompt_tokens", "sampled_tokens", "other_tokens"].reduce((sum, name) => sum + Number(of[name] ?? 0), 0);
  const trained = fateIn(of) === "used";
  const title = `${count(sampled)} sampled of ${count(all)}; ${trained ? "trained on" : "not trained on"}`;
  return trained ? <b title={title}>{count(sampled)}</b> : <span title={title}>{count(sampled)}</span>;
}
