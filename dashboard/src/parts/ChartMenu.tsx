/** What one chart has of its own, and what can be taken out of it. */

import type { RefObject } from "preact";
import type { Plot } from "../charts/plot.ts";
import { Icon } from "./Icon.tsx";
import { lazy } from "./lazy.tsx";
import { Menu } from "./Menu.tsx";
import type { Desk } from "../state/desk.ts";

export interface OfChart {
  name: string;
  plot: RefObject<Plot | null>;
  desk: Desk;
}

const Panel = lazy(() => import("./ChartPanel.tsx").then((m) => m.ChartPanel));

export const ChartMenu = (of: OfChart) => (
  <Menu plain class="btn bare icon" name={`Axis, smoothing, files of ${of.name}`} label={<Icon name="more" />}>
    {(close) => <Panel {...of} close={close} />}
  </Menu>
);
