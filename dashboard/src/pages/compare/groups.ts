/** The groups that are compared: what the table of runs has drawn, and on what the page opens where nobody chose. */

import { computed, effect } from "@preact/signals";
import type { GroupOf } from "../../api/names.ts";
import {
  drawFirst,
  drawn,
  entities,
  MOST_COMPARED,
  projects,
  startTable,
  table,
  unchosen,
  type Project,
} from "../runs/table.ts";
import { addressOf, joined, parse, say } from "../../state/address.ts";
import { shortNames } from "../../data/names.ts";
import * as view from "../runs/view.ts";

/** Of what is drawn, the groups that are compared; the others, in the order of the table, are named as left out. */
export const compared = computed(() => entities.value.slice(0, MOST_COMPARED));
export const leftOut = computed(() => entities.value.length - compared.value.length);
export const groups = computed<GroupOf[]>(() =>
  compared.value.map((entity) => ({ name: entity.name, runs: entity.runs.map((member) => member.run) })),
);
const MOST_LETTERS = 24; // of a name in a table, and in the sentence above all
const MOST_IN_SENTENCE = 44;
/** A table with a column for each of more groups takes the whole width. */
export const MOST_BESIDE = 5;

const colors = computed(() => new Map(compared.value.map((entity) => [entity.name, entity.color])));
const shortIn = (letters: number) =>
  computed(() => {
    const names = compared.value.map(({ name }) => name);
    const told = shortNames(names, letters, true);
    return new Map(names.map((name, i) => [name, told[i] as string]));
  });
const [short, long] = [shortIn(MOST_LETTERS), shortIn(MOST_IN_SENTENCE)];
/** A group as the others beside it let it be called. */
export const shortOf = (name: string): string => short.value.get(name) ?? name;
export const longOf = (name: string): string => long.value.get(name) ?? name;
export const colorOfGroup = (name: string): number => colors.value.get(name) ?? 0;

const isDrawn = (id: string): boolean => drawn.value.some((one) => one.id === id);
/** The projects whose groups are drawn. */
export const drawnProjects = (): Project[] => projects().filter(({ ids }) => ids.some(isDrawn));
/** Their groups that are not. */
export const besides = (): string[] => drawnProjects().flatMap(({ ids }) => ids.filter((id) => !isDrawn(id)));
/** The newest project with two groups, none of them drawn. */
export const nextProject = (): Project | undefined =>
  projects().find(({ ids }) => ids.length > 1 && !ids.some(isDrawn));

/** What the page of runs has drawn, if that is several: chosen there, or the first rows of its filter. */
function takeDrawn(): void {
  if (view.drawn.peek().length > 0) return;
  const left = parse(addressOf("runs")).words;
  const first = unchosen().length < 2 ? [] : unchosen();
  const show = left.get("show") ?? joined(first.map(({ id, color }) => `${id}.${color}`));
  if (show !== "") say({ show, g: left.get("g") ?? "" });
}

/**
 * Asks for the runs. Where nobody chose and the newest project has one group, the newest with two is drawn instead:
 * when the page opens, and never later.
 */
export function open(): () => void {
  takeDrawn();
  const stop = startTable();
  const look = effect(() => {
    if (table.answer.value === null) return;
    queueMicrotask(() => look());
    const next = nextProject();
    if (next && view.drawn.peek().length === 0 && drawn.peek().length < 2) drawFirst(next.ids);
  });
  return () => {
    look();
    stop();
  };
}
