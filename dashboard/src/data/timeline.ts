/** The timeline as the server sends it (spans as arrays) and as the page draws it. */

import type { Timeline } from "../api/names.ts";
import type { TimelineAnswer } from "../api/schema.ts";

export function timelineOf(sent: TimelineAnswer): Timeline {
  const { since, until, first, last } = sent;
  return {
    ...sent,
    since: since ?? 0,
    until: until ?? 0,
    first: first ?? 0,
    last: last ?? 0,
    spans: sent.spans.map(([lane, depth, name, start, end, merged]) => ({ lane, depth, name, start, end, merged })),
  };
}
