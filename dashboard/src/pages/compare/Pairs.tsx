/** Every pair of groups: the difference of the statistic and how likely a run of one beats one of the other. */

import type { CompareAnswer } from "../../api/names.ts";
import { rounded, value } from "../../data/numbers.ts";
import { pairOf } from "../../data/ranking.ts";
import { Named } from "../../parts/Named.tsx";
import { colorOfGroup, MOST_BESIDE, shortOf } from "./groups.ts";

export function Pairs({ found }: { found: CompareAnswer }) {
  const names = found.groups.map(({ name }) => name);
  return (
    <section class={`card pairs ${names.length > MOST_BESIDE ? "c12" : "c6"}`}>
      <header>
        <h2>Difference of the {found.statistic === "iqm" ? "IQM" : found.statistic}, pair by pair</h2>
        <span class="soft">filled: decided; below it P(a run of the row beats one of the column)</span>
      </header>
      <div class="minitable" tabIndex={0} role="region" aria-label="Pairs">
        <table>
          <thead>
            <tr>
              <th scope="col">row − column</th>
              {names.map((name) => (
                <th key={name} scope="col" class="num" title={name}>
                  <i class={`dot s${colorOfGroup(name)}`} /> <Named text={shortOf(name)} name={name} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {names.map((row) => (
              <tr key={row}>
                <th scope="row" title={row}>
                  <i class={`dot s${colorOfGroup(row)}`} /> <Named text={shortOf(row)} name={row} />
                </th>
                {names.map((column) => (
                  <Cell key={column} pair={row === column ? null : pairOf(found.pairs, row, column)} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const WORDS: { [verdict: string]: string } = { better: "won", worse: "lost" };

function Cell({ pair }: { pair: ReturnType<typeof pairOf> }) {
  if (pair === null) return <td class="num none" />;
  if (!Number.isFinite(pair.difference)) return <td class="num soft">–</td>;
  const open = pair.verdict !== "better" && pair.verdict !== "worse";
  return (
    <td class={`num ${WORDS[pair.verdict] ?? ""}`} title={pair.verdict}>
      {`${pair.difference > 0 ? "+" : ""}${value(rounded(pair.difference, 3))}`}
      {open && " ?"}
      <br />
      <span class="soft">{Number.isFinite(pair.better) ? value(pair.better, 2) : "–"}</span>
    </td>
  );
}
