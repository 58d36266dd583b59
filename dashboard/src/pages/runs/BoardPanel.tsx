/** Boards: views with a name, saved beside the runs; one of them may be what the page opens with. */

import { useState } from "preact/hooks";
import type { Board } from "../../api/names.ts";
import { Icon } from "../../parts/Icon.tsx";
import { Choice } from "../../parts/Menu.tsx";
import { Failure } from "../../parts/Say.tsx";
import { address, say } from "../../state/address.ts";
import { hello, source } from "../../state/here.ts";
import { refusal, type Refusal } from "../../state/source.ts";
import * as view from "./view.ts";

export function BoardPanel({ close }: { close: () => void }) {
  const [boards, setBoards] = useState<Board[] | null>(null);
  const [error, setError] = useState<Refusal | null>(null);
  const [name, setName] = useState(view.board.value);
  const failed = (why: unknown): void => setError(refusal(why));
  const read = (): void => void source.boards().then((answer) => setBoards(answer.boards), failed);
  useState(read);
  const save = (event: Event): void => {
    event.preventDefault();
    const words = address.peek().words;
    const state = Object.fromEntries(
      view.BOARD_WORDS.map((word): [string, string] => [word, words.get(word) ?? ""]).filter(([, v]) => v !== ""),
    );
    source.saveBoard({ name, state }).then(() => {
      say({ board: name });
      close();
    }, failed);
  };
  const show = (board: Pick<Board, "name" | "state">): void => {
    const words = Object.fromEntries(
      view.BOARD_WORDS.map((word): [string, string] => [word, String(board.state[word] ?? "")]),
    );
    say({ ...words, board: board.name }, true);
    close();
  };
  const mayEdit = source.live && hello.value?.writable !== false;
  return (
    <div class="picker">
      {error && <Failure error={error} />}
      {view.board.value !== "" && <Choice onChoose={() => show({ name: "", state: {} })}>No board</Choice>}
      {(boards ?? []).map((board) => (
        <div class="pair" key={board.name}>
          <Choice chosen={board.name === view.board.value} onChoose={() => show(board)}>
            {board.name}
          </Choice>
          {mayEdit && (
            <>
              <button
                class="btn bare icon"
                type="button"
                aria-pressed={board.first === true}
                aria-label={`Open the page with the board ${board.name}`}
                title="the page opens with it"
                onClick={() => void source.saveBoard({ ...board, first: board.first !== true }).then(read, failed)}
              >
                <Icon name="pin" />
              </button>
              {board.saved === false ? null : (
                <button
                  class="btn bare icon"
                  type="button"
                  aria-label={`Remove the board ${board.name}`}
                  onClick={() => void source.removeBoard(board.name).then(read, failed)}
                >
                  <Icon name="close" />
                </button>
              )}
            </>
          )}
        </div>
      ))}
      {boards?.length === 0 && <p class="soft pad">A board keeps this view under a name, beside the runs.</p>}
      {mayEdit && (
        <form class="words" onSubmit={save}>
          <label>
            name <input required value={name} onInput={(event) => setName(event.currentTarget.value)} />
          </label>
          <button class="btn" type="submit">
            Save this view
          </button>
        </form>
      )}
    </div>
  );
}
