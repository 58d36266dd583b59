/** What is looked at, as the address has it. */

import { say, word } from "../../state/address.ts";

/** The colours of tokens; the turn that keys have reached; the rollout beside it; whether it has the whole window. */
export const [heatWord, turnWord, besideWord, wideWord] = [word("heat"), word("turn"), word("diff"), word("open")];

/** Opens a rollout; what was looked at in the one before is left. */
export const openRollout = (id: string, push = false): void => say({ row: id, turn: "", diff: "" }, push);
