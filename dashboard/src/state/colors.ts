/** The colours of runs and groups: the server says which are kept, and keeps those that the page gives. */

import { signal } from "@preact/signals";
import type { Hello } from "../api/names.ts";
import { Colors, type New } from "../data/colors.ts";
import { source } from "./here.ts";

let waiting: New[] = [];

/** What is drawn at once is kept at once, in one request for what was given and one for what a hand chose. */
async function send(): Promise<void> {
  const all = waiting;
  waiting = [];
  for (const chosen of [false, true]) {
    const some = all.filter((one) => one.chosen === chosen);
    if (some.length === 0) continue;
    const alone = Object.assign({}, ...some.map((one) => one.alone)) as New["alone"];
    const grouped = Object.assign({}, ...some.map((one) => one.grouped)) as New["grouped"];
    // A server that cannot keep them costs nothing: the page remembers them until it is left.
    await source.keepColors({ alone, grouped, chosen }).then(
      (answer) => colors.take(answer.colors),
      () => undefined,
    );
  }
}

export const colors = new Colors((one) => {
  if (waiting.push(one) === 1) queueMicrotask(() => void send());
});

/** Changes when the server has said its colours: lists that stood there before are drawn again. */
const taken = signal(0);
let greeted: () => void = () => undefined;
/** Through when the server has said which colours are kept, or nothing at all. */
export const colorsKnown = new Promise<void>((resolve) => {
  greeted = resolve;
});

export function takeColors(hello: Hello | null): void {
  if (hello !== null) colors.take(hello.colors, hello.writable && source.live);
  taken.value += 1;
  greeted();
}

/** The class of a run's colour where many runs are listed: grey for one that was never drawn, and has none yet. */
export const toneOf = (run: string): string => (void taken.value, `s${colors.ofRun(run) ?? 0}`);

/** The colour of one run, on a page about it. */
export const colorOfRun = (run: string): number => (void taken.value, colors.ofRun(run) ?? 1);
