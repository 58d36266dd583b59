/** The pages: one line each. The first is part of the first load, the others come when they are opened. */

import type { ComponentType } from "preact";
import type { IconName } from "../parts/Icon.tsx";

export type PageId = "runs";

export interface Page {
  name: string;
  question: string;
  icon: IconName | null;
  load: () => Promise<ComponentType>;
}

export const PAGES: Record<PageId, Page> = {
  runs: { name: "Runs", question: "How is training going?", icon: "runs", load: () => import("./runs/Runs.tsx").then((m) => m.Runs) },
};

export const isPage = (name: string): name is PageId => Object.hasOwn(PAGES, name);
