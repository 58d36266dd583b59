/** Runs into the bin: what would go is said first, and what went can be brought back. */

import { useState } from "preact/hooks";
import type { Removed } from "../../api/names.ts";
import { amount, bytes } from "../../data/numbers.ts";
import { Choice } from "../../parts/Menu.tsx";
import { Failure } from "../../parts/Say.tsx";
import { source } from "../../state/here.ts";
import { refusal, type Refusal } from "../../state/source.ts";
import { inParts } from "./many.ts";
import { table } from "./table.ts";

type Gone = Pick<Removed, "ids" | "bytes" | "refused">;

export function ToTheBin({ runs }: { runs: string[] }) {
  const [asked, setAsked] = useState<Gone | null>(null);
  const [gone, setGone] = useState<Gone | null>(null);
  const [error, setError] = useState<Refusal | null>(null);
  const failed = (why: unknown): void => setError(refusal(why));
  const remove = async (dry_run: boolean): Promise<Gone> => {
    const parts = await inParts(runs, (some) => source.remove({ runs: some, dry_run }));
    return {
      ids: parts.flatMap(({ ids }) => ids),
      bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
      refused: parts.flatMap(({ refused }) => refused),
    };
  };
  const look = (): void => void remove(true).then(setAsked, failed);
  const move = (): void =>
    void remove(false).then((done) => {
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
