import { useState } from "preact/hooks";
import type { Obj } from "../../api/names.ts";
import { amount, bytes, plain, value } from "../../data/numbers.ts";
import { Middle } from "../../parts/Middle.tsx";
import { MiniTable } from "../../parts/MiniTable.tsx";
import { Answered } from "../../parts/Say.tsx";
import { useAnswer } from "../../state/answer.ts";
import { source } from "../../state/here.ts";

/** The files of a run, to download; its checkpoints first. */
export function Files({ run }: { run: string }) {
  const answer = useAnswer(`${run} files`, () => source.files(run));
  const [all, setAll] = useState(false);
  const about = (row: Obj | undefined): string =>
    row === undefined
      ? ""
      : [
          typeof row["score"] === "number" ? `score ${value(row["score"])}` : "",
          row["is_best"] === true ? "best" : "",
          row["kept"] === false ? "removed since" : "",
        ]
          .filter((text) => text !== "")
          .join(", ");
  return (
    <section class="card filelist c4">
      <header>
        <h2>Files and checkpoints</h2>
        <span class="grow" />
        <span class="soft">{answer.value ? bytes(answer.value.bytes) : ""}</span>
      </header>
      <Answered of={answer} what="files">
        {(found) => {
          const hidden = found.files.filter((file) => file.kind === "data").length;
          const files = found.files
            .filter((file) => all || file.kind !== "data")
            .sort(
              (a, b) =>
                Number(b.kind === "checkpoint") - Number(a.kind === "checkpoint") || a.path.localeCompare(b.path),
            );
          return (
            <>
              <MiniTable
                label="Files"
                columns={[
                  { id: "path", head: "file" },
                  { id: "kind", head: "what" },
                  { id: "bytes", head: "size", number: true },
                ]}
                rows={files.slice(0, 200)}
                cell={(file, id) => {
                  if (id === "path")
                    return (
                      <a class="mono" title={file.path} href={source.fileAddress(run, file.path)} download>
                        <Middle text={file.path} tail={14} />
                      </a>
                    );
                  if (id === "kind")
                    return (
                      <span class="soft">
                        {file.kind}{" "}
                        {about(
                          found.checkpoints.find(
                            (row) => plain(row["path"]).endsWith(file.path) && file.kind === "checkpoint",
                          ),
                        )}
                      </span>
                    );
                  return bytes(file.bytes);
                }}
              />
              {hidden > 0 && (
                <p class="pad">
                  <button class="link" type="button" onClick={() => setAll(!all)}>
                    {all ? "Fold" : "Show"} {amount(hidden, "file")} of tables
                  </button>
                </p>
              )}
              {(found.truncated || files.length > 200) && (
                <p class="soft pad">There are more files: they lie in the run's folder.</p>
              )}
            </>
          );
        }}
      </Answered>
    </section>
  );
}
