/** The groups that are compared: what the table of runs has drawn. */

import { computed } from "@preact/signals";
import type { GroupOf } from "../../api/names.ts";
import { entities } from "../runs/table.ts";

export const groups = computed<GroupOf[]>(() =>
  entities.value.map((entity) => ({ name: entity.name, runs: entity.runs.map((member) => member.run) })),
);
/** A table with a column for each of more groups takes the whole width. */
export const MOST_BESIDE = 5;

const colors = computed(() => new Map(entities.value.map((entity) => [entity.name, entity.color])));
export const colorOfGroup = (name: string): number => colors.value.get(name) ?? 0;
