/** Do stale rollouts get clipped? Each staleness with its rollouts by the share of their tokens that was clipped. */

import type { Fates as Found } from "../../api/names.ts";
import { amount, count, percent } from "../../data/numbers.ts";

export function Clipped({ found }: { found: Found }) {
  const { clipping, clipped_from: from } = found;
  const last = clipping[clipping.length - 1]?.staleness ?? 0;
  const sum = (n: readonly number[]): number => n.reduce((s, one) => s + one, 0);
  const name = (i: number): string => {
    const [low, high] = [from[i] ?? 0, from[i + 1]].map((share) => (share === undefined ? null : share * 100));
    return high === null ? `> ${low} %` : `${low} – ${high} %`;
  };
  return (
    <section class="card" style={{ gridColumn: "span 6" }}>
      <header>
        <h2>Staleness and clipping</h2>
        <span class="soft">used rollouts; each column sums to 100 %</span>
      </header>
      <div class="minitable" tabIndex={0} role="region" aria-label="Staleness and clipping">
        <table class="heatmap">
          <thead>
            <tr>
              <th scope="col">tokens clipped</th>
              {clipping.map(({ staleness }) => (
                <th key={staleness} scope="col" class="num">
                  {staleness === last && staleness >= 9 ? "≥ 9" : staleness} stale
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {from
              .map((_, i) => i)
              .reverse()
              .map((i) => (
                <tr key={i}>
                  <th scope="row">{name(i)}</th>
                  {clipping.map(({ staleness, n }) => {
                    const share = (n[i] ?? 0) / (sum(n) || 1);
                    const shade = share === 0 ? "" : `n${Math.min(3, 1 + Math.floor(share * 5))}`;
                    return (
                      <td
                        key={staleness}
                        class="num"
                        title={`${count(n[i] ?? 0)} of ${amount(sum(n), "rollout")}`}
                        style={shade === "" ? {} : { background: `var(--heat-${shade})` }}
                      >
                        {share === 0 ? "" : percent(share)}
                      </td>
                    );
                  })}
                </tr>
              ))}
            <tr>
              <th scope="row">rollouts</th>
              {clipping.map(({ staleness, n }) => (
                <td key={staleness} class="num soft">
                  {count(sum(n))}
                </td>
              ))}
            </tr>
          </tbody>
        </table>
      </div>
    </section>
  );
}
