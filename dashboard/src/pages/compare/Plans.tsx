/** Comparisons that were planned beforehand, kept beside the runs: what may be said now, and every look so far. */

import type { CompareAnswer, Num, StoredPlan } from "../../api/names.ts";
import { amount, count, sentence, value } from "../../data/numbers.ts";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { say } from "../../state/address.ts";
import { StepsTo } from "./Note.tsx";

const said = (v: Num): string => (typeof v === "number" ? value(v, 2) : "–");

const COLUMNS = [
  { id: "pair", head: "pair" },
  { id: "n", head: "seeds", number: true },
  { id: "p", head: "p", number: true },
  { id: "limit", head: "decides at", number: true },
  { id: "better", head: "better" },
];

export function Plans({ found }: { found: CompareAnswer }) {
  return (
    <>
      {(found.plans ?? []).map((plan) => (
        <Plan key={plan.name} plan={plan} shown={plan.metric === found.key} />
      ))}
    </>
  );
}

function Plan({ plan, shown }: { plan: StoredPlan; shown: boolean }) {
  return (
    <section class="card c12">
      <header>
        <h2>Plan {plan.name}</h2>
        <span class="soft">
          {`${plan.metric} by ${plan.by} (${plan.arms.join(", ")}), ${plan.score}; `}
          to {amount(plan.seeds, "seed")} of each, {value(100 * plan.alpha)} % over all looks
        </span>
        <span class="grow" />
        {!shown && (
          <button class="btn" type="button" onClick={() => say({ key: plan.metric })}>
            Show {plan.metric}
          </button>
        )}
      </header>
      <div class="in">
        {plan.verdicts.map((verdict) => (
          <p key={`${verdict.a} ${verdict.b}`}>
            <span class={`tag${verdict.better !== null ? " good" : ""}`}>{verdict.outcome}</span>{" "}
            {sentence(verdict.sentence)} {shown && <StepsTo pair={verdict} />}
          </p>
        ))}
      </div>
      {plan.looks.length === 0 ? (
        <p class="in soft">No look was taken yet.</p>
      ) : (
        <MiniTable
          label={`Looks of the plan ${plan.name}`}
          columns={COLUMNS}
          rows={plan.looks}
          cell={(look, id) => {
            if (id === "pair") return `${look.a} and ${look.b}`;
            if (id === "n") return look.n_a === look.n_b ? count(look.n_a) : `${look.n_a}, ${look.n_b}`;
            if (id === "p") return said(look.p);
            return id === "limit" ? said(look.limit) : (look.better ?? "not decided");
          }}
        />
      )}
    </section>
  );
}
