/** The menu of a row. */

import type { Row } from "../../api/names.ts";
import { Icon } from "../../parts/Icon.tsx";
import { lazy } from "../../parts/lazy.tsx";
import { Menu } from "../../parts/Menu.tsx";

const Panel = lazy(() => import("./later.ts").then((m) => m.RowPanel));

/** `called`: it stands apart from its row, and says whose it is. */
export function RowMenu({ row, called }: { row: Row; called?: string }) {
  if (row.kind === "section") return null;
  const label = (
    <>
      {called !== undefined && <span class="named">{called}</span>}
      <Icon name="more" />
    </>
  );
  return (
    <Menu
      plain
      class={called === undefined ? "btn bare icon more" : "btn"}
      name={`Actions on ${row.name}${row.kind === "run" && row.seed !== null ? `, seed ${row.seed}` : ""}`}
      label={label}
    >
      {(close) => <Panel row={row} close={close} />}
    </Menu>
  );
}
