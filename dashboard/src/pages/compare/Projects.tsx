/** Whose groups are compared, and what else can be where there is nothing to compare. */

import { amount } from "../../data/numbers.ts";
import { Choice, Menu } from "../../parts/Menu.tsx";
import { drawFirst, projects, rowName, toggleDrawn } from "../runs/table.ts";
import { besides, drawnProjects, nextProject } from "./groups.ts";

const MOST_OFFERED = 4;

/** Chooses a project; nothing where there is one. */
export function ProjectMenu() {
  const all = projects();
  const now = drawnProjects();
  if (all.length < 2) return null;
  return (
    <Menu what="groups of" label={<b>{now.map(({ name }) => name).join(", ") || "–"}</b>}>
      {(close) => (
        <div class="choices" tabIndex={0} aria-label="Project">
          {all.map(({ name, ids }) => (
            <Choice
              key={name}
              chosen={now.length === 1 && now[0]?.name === name}
              soft={amount(ids.length, "group")}
              onChoose={() => {
                drawFirst(ids);
                close();
              }}
            >
              {name}
            </Choice>
          ))}
        </div>
      )}
    </Menu>
  );
}

/** What can be compared instead: another group of the project, unless that holds no numbers, else those of another. */
export function Next({ elsewhere = false }: { elsewhere?: boolean }) {
  const [beside, next] = [elsewhere ? [] : besides(), nextProject()];
  if (beside.length > 0)
    return (
      <>
        {beside.slice(0, MOST_OFFERED).map((id) => (
          <button key={id} class="btn" type="button" onClick={() => toggleDrawn(id)}>
            + {rowName(id)}
          </button>
        ))}
      </>
    );
  if (next)
    return (
      <button class="btn" type="button" onClick={() => drawFirst(next.ids)}>
        Compare the groups of {next.name}
      </button>
    );
  return <span class="soft">No project here has two groups: another setting or another name makes one.</span>;
}
