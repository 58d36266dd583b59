/** What is looked at, as the address has it. */

import { signal } from "@preact/signals";
import { shown } from "../../data/diff.ts";
import { say, word } from "../../state/address.ts";

/** The colours of tokens; the turn that keys have reached; the rollout beside it; whether it has the whole window. */
export const [heatWord, turnWord, besideWord, wideWord] = [word("heat"), word("turn"), word("diff"), word("open")];

/** Whether the run that is looked at goes on. */
export const goesOn = signal(true);

/** A fate, to be shown: of a run that has ended, none will come any more. */
export const fateWords = (fate: string): string => (fate === "no fate yet" && !goesOn.value ? "no fate" : shown(fate));

/** Opens a rollout; what was looked at in the one before is left. */
export const openRollout = (id: string, push = false): void => say({ row: id, turn: "", diff: "" }, push);
