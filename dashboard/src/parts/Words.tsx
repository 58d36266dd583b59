import { useState } from "preact/hooks";
import type { EditQuery, RunRow } from "../api/names.ts";

/** Name, tags and notes of a run, to be changed where one reads them. */
export function Words({
  row,
  edit,
}: {
  row: Pick<RunRow, "name" | "tags" | "notes">;
  edit: (query: Omit<EditQuery, "runs">) => void;
}) {
  const [name, setName] = useState(row.name);
  const [tags, setTags] = useState(row.tags.join(", "));
  const [notes, setNotes] = useState(row.notes);
  const save = (event: Event): void => {
    event.preventDefault();
    edit({
      set: {
        name,
        notes,
        tags: tags
          .split(",")
          .map((tag) => tag.trim())
          .filter((tag) => tag !== ""),
      },
    });
  };
  return (
    <form class="words" onSubmit={save}>
      <label>
        name <input value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <label>
        tags{" "}
        <input value={tags} placeholder="comma between them" onInput={(event) => setTags(event.currentTarget.value)} />
      </label>
      <label>
        notes <textarea rows={2} value={notes} onInput={(event) => setNotes(event.currentTarget.value)} />
      </label>
      <button class="btn" type="submit">
        Save
      </button>
    </form>
  );
}
