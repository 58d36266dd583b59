/** Where drawn runs logged no metric: what else of them was recorded, and the pages that show it. */

import { Empty } from "../../parts/Say.tsx";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";
import { entities } from "./table.ts";

const PAGES: [table: string, page: string, what: string][] = [
  ["rollouts", "rollouts", "rollouts: reward, share solved and fates over training"],
  ["episodes", "episodes", "episodes: return and length of each"],
  ["samples", "samples", "samples"],
  ["media", "media", "pictures and videos"],
];

export function NoMetric() {
  const run = entities.value[0]?.runs[0]?.run;
  const tables = useAnswer(run ?? null, () => source.run(run ?? "")).value?.tables ?? {};
  const there = PAGES.filter(([table]) => tables[table]);
  if (run === undefined || there.length === 0)
    return <Empty title="No metric was logged yet" code='run.log({"train/return": r}, env_step=step)' />;
  return (
    <Empty title="No metric was logged yet, so there is no curve">
      {there.map(([table, page, what]) => (
        <p key={table}>
          <a href={`#/${page}?run=${encodeURIComponent(run)}`}>{what}</a>
        </p>
      ))}
    </Empty>
  );
}
