import { Menu } from "../../parts/Menu.tsx";
import { FindRun } from "../../parts/RunPicker.tsx";
import { joined, list, say } from "../../state/address.ts";

const others = list("beside");

/** Adds a run beside the others. */
export function Beside({ now }: { now: readonly string[] }) {
  return (
    <Menu label="+ run" plain>
      {(close) => (
        <FindRun
          name="Find a run to put beside"
          without={now}
          onChoose={(run) => {
            say({ beside: joined([...others.value, run]) }, true);
            close();
          }}
        />
      )}
    </Menu>
  );
}
