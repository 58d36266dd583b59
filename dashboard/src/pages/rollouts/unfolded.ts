/** The list by prompt group: groups that are unfolded, with their rollouts below them. */

import { useEffect, useMemo, useState } from "preact/hooks";
import type { RolloutRow, RolloutsQuery } from "../../api/names.ts";
import { byId, groupKey, unfoldedLines } from "../../data/rollouts.ts";
import type { Lines } from "../../parts/Asked.tsx";
import { source } from "../../state/here.ts";
import type { WindowAnswer, Windows } from "../../state/windows.ts";

/** A line of the list: a group, or a rollout (with its place, in an unfolded group). */
export type Line = RolloutRow & { key?: string; unfolded?: boolean; place?: number };

const MOST = 64;

export function useUnfolded(run: string, query: RolloutsQuery, news: number) {
  const [groups, setGroups] = useState<ReadonlyMap<string, { id: string; rows: RolloutRow[] }>>(new Map());
  const names = [...groups.keys()].join();
  const question = JSON.stringify(query);
  useEffect(() => {
    const stop = new AbortController();
    for (const [key, { id }] of groups) {
      const asked = { ...query, by_group: false, group: id, offset: 0, limit: MOST };
      void source.rollouts(run, asked, stop.signal).then(
        ({ rows }) => {
          const sorted = query.sort?.length ? rows : [...rows].sort((a, b) => byId(a.id, b.id));
          if (!stop.signal.aborted)
            setGroups((now) => (now.has(key) ? new Map([...now, [key, { id, rows: sorted }]]) : now));
        },
        () => undefined, // the list itself says what is wrong
      );
    }
    return () => stop.abort();
  }, [run, names, question, news]);
  const unfold = (line: Line, open = line.unfolded !== true): void =>
    setGroups((now) => {
      const next = new Map(now);
      if (line.key === undefined) return now;
      if (open) next.set(line.key, next.get(line.key) ?? { id: line.id, rows: [] });
      else next.delete(line.key);
      return next;
    });
  const lines = useMemo(
    () =>
      <Answer extends WindowAnswer<Line>>(windows: Windows<Line, Answer>): Lines<Line> => {
        const opened = [...groups].map(([key, { rows }]) => ({
          at: windows.indexOf((row) => groupKey(row) === key),
          n: rows.length,
        }));
        const { total, place } = unfoldedLines(windows.total.value, opened);
        return {
          total,
          row: (i) => {
            const { group, of } = place(i);
            const row = windows.row(group);
            if (row?.group == null) return row;
            const key = groupKey(row);
            if (of === null) return { ...row, key, unfolded: groups.has(key) };
            const own = groups.get(key)?.rows[of];
            return own && { ...own, key, place: of + 1 };
          },
          see: (first, last) => windows.see(place(first).group, place(last).group),
        };
      },
    [groups],
  );
  return { lines, unfold };
}
