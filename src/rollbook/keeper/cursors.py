"""The saved progress of a sink: cursor, output position and memory in one file, replaced as a whole.

The three are saved together, and at start the output is cut back to the position. So a keeper that is killed between a
write and its save neither loses nor repeats rows in a file sink.
"""

from __future__ import annotations

import os

from rollbook.keeper.own_files import keeper_folder
from rollbook.system.files import make_folders, read_json, write_json
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def cursor_path(run_folder: str, name: str) -> str:
    """data/keeper/cursors/<sink>.json."""
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in name) or "sink"
    return os.path.join(keeper_folder(run_folder), "cursors", f"{safe}.json")


class SavedCursor:
    """The saved state of one sink.

    Attributes:
      cursor: {writer: {lane: last sequence number delivered}}.
      position: output file -> length, None for sinks without one.
      state: the memory of sink and filters, None if they have none.
      rows, refused: rows delivered, and values left out because the sink does not accept their kind.
      is_old: it was loaded from a file.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        saved = read_json(path) if path is not None else {}
        self.is_old = bool(saved)
        self.cursor = as_cursor(saved.get("cursor"))
        position, state = saved.get("position"), saved.get("state")
        self.position: dict[str, int] | None = position if isinstance(position, dict) else None
        self.state: dict[str, Any] | None = state if isinstance(state, dict) else None
        self.rows, self.refused = _as_count(saved.get("rows")), _as_count(saved.get("refused"))

    def save(self) -> None:
        """Replace the file.

        Raises:
          OSError: no space, no permission; the old one is still there.
        """
        if self.path is None:
            return
        as_text = {writer: {str(lane): seq for lane, seq in lanes.items()} for writer, lanes in self.cursor.items()}
        data = {
            "cursor": as_text,
            "position": self.position,
            "state": self.state,
            "rows": self.rows,
            "refused": self.refused,
        }
        with tolerating(FileNotFoundError):
            write_json(self.path, data)
            return
        folder = os.path.dirname(self.path)
        make_folders(folder, inside=os.path.dirname(folder))
        write_json(self.path, data)


def as_cursor(saved: object) -> dict[str, dict[int, int]]:
    """{writer: {lane: last seq}} from the content of a file; malformed entries are left out."""
    if not isinstance(saved, dict):
        return {}
    return {
        str(writer): {int(lane): seq for lane, seq in lanes.items() if str(lane).isdigit() and type(seq) is int}
        for writer, lanes in saved.items()
        if isinstance(lanes, dict)
    }


def _as_count(saved: object) -> int:
    return saved if type(saved) is int and saved >= 0 else 0
