import { lazy } from "../../parts/lazy.tsx";
import { Menu } from "../../parts/Menu.tsx";

const Panel = lazy(() => import("./later.ts").then((m) => m.ColumnPanel));

/** Which columns the runs table shows. */
export const ColumnPicker = () => (
  <Menu id="pick-columns" label="Columns" class="btn hide-s" plain>
    {() => <Panel />}
  </Menu>
);
