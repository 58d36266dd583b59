/** How all charts are drawn: the x-axis, groups, smoothing, y. */

import { kindNamed } from "../../charts/registry.ts";
import { lazy } from "../../parts/lazy.tsx";
import { Menu } from "../../parts/Menu.tsx";
import { axisName } from "./charts.ts";
import * as view from "./view.ts";

const StatisticPanel = lazy(() => import("./later.ts").then((m) => m.StatisticPanel));
const SmoothingPanel = lazy(() => import("./later.ts").then((m) => m.SmoothingPanel));
const XPanel = lazy(() => import("./later.ts").then((m) => m.XPanel));
const YPanel = lazy(() => import("./later.ts").then((m) => m.YPanel));

export function Controls() {
  return (
    <>
      <Menu
        id="pick-x"
        what="x"
        kbd="x"
        label={
          <b>
            {axisName.value === "" ? "…" : axisName.value}
            {view.xLog.value ? ", log" : ""}
          </b>
        }
      >
        {(close) => <XPanel close={close} />}
      </Menu>
      <Menu what="groups as" label={<b>{view.STATISTICS[view.statistic.value]}</b>}>
        {(close) => <StatisticPanel close={close} />}
      </Menu>
      <Menu
        id="pick-s"
        what="smoothing"
        kbd="s"
        plain
        label={<b>{view.smoothing.value === 0 ? "off" : view.smoothing.value.toFixed(2)}</b>}
      >
        {() => <SmoothingPanel />}
      </Menu>
      <Menu
        id="pick-y"
        what="y"
        class="btn hide-s"
        label={
          <b>
            {view.draw.value === "curves" ? "" : `${kindNamed(view.draw.value).name}, `}
            {view.yLog.value ? "log, " : ""}
            {view.withOutliers.value ? "all values" : "without outliers"}
          </b>
        }
      >
        {() => <YPanel />}
      </Menu>
    </>
  );
}
