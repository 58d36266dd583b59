/** Asking the server from a component: the answer, the refusal, or the wait. */

import { useEffect, useRef, useState } from "preact/hooks";
import { waiting } from "./hands.ts";
import { reborn } from "./live.ts";
import { refusal, type Refusal } from "./source.ts";

export interface Answer<T> {
  value: T | null;
  error: Refusal | null;
  /** True from 200 ms on: below that nothing new is shown. */
  slow: boolean;
  /** The value belongs to an earlier question; the new one is on its way. */
  old: boolean;
  again: () => void;
}

/**
 * Asks whenever `question` changes (null: do not ask). The last value stays until the new one is there, unless `keep`
 * is false.
 */
export function useAnswer<T>(
  question: string | null,
  ask: (signal: AbortSignal) => Promise<T>,
  keep = true,
): Answer<T> {
  const [state, setState] = useState<{ question: string | null; value: T | null; error: Refusal | null }>({
    question: null,
    value: null,
    error: null,
  });
  const [slow, setSlow] = useState(false);
  const [round, setRound] = useState(0);
  const asking = useRef(ask);
  asking.current = ask;
  const life = reborn.value;
  useEffect(() => {
    if (question === null) return;
    const stop = new AbortController();
    const come = waiting();
    const timer = setTimeout(() => setSlow(true), 200);
    asking
      .current(stop.signal)
      .then(
        (value) => !stop.signal.aborted && setState({ question, value, error: null }),
        (error: unknown) =>
          !stop.signal.aborted &&
          setState((old) => ({ question, value: keep ? old.value : null, error: refusal(error) })),
      )
      .finally(() => {
        clearTimeout(timer);
        come();
        if (!stop.signal.aborted) setSlow(false);
      });
    return () => {
      clearTimeout(timer);
      come();
      stop.abort();
    };
  }, [question, round, life]);
  const old = question !== state.question;
  return {
    value: old && !keep ? null : state.value,
    error: old ? null : state.error,
    slow: slow && old,
    old,
    again: () => setRound((n) => n + 1),
  };
}
