/** What was not committed when the run began, as `git diff` prints it. */

import { amount } from "../../data/numbers.ts";
import { Copy } from "../../parts/CopyLink.tsx";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";

const KINDS: Record<string, string> = { "+": "added", "-": "gone", "@": "soft" };
const MOST = 2_000; // lines; the file has the others

export function Patch({ run }: { run: string }) {
  const found = useAnswer(`${run} patch`, () => source.patch(run)).value;
  if (!found || (found.text === "" && found.files_untracked === 0 && found.left_out.length === 0)) return null;
  const lines = found.text.split("\n");
  const unknown = found.untracked.join(", ");
  return (
    <section class="card c12">
      <header>
        <h2>Uncommitted changes</h2>
        <span class="grow" />
        {found.text !== "" && <Copy text={found.text} what="the patch" />}
      </header>
      {found.text !== "" && (
        <div class="log logbox in patch" tabIndex={0} role="region" aria-label="The patch">
          {lines.slice(0, MOST).map((line, i) => (
            <div key={i} class={/^(diff |\+\+\+ |--- )/.test(line) ? "file" : (KINDS[line.slice(0, 1)] ?? "")}>
              {line}
            </div>
          ))}
        </div>
      )}
      {lines.length > MOST && (
        <p class="soft pad">{`${found.file} among the files has all ${amount(lines.length, "line")}.`}</p>
      )}
      {found.left_out.length > 0 && <p class="soft pad">{`Too large to be kept: ${found.left_out.join(", ")}`}</p>}
      {found.files_untracked > 0 && (
        <p class="soft pad">{`${amount(found.files_untracked, "file")} unknown to git: ${unknown}`}</p>
      )}
    </section>
  );
}
