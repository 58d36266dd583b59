/** The button with which a person says what runs of other tools are. */

import { amount } from "../../data/numbers.ts";
import { lazy } from "../../parts/lazy.tsx";
import { Menu } from "../../parts/Menu.tsx";
import { hello, source } from "../../state/here.ts";

const LabelPanel = lazy(() => import("./later.ts").then((m) => m.LabelPanel));

export function Label({ runs }: { runs: string[] }) {
  if (!hello.value?.labels || !hello.value.writable || !source.live || runs.length === 0) return null;
  return (
    <Menu id="label-runs" plain label="Label…" name={`Label ${amount(runs.length, "run")}: say what they are`}>
      {() => <LabelPanel runs={runs} />}
    </Menu>
  );
}
