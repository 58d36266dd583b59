/** How a key can be drawn: a component that takes `ChartProps`, and one line here. The first is the default. */

import type { ComponentType } from "preact";
import { lazy } from "../parts/lazy.tsx";
import { Chart, type ChartProps } from "./Chart.tsx";

export interface ChartKind {
  name: string;
  /** What it shows, beside its name in the menu. */
  soft: string;
  Draw: ComponentType<ChartProps>;
}

export const CHARTS: Record<string, ChartKind> = {
  curves: { name: "curves", soft: "over the x-axis", Draw: Chart },
  ends: { name: "last values", soft: "side by side", Draw: lazy(() => import("./Ends.tsx").then((m) => m.Ends)) },
};

export const kindNamed = (name: string): ChartKind =>
  (Object.hasOwn(CHARTS, name) ? CHARTS[name] : CHARTS["curves"]) as ChartKind;
