/** By which settings of the configurations runs are grouped, and by which they are coloured. */

import { lazy } from "../../parts/lazy.tsx";
import { Menu } from "../../parts/Menu.tsx";
import * as view from "./view.ts";

const GroupPanel = lazy(() => import("./later.ts").then((m) => m.GroupPanel));
const ColorPanel = lazy(() => import("./later.ts").then((m) => m.ColorPanel));

export function GroupBy() {
  const now = view.groupedBy();
  const label =
    now.length > 0 ? now.map(view.short).join(", ") : view.grouping.value === "none" ? "nothing" : "what differs";
  return (
    <Menu id="group-by" what="Group by" label={<b class="clip">{label}</b>} kbd="g">
      {(close) => <GroupPanel close={close} />}
    </Menu>
  );
}

export function ColorBy() {
  const by = view.colorBy.value;
  return (
    <Menu id="color-by" what="Colour by" label={<b class="clip">{by === "" ? "group" : view.short(by)}</b>}>
      {(close) => <ColorPanel close={close} />}
    </Menu>
  );
}
