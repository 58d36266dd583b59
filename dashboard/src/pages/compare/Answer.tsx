/** The answer on top: the ranking in one line, why, the plan and its state, what to run next. */

import type { Cell, CompareAnswer, GroupOf, StoredPlan } from "../../api/names.ts";
import { amount, count, sentence } from "../../data/numbers.ts";
import { decidedPairs, rankings, runNext, whyNone, type Ranked } from "../../data/ranking.ts";
import { Copy } from "../../parts/CopyLink.tsx";
import { Menu } from "../../parts/Menu.tsx";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";
import { Next } from "./Projects.tsx";
import { addressOf } from "../../state/address.ts";
import { nameOf, Note, StepsTo } from "./Note.tsx";
import { colorOfGroup, drawnProjects, leftOut, longOf } from "./groups.ts";

/** Notes that are read at once; the others are folded. */
const FEW = 3;

export function Answer({ found, groups }: { found: CompareAnswer; groups: GroupOf[] }) {
  const families = rankings(found.groups, found.pairs);
  const without = families.flat().flatMap(({ group, scored }) => (scored ? [] : [group]));
  const plan = (found.plans ?? []).find((one) => one.metric === found.key);
  const decided = decidedPairs(found.pairs);
  // That there is one group stands in the next lines.
  const notes = found.notes.filter(({ kind }) => kind !== "one group");
  return (
    <section class="card c12 said">
      {families.map((order, i) => (
        <Ranking key={order[0]?.group.name} order={order} found={found} isFirst={i === 0} />
      ))}
      {without.length > 0 && (
        <p class="why">
          No score{without.some(({ missing }) => missing.every(({ why }) => why !== "did not finish")) && " yet"}:{" "}
          {without.map((group, i) => (
            <span key={group.name}>
              {i > 0 && "; "}
              <Name of={group.name} /> {group.missing.length > 0 && `(${whyNone(group.missing)})`}
            </span>
          ))}
          .
        </p>
      )}
      {found.pairs.length > 1 && (
        <p class="soft">
          {count(decided)} of {amount(found.pairs.length, "pair")} decided. &gt; decided, ? not decided.
        </p>
      )}
      <p class="next">
        {plan ? <Made plan={plan} /> : found.pairs.length > 0 && <Make of={found.key} groups={groups} />}
        <span>
          <span class="tag">run next</span> {runNext(found)}
        </span>
        {found.groups.length === 1 && <Next />}
      </p>
      {(notes.length > 0 || leftOut.value > 0) && (
        <p class="notes">
          {leftOut.value > 0 && (
            <span class="tag warn">
              The first {count(groups.length)} of {count(groups.length + leftOut.value)} that are drawn.{" "}
              <a href={addressOf("sweep")}>Sweep</a> looks at all.
            </span>
          )}
          {notes.slice(0, FEW).map((note) => (
            <Note key={nameOf(note)} of={note} found={found} />
          ))}
        </p>
      )}
      {notes.length > FEW && (
        <details>
          <summary>{amount(notes.length - FEW, "more note")}</summary>
          <p class="notes">
            {notes.slice(FEW).map((note) => (
              <Note key={nameOf(note)} of={note} found={found} />
            ))}
          </p>
        </details>
      )}
    </section>
  );
}

/** Groups that were compared with each other, the best first, and what is known of the first two. */
function Ranking({
  order,
  found,
  isFirst,
}: {
  order: Ranked<CompareAnswer["groups"][number]>[];
  found: CompareAnswer;
  isFirst: boolean;
}) {
  const [first, second] = order.map(({ group }) => group.name);
  const top = found.pairs.find((pair) => [pair.a, pair.b].every((name) => name === first || name === second));
  const alone = isFirst ? (order[0]?.group.sentence ?? found.sentence) : "";
  return (
    <>
      <p class="ranking">
        {order.map(
          ({ group, sign, scored }) =>
            scored && (
              <span key={group.name}>
                {sign !== "" && <span class={sign === ">" ? "sign" : "sign soft"}>{sign}</span>}
                <Name of={group.name} />
              </span>
            ),
        )}
      </p>
      {(top?.sentence ?? alone) !== "" && (
        <p class="verdict why">
          {sentence(top?.sentence ?? alone)} <StepsTo pair={top} />
        </p>
      )}
    </>
  );
}

const Name = ({ of }: { of: string }) => (
  <>
    <i class={`dot s${colorOfGroup(of)}`} /> <b title={of}>{longOf(of)}</b>
  </>
);

/** The line that makes a plan, and that looks again. */
function lineOf(metric: string, by: string, plan: string): string {
  const [project, ...others] = drawnProjects();
  const where = project && others.length === 0 ? `${project.name} ` : "";
  return `rollbook compare ${where}--metric ${metric} --by ${by} --plan ${plan}`;
}

const MOST_SQUARES = 40;

/** The state of the plan: how far it has come, what its last look said, and the line that looks again. */
function Made({ plan }: { plan: StoredPlan }) {
  const last = plan.looks.at(-1);
  const looked = last ? Math.min(last.n_a, last.n_b) : 0;
  const decided = plan.verdicts.filter(({ better }) => better !== null).length;
  return (
    <>
      <span class="tag good">plan {plan.name}</span>{" "}
      {plan.seeds <= MOST_SQUARES && (
        <span class="squares" role="img" aria-label={`${looked} of at most ${amount(plan.seeds, "seed")} of each`}>
          {Array.from({ length: plan.seeds }, (_, i) => (
            <i key={i} class={i < looked ? "done" : ""} />
          ))}
        </span>
      )}
      <span>
        to {amount(plan.seeds, "seed")} of each; {plan.first_look ?? plan.seeds} of each can decide first;{" "}
        {looked === 0
          ? "no look yet"
          : `last looked at ${looked}; ${decided} of ${amount(plan.verdicts.length, "pair")} decided`}
        .
      </span>{" "}
      <Menu label="Look again">
        {() => (
          <div class="words wide">
            <p>After a further seed of each, this line looks again. What is wrong at most is fixed over all looks.</p>
            <Line text={lineOf(plan.metric, plan.by, plan.name)} what="the line that looks again" />
          </div>
        )}
      </Menu>
    </>
  );
}

const Line = ({ text, what }: { text: string; what: string }) => (
  <>
    <pre class="line wraps" tabIndex={0}>
      {text.split(" ").map((part, i) => (
        <>
          {i > 0 && " "}
          <span class="word">{part}</span>
        </>
      ))}
    </pre>
    <Copy text={text} what={what} />
  </>
);

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
  const by = telling ? telling.name : "name";
  const line = lineOf(of, by, of.replace(/[^\w]+/g, "-"));
  return (
    <Menu label="Make a plan">
      {() => (
        <div class="words wide">
          <p>
            A plan is for a look after each seed, up to an end that is fixed before. This line makes it beside the runs;
            each further call is a look.
          </p>
          <Line text={line} what="the line that makes a plan" />
        </div>
      )}
    </Menu>
  );
}
