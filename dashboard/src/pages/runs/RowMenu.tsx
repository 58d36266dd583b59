/** The menu of a row. */

import type { Row } from "../../api/names.ts";
import { Icon } from "../../parts/Icon.tsx";
import { lazy } from "../../parts/lazy.tsx";
import { Menu } from "../../parts/Menu.tsx";

const Panel = lazy(() => import("./later.ts").then((m) => m.RowPanel));

export function RowMenu({ row }: { row: Row }) {
  if (row.kind === "section") return null;
  return (
    <Menu plain class="btn bare icon more" name={`Actions on ${row.name}`} label={<Icon name="more" />}>
      {(close) => <Panel row={row} close={close} />}
    </Menu>
  );
}
