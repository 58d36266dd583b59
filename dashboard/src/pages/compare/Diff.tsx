import { useState } from "preact/hooks";
import type { Cell, GroupOf } from "../../api/names.ts";
import { amount, plain } from "../../data/numbers.ts";
import { pattern } from "../../data/search.ts";
import { Field } from "../../parts/Field.tsx";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { Named } from "../../parts/Named.tsx";
import { Answered } from "../../parts/Say.tsx";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";
import { colorOfGroup, MOST_BESIDE, shortOf } from "./groups.ts";

/** What most have, as text; of two as usual the first. */
function usual(values: readonly Cell[]): string {
  const texts = values.map(plain);
  const many = (text: string): number => texts.filter((one) => one === text).length;
  return texts.reduce((best, text) => (many(text) > many(best) ? text : best));
}

const MANY = 12; // settings that are found by looking

/** The configurations side by side, differences first; a search finds equal ones, too. */
export function Diff({ groups }: { groups: GroupOf[] }) {
  const [all, setAll] = useState(groups.length === 1);
  const [text, setText] = useState("");
  const search = pattern(text);
  const answer = useAnswer(`diff ${groups.map((group) => group.runs.join(" ")).join(";")}`, () => source.diff(groups));
  if (answer.value?.rows.length === 0) return null;
  return (
    <section class={`card ${groups.length > MOST_BESIDE ? "c12" : "c6"} confs`}>
      <header>
        <h2>Configuration</h2>
        {answer.value && (
          <span class="soft">
            {groups.length === 1 ? "" : "differences first"}
            {all || answer.value.equal === 0 ? "" : `; ${amount(answer.value.equal, "equal setting")} folded`}
          </span>
        )}
        <span class="grow" />
        {answer.value && answer.value.rows.length > MANY && (
          <Field value={text} label="Find a setting" placeholder="settings, e.g. lr opt*" onSay={setText} />
        )}
        {answer.value && answer.value.equal > 0 && (
          <button class="btn" type="button" onClick={() => setAll(!all)}>
            {all ? "Fold equal" : "Show all"}
          </button>
        )}
      </header>
      <Answered of={answer} what="configurations">
        {(found) => (
          <div class="limited flush sides">
            <MiniTable
              label="Configuration of each group"
              columns={[
                { id: "path", head: "config" },
                ...groups.map((group, i) => ({
                  id: String(i),
                  head: (
                    <>
                      <i class={`dot s${colorOfGroup(group.name)}`} />{" "}
                      <Named text={shortOf(group.name)} name={group.name} />
                    </>
                  ),
                })),
              ]}
              rows={found.rows.filter((row) => (search ? search.test(row.name) : all || row.differs))}
              rowClass={(row) => (row.differs ? "" : "off")}
              cell={(row, id) =>
                id === "path" ? (
                  <span class="mono">{row.name.replace(/^config\./, "")}</span>
                ) : (
                  <span class="mono">
                    {row.differs && plain(row.values[Number(id)]) !== usual(row.values) ? (
                      <b>{plain(row.values[Number(id)])}</b>
                    ) : (
                      plain(row.values[Number(id)])
                    )}
                  </span>
                )
              }
            />
          </div>
        )}
      </Answered>
    </section>
  );
}
