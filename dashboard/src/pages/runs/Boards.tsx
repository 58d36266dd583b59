/** Boards: views with a name, saved beside the runs. */

import { lazy } from "../../parts/lazy.tsx";
import { Menu } from "../../parts/Menu.tsx";
import * as view from "./view.ts";

const Panel = lazy(() => import("./later.ts").then((m) => m.BoardPanel));

export function Boards() {
  return (
    <Menu
      id="pick-board"
      what="Board"
      kbd="b"
      class="btn"
      label={<b>{view.board.value === "" ? "none" : view.board.value}</b>}
    >
      {(close) => <Panel close={close} />}
    </Menu>
  );
}
