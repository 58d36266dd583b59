/** Rows of the runs table as the server sends them (what is empty is left out) and as the page uses them. */

import type { Cell, GroupRow, Row } from "../api/names.ts";

/** A row as it comes. */
export interface SentRow {
  kind: "section" | "group" | "run";
  id: string;
  name: string;
  run?: string | null;
  project?: string;
  seed?: number | null;
  own?: string;
  group?: string | null;
  status?: string;
  counts?: { [status: string]: number };
  done?: number | null;
  created?: number | null;
  ended?: number | null;
  updated?: number | null;
  host?: string;
  ends_in_nan?: { [column: string]: number };
  tags?: string[];
  notes?: string;
  archived?: boolean;
  attempts?: number;
  x?: string;
  at?: number | null;
  total?: number | null;
  runs?: string[];
  run_count?: number;
  values?: { [name: string]: Cell };
  cells?: { [column: string]: Cell };
  open?: boolean;
  section?: string;
  member_of?: string | null;
  alerts?: number;
  damaged?: string;
}

export function rowOf(sent: SentRow): Row {
  const { id, name } = sent;
  const runs = sent.runs ?? [];
  const counts = sent.counts ?? {};
  const cells = sent.cells ?? {};
  if (sent.kind === "section") {
    return {
      kind: "section",
      id,
      name,
      runs: sent.run_count ?? runs.length,
      live: counts["running"] ?? 0,
      total: sent.values as { [clock: string]: number },
    };
  }
  if (sent.kind === "group") {
    return {
      kind: "group",
      id,
      name,
      runs,
      status: counts,
      values: sent.values ?? {},
      cells: cells as GroupRow["cells"],
      open: sent.open ?? false,
      done: sent.done ?? null,
      x: sent.x ?? "",
      at: sent.at ?? null,
      section: sent.section ?? "",
      nan: sent.ends_in_nan ?? {},
      damaged: sent.damaged ?? "",
    };
  }
  return {
    kind: "run",
    run: sent.run ?? id,
    id,
    name,
    cells,
    nan: sent.ends_in_nan ?? {},
    project: sent.project ?? "",
    seed: sent.seed ?? null,
    own: sent.own ?? "",
    group: sent.group ?? null,
    status: sent.status ?? "",
    created: sent.created ?? 0,
    ended: sent.ended ?? null,
    updated: sent.updated ?? 0,
    host: sent.host ?? "",
    tags: sent.tags ?? [],
    notes: sent.notes ?? "",
    archived: sent.archived ?? false,
    attempts: sent.attempts ?? 1,
    x: sent.x ?? "",
    at: sent.at ?? null,
    total: sent.total ?? null,
    member_of: sent.member_of ?? null,
    alerts: sent.alerts ?? 0,
    damaged: sent.damaged ?? "",
  };
}
