/** The groups that are compared: what the table of runs has drawn. */

import { computed } from "@preact/signals";
import type { GroupOf } from "../../api/names.ts";
import { entities } from "../runs/table.ts";

export const groups = computed<GroupOf[]>(() =>
  entities.value.map((entity) => ({ name: entity.name, runs: entity.runs.map((member) => member.run) })),
);
const colors = computed(() => new Map(entities.value.map((entity) => [entity.name, entity.color])));
export const colorOfGroup = (name: string): number => colors.value.get(name) ?? 0;
