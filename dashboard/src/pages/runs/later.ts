/** What the page of runs shows when a menu is opened: one file, which comes behind the first view. */

export { AddPanel } from "./AddPanel.tsx";
export { BoardPanel } from "./BoardPanel.tsx";
export { BulkPanel } from "./BulkPanel.tsx";
export { ColumnPanel } from "./ColumnPanel.tsx";
export { SmoothingPanel, StatisticPanel, XPanel, YPanel } from "./ControlPanels.tsx";
export { LabelPanel } from "./LabelPanel.tsx";
export { NoMetric } from "./NoMetric.tsx";
export { ColorPanel, GroupPanel } from "./SettingPanels.tsx";
export { NoRuns, Unreadable } from "./NoRuns.tsx";
export { RowPanel } from "./RowPanel.tsx";
