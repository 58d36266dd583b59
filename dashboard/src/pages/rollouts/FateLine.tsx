/** What became of a rollout, in sentences: used or why not, how stale, and what its reward is made of. */

import type { OneRollout as Found, RolloutRow } from "../../api/names.ts";
import { shown } from "../../data/diff.ts";
import { amount, count, percent, value } from "../../data/numbers.ts";
import { fateIn, spread } from "../../data/rollouts.ts";
import { addressOf, say } from "../../state/address.ts";
import { FateDot } from "./marks.tsx";
import { fateWords } from "./opened.ts";

export function FateLine({ run, found, group }: { run: string; found: Found; group: readonly RolloutRow[] }) {
  const { cells } = found;
  const number = (name: string): number | null => (typeof cells[name] === "number" ? cells[name] : null);
  const fate = fateIn(cells);
  const words =
    fate === "used" ? "Used" : cells["used"] === true ? `Used, taught nothing: ${fateWords(fate)}` : fateWords(fate);
  const step = cells["used"] == null ? null : number("gradient_step");
  const stale = number("staleness");
  const [begun, ended, into] = ["policy_version", "policy_version_end", "trained_version"].map(number);
  const sampled =
    begun == null ? "" : ended == null || ended === begun ? count(begun) : `${count(begun)} – ${count(ended)}`;
  const origin = [
    sampled && `sampled by version ${sampled}`,
    into != null && cells["used"] === true && `trained into ${count(into)}`,
  ].filter(Boolean);
  const parts = [
    ["ratio", "ratio_mean", value],
    ["clipped", "clipped", percent],
    ["gap", "gap_mean", value],
  ] as const;
  const trained = trainedTokens(found);
  const at = `gradient_step between ${step} and ${step}`;
  return (
    <div class="fate">
      <p>
        <FateDot fate={fate} /> <b>{words}</b>
        {step !== null && (
          <>
            {" "}
            at update <a href={addressOf("rollouts", { run, tab: "", where: at, row: found.id })}>{count(step)}</a>
          </>
        )}
        {stale !== null && (
          <>
            , <b>{amount(stale, "version")} stale</b>
          </>
        )}
        {origin.length > 0 && <span class="soft"> ({origin.join(", ")})</span>}
        {parts.map(([name, column, text]) => {
          const x = number(column);
          return x === null ? null : (
            <span key={name}>
              , {name} <b>{text(x)}</b>
            </span>
          );
        })}
      </p>
      <Reward found={found} group={group} />
      <p class="soft">
        {[
          trained && `${count(trained[0])} of ${amount(trained[1], "token")} trained`,
          typeof cells["stop_reason"] === "string" && `stopped by ${shown(cells["stop_reason"])}`,
          found.fates.length > 1 && `${found.fates.length} uses`,
          number("temperature") !== null && `temperature ${value(number("temperature"))}`,
        ]
          .filter(Boolean)
          .map((fact) => `${fact} · `)}
        show only{" "}
        {(["group", "task"] as const).map((kind, i) => (
          <span key={kind}>
            {i > 0 && " or "}
            <button
              class="link"
              type="button"
              onClick={() => say({ of: `${kind}:${found.id}`, row: found.id, open: "" })}
            >
              its {kind}
            </button>
          </span>
        ))}
      </p>
      {typeof cells["error"] === "string" && <p class="bad">{shown(cells["error"])}</p>}
    </div>
  );
}

/** Its parts by function, and how it stands in its group. */
function Reward({ found, group }: { found: Found; group: readonly RolloutRow[] }) {
  const { cells } = found;
  const reward = cells["reward"];
  if (typeof reward !== "number") return null;
  const parts = Object.entries(cells).filter(([name, cell]) => name.startsWith("rewards/") && typeof cell === "number");
  const all = group.flatMap((row) => (typeof row.cells["reward"] === "number" ? [row.cells["reward"]] : []));
  const mean = all.reduce((sum, one) => sum + one, 0) / (all.length || 1);
  const advantage = cells["advantage"];
  return (
    <p>
      Reward <b>{value(reward)}</b>
      {parts.length > 1 && (
        <>
          {" = "}
          {parts.map(([name, cell], i) => (
            <span key={name}>
              {i > 0 && <span class="soft"> + </span>}
              <span class="soft mono">{shown(name.slice("rewards/".length))}</span> {value(Number(cell))}
            </span>
          ))}
        </>
      )}
      {all.length > 1 && (
        <span class="soft">
          ; group {value(mean)} ± {value(spread(all))}
        </span>
      )}
      {typeof advantage === "number" && (
        <>
          <span class="soft">: advantage</span> <b>{`${advantage > 0 ? "+" : ""}${value(advantage)}`}</b>
        </>
      )}
    </p>
  );
}

/** How many of its tokens were trained on, of how many. */
function trainedTokens({ cells, turns }: Found): [number, number] | null {
  const all = turns.reduce((sum, turn) => sum + (turn.n_tokens ?? 0), 0) + Number(cells["prompt_tokens"] ?? 0);
  if (all === 0 || cells["used"] == null) return null;
  if (cells["used"] === false) return [0, all];
  return [turns.reduce((sum, turn) => sum + (turn.trained === true ? maskedIn(turn) : 0), 0), all];
}

/** The tokens of a turn that its mask leaves. */
export function maskedIn({ n_tokens, tokens }: Found["turns"][number]): number {
  const mask = tokens?.columns["mask"];
  return mask ? mask.filter((one) => one !== 0).length : (n_tokens ?? 0);
}
