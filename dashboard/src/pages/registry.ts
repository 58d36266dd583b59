/** The pages: one line each. The first is part of the first load, the others come when they are opened. */

import type { ComponentType } from "preact";
import type { IconName } from "../parts/Icon.tsx";
import { Runs } from "./runs/Runs.tsx";

export type PageId =
  "runs" | "compare" | "sweep" | "episodes" | "samples" | "rollouts" | "timings" | "health" | "run" | "media" | "sql";

export interface Page {
  name: string;
  question: string;
  icon: IconName | null;
  load: () => Promise<ComponentType>;
}

export const PAGES: Record<PageId, Page> = {
  runs: { name: "Runs", question: "How is training going?", icon: "runs", load: () => Promise.resolve(Runs) },
  compare: {
    name: "Compare",
    question: "Which is better, and is that certain?",
    icon: "compare",
    load: () => import("./compare/Compare.tsx").then((m) => m.Compare),
  },
  sweep: {
    name: "Sweep",
    question: "Which setting matters?",
    icon: null,
    load: () => import("./sweep/Sweep.tsx").then((m) => m.Sweep),
  },
  episodes: {
    name: "Episodes",
    question: "What does the agent do?",
    icon: "episodes",
    load: () => import("./episodes/Episodes.tsx").then((m) => m.Episodes),
  },
  samples: {
    name: "Samples",
    question: "What does it learn from?",
    icon: "samples",
    load: () => import("./samples/Samples.tsx").then((m) => m.Samples),
  },
  rollouts: {
    name: "Rollouts",
    question: "What is the model trained on?",
    icon: "rollouts",
    load: () => import("./rollouts/Rollouts.tsx").then((m) => m.Rollouts),
  },
  timings: {
    name: "Timings",
    question: "Where does the time go?",
    icon: "timings",
    load: () => import("./timings/Timings.tsx").then((m) => m.Timings),
  },
  health: {
    name: "Health",
    question: "Is something wrong?",
    icon: "health",
    load: () => import("./health/Health.tsx").then((m) => m.Health),
  },
  run: {
    name: "Run",
    question: "What is it, and how was it started?",
    icon: null,
    load: () => import("./run/Run.tsx").then((m) => m.Run),
  },
  media: {
    name: "Media",
    question: "What was logged besides numbers?",
    icon: null,
    load: () => import("./media/Media.tsx").then((m) => m.Media),
  },
  sql: {
    name: "SQL",
    question: "What else do the tables say?",
    icon: null,
    load: () => import("./sql/Sql.tsx").then((m) => m.Sql),
  },
};

export const isPage = (name: string): name is PageId => Object.hasOwn(PAGES, name);
