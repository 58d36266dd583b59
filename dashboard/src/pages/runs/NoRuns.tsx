/** What stands where no row of the table can. */

import { count } from "../../data/numbers.ts";
import { Menu } from "../../parts/Menu.tsx";
import { Empty } from "../../parts/Say.tsx";
import { say } from "../../state/address.ts";
import { hello } from "../../state/here.ts";
import { table } from "./table.ts";
import { short } from "./view.ts";

export function NoRuns() {
  const answer = table.answer.value;
  if (answer && answer.runs > 0) {
    return (
      <Empty title={`No run of ${count(answer.runs)} fits`}>
        {answer.did_you_mean !== null && <p>{answer.did_you_mean}</p>}
        {(answer.conditions ?? []).map((f) => (
          <button key={f} class="btn" type="button" onClick={() => say({ f, q: "" })}>
            Runs with {short(f)}
          </button>
        ))}
        <button class="btn" type="button" onClick={() => say({ f: "", q: "" })}>
          Clear filter <kbd>Esc</kbd>
        </button>
      </Empty>
    );
  }
  if (answer && (answer.binned ?? 0) > 0) {
    return (
      <Empty
        title={`All runs of ${hello.value?.title ?? "this folder"} are in the bin: ${count(answer.binned ?? 0)}`}
        code={`rollbook rm --bin --dir ${answer.bin_of}\nrollbook rm --restore ID --dir ${answer.bin_of}`}
      />
    );
  }
  return (
    <Empty
      title={`No runs in ${hello.value?.title ?? "this folder"} yet`}
      code={'run = rollbook.init("cartpole", "ppo")\nrun.log({"train/return": r}, env_step=step)\nrun.finish()'}
      after={
        <p>
          Or watch an example learn: <code>rollbook demo</code>
        </p>
      }
    >
      <p>This page fills by itself when one starts. Three lines in your training script:</p>
    </Empty>
  );
}

/** Folders that hold a run.json which says no run: named, with what to do. */
export function Unreadable() {
  const { unreadable = [], unreadable_total: all = 0 } = table.answer.value ?? {};
  return (
    <Menu plain class="link lost" label={`${count(all)} cannot be read`}>
      {() => (
        <div class="pad words unread">
          {unreadable.map((why) => (
            <p key={why}>{why}</p>
          ))}
          {all > unreadable.length && <p class="soft">and {count(all - unreadable.length)} more</p>}
        </div>
      )}
    </Menu>
  );
}
