/** Runs into the bin: what would go is said first, and what went can be brought back. */

import { useState } from "preact/hooks";
import type { Removed } from "../../api/names.ts";
import { amount, bytes } from "../../data/numbers.ts";
import { Choice } from "../../parts/Menu.tsx";
import { Failure } from "../../parts/Say.tsx";
import { source } from "../../state/here.ts";
import { refusal, type Refusal } from "../../state/source.ts";
import { table } from "./table.ts";

export function ToTheBin({ runs }: { runs: string[] }) {
  const [asked, setAsked] = useState<Removed | null>(null);
  const [gone, setGone] = useState<Removed | null>(null);
  const [error, setError] = useState<Refusal | null>(null);
  const failed = (why: unknown): void => setError(refusal(why));
  const look = (): void => void source.remove({ runs, dry_run: true }).then(setAsked, failed);
  const move = (): void =>
    void source.remove({ runs, dry_run: false }).then((done) => {
      setAsked(null);
      setGone(done);
      void table.again();
    }, failed);
  const back = (ids: string[]): void =>
    void source.restore(ids).then(({ refused: [first] }) => {
      setGone(null);
      if (first) failed(new Error(first.why));
      void table.again();
    }, failed);
  const stays = (asked ?? gone)?.refused ?? [];
  return (
    <>
      {error && <Failure error={error} />}
      {asked === null && gone === null && (
        <Choice onChoose={look}>Remove {amount(runs.length, "run")}: what would go?</Choice>
      )}
      {asked !== null && asked.ids.length > 0 && (
        <Choice onChoose={move}>
          Move {amount(asked.ids.length, "run")} ({bytes(asked.bytes)}) to the bin
        </Choice>
      )}
      {gone !== null && (
        <>
          <p class="soft pad" role="status">
            {amount(gone.ids.length, "run")} went to the bin. It is emptied by <code>rollbook rm --empty</code>
          </p>
          {gone.ids.length > 0 && <Choice onChoose={() => back(gone.ids)}>Bring them back</Choice>}
        </>
      )}
      {stays.length > 0 && (
        <p class="soft pad">{`${amount(stays.length, "run")} of these: no. ${stays[0]?.why ?? ""}`}</p>
      )}
    </>
  );
}
