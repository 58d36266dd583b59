/** The answer on top: the ranking in one line, why, the plan and its state, what to run next. */

import type { Cell, CompareAnswer, GroupOf, StoredPlan } from "../../api/names.ts";
import { count, sentence } from "../../data/numbers.ts";
import { decidedPairs, ranked, runNext } from "../../data/ranking.ts";
import { Copy } from "../../parts/CopyLink.tsx";
import { Menu } from "../../parts/Menu.tsx";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";
import { colorOfGroup } from "./groups.ts";

export function Answer({ found, groups }: { found: CompareAnswer; groups: GroupOf[] }) {
  const order = ranked(found.groups, found.pairs);
  const [first, second] = order.map(({ group }) => group.name);
  const top = found.pairs.find((pair) => [pair.a, pair.b].every((name) => name === first || name === second));
  const plan = (found.plans ?? []).find((one) => one.metric === found.key);
  const decided = decidedPairs(found.pairs);
  // Where a plan was made, or can be made, stands in the next lines.
  const notes = found.notes.filter((note) => !note.includes("plan="));
  return (
    <section class="card c12 said">
      <p class="ranking">
        {order.map(({ group, sign }) => (
          <span key={group.name}>
            {sign !== "" && <span class={sign === ">" ? "sign" : "sign soft"}>{sign}</span>}
            <i class={`dot s${colorOfGroup(group.name)}`} /> <b>{group.name}</b>
          </span>
        ))}
      </p>
      <p class="verdict why">
        {sentence(plain(top?.sentence ?? found.groups[0]?.sentence ?? found.sentence))}{" "}
        {found.pairs.length > 1 && (
          <span class="soft">
            {count(decided)} of {count(found.pairs.length)} pairs are decided. &gt; decided, ≈ not decided.
          </span>
        )}
      </p>
      <p class="next">
        {plan ? <Made plan={plan} /> : found.pairs.length > 0 && <Make of={found.key} groups={groups} />}
        <span class="tag">run next</span> <span>{runNext(found)}</span>
      </p>
      {notes.length > 0 && (
        <p class="notes">
          {notes.map((note) => (
            <span key={note} class="tag">
              {sentence(note)}
            </span>
          ))}
        </p>
      )}
    </section>
  );
}

/** A verdict without the advice to make a plan, for which there is a button. */
const plain = (sentence: string): string =>
  sentence
    .split(/(?<=\.) /)
    .filter((part) => !part.includes("plan="))
    .join(" ");

/** The state of the plan: how far it has come, and what its last look said. */
function Made({ plan }: { plan: StoredPlan }) {
  const looked = plan.looks.at(-1)?.n ?? 0;
  const decided = plan.verdicts.filter(({ better }) => better !== null).length;
  return (
    <>
      <span class="tag good">plan {plan.name}</span>{" "}
      <span>
        {plan.n_min} to {plan.n_max} seeds of each,{" "}
        {looked === 0 ? "no look yet" : `last looked at ${looked}; ${decided} of ${plan.verdicts.length} pairs decided`}
        .
      </span>{" "}
    </>
  );
}

/** One value, not several inside of a group. */
const isOne = (v: Cell): boolean => v !== null && typeof v !== "object";

/** The line that makes a plan. A plan fixes beforehand what is compared, so it is made where the runs are started. */
function Make({ of, groups }: { of: string; groups: GroupOf[] }) {
  const answer = useAnswer(`diff ${groups.map((group) => group.runs.join(" ")).join(";")}`, () => source.diff(groups));
  const telling = answer.value?.rows.find(
    (row) =>
      row.differs &&
      new Set(row.values.map((v) => JSON.stringify(v))).size === groups.length &&
      row.values.every(isOne),
  );
  const by = telling ? `config.${telling.path}` : "name";
  const line = `rollbook compare --metric ${of} --by ${by} --plan ${of.replace(/[^\w]+/g, "-")}`;
  return (
    <Menu label="Make a plan">
      {() => (
        <div class="words wide">
          <p>
            A plan says beforehand what is compared and how often one looks: it decides with fewer seeds. This line,
            with the project after compare, makes it beside the runs; each further call is a look.
          </p>
          <pre class="line wraps" tabIndex={0}>
            {line}
          </pre>
          <Copy text={line} what="the line that makes a plan" />
        </div>
      )}
    </Menu>
  );
}
