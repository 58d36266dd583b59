/** The one run that a page is about: the one of the address, or the newest. */

import { useEffect, useState } from "preact/hooks";
import type { RunDetail } from "../api/names.ts";
import { say, word } from "./address.ts";
import { useAnswer, type Answer } from "./answer.ts";
import { source } from "./here.ts";
import { hear, watch } from "./live.ts";

const chosen = word("run");

/** The run that is open on this page, and what is known of it; `run` is null while that is being found out. */
export function useRun(table = ""): { run: string | null; detail: Answer<RunDetail>; none: boolean } {
  const said = chosen.value;
  const newest = useAnswer(said === "" ? "newest" : null, () => source.newest(table));
  const first = newest.value ?? "";
  useEffect(() => {
    if (said === "" && first !== "") say({ run: first });
  }, [said, first]);
  const run = said !== "" ? said : first !== "" ? first : null;
  const detail = useAnswer(run, () => source.run(run as string));
  useEffect(
    () =>
      run === null
        ? undefined
        : hear("status", (push) => {
            if (push.run === run) detail.again();
          }),
    [run],
  );
  return { run, detail, none: newest.value !== null && said === "" && first === "" };
}

/** Counts up when the run has new rows in one of `tables` (null: in any), at most once in `every` ms. */
export function useNews(run: string | null, tables: readonly string[] | null, every = 2000): number {
  const [news, setNews] = useState(0);
  useEffect(() => {
    if (run === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stops = [
      watch(`run:${run}`),
      hear("run", (push) => {
        const fits =
          push.run === run &&
          (tables === null || push.tables === null || push.tables.some((table) => tables.includes(table)));
        if (fits)
          timer ??= setTimeout(() => {
            timer = undefined;
            setNews((n) => n + 1);
          }, every);
      }),
    ];
    return () => {
      clearTimeout(timer);
      stops.forEach((stop) => stop());
    };
  }, [run]);
  return news;
}
