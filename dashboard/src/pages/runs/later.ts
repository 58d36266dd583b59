/** What the page of runs shows when a menu is opened: one file, which comes behind the first curves. */

export { BoardPanel } from "./BoardPanel.tsx";
export { ColumnPanel } from "./ColumnPanel.tsx";
export { ColorPanel, GroupPanel } from "./SettingPanels.tsx";
export { RowPanel } from "./RowPanel.tsx";
