/** How far an answer has come that reads many runs: asked for after a second of waiting, and then twice a second. */

import { useEffect, useState } from "preact/hooks";
import { amount, count } from "../data/numbers.ts";
import { source } from "../state/here.ts";

const EVERY = 500; // ms
const AT_FIRST = 800; // ms, after those that pass before anything is said

export function Reading() {
  const [{ done, of }, set] = useState({ done: 0, of: 0 });
  useEffect(() => {
    let gone = false;
    let timer = setTimeout(look, AT_FIRST);
    function look(): void {
      source.reading().then(
        (now) => {
          if (gone) return;
          if (now.of > 1) set(now);
          timer = setTimeout(look, EVERY);
        },
        () => undefined, // the banner says that the server is away
      );
    }
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, []);
  return of > 0 ? (
    <span class="soft">
      {count(done)} of {amount(of, "run")}
    </span>
  ) : null;
}
