"""The checkpoints of a run in its effective history: which ones are kept, the best, the last, and where one was saved.

The table has one row when a checkpoint is saved, and another (`kept` = false) when it is deleted or its file is
overwritten. The best one is determined on reading, because a row cannot know what comes after it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rollbook.errors import UnknownKey, did_you_mean
from rollbook.schema import source
from rollbook.system.brief import brief
from rollbook.system.files import exists
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@brief
@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """One checkpoint that is still kept.

    Attributes:
      id: unique in the run. path: its file or folder, absolute.
      score: as given, None without one. is_best: whether no other kept checkpoint has a better score.
      clocks: the clocks when it was saved. attempt: the attempt that saved it. time: unix s.
      format: "ckpt", "torch", "custom" (a function of the user wrote it) or "external" (registered).
    """

    id: str
    path: Path
    score: float | None
    is_best: bool
    clocks: dict[str, int]
    attempt: int
    time: float
    format: str


class CheckpointHistory:
    """The checkpoints of a run in its effective history.

    Args:
      rows: of the table `checkpoints` as dicts, oldest first, with `time_ns` (unix ns) instead of `time`.
      folder: the run's folder.
    """

    def __init__(self, rows: list[dict[str, Any]], folder: Path) -> None:
        self.rows, self._folder = rows, folder

    @property
    def kept(self) -> dict[str, Mapping[str, Any]]:
        """Kept checkpoints by id, oldest first."""
        return kept_checkpoints(self.rows)

    def statuses(self) -> dict[str, str]:
        """Of each checkpoint by id: "kept"; "deleted" by rollbook; "missing": its file is gone."""
        kept, present = self.kept, self._present
        saved = dict.fromkeys(str(row["checkpoint_id"]) for row in self.rows)
        return {name: "kept" if name in present else "missing" if name in kept else "deleted" for name in saved}

    def file_of(self, row: Mapping[str, object]) -> Path:
        """The file or folder of a checkpoint: in the run's folder, unless it was registered from elsewhere."""
        path = Path(str(row["path"]))
        return path if path.is_absolute() else self._folder / path

    def choose(self, which: str) -> Mapping[str, Any] | None:
        """The row of the checkpoint for "last", "best" or an id; None if there is none.

        Skips checkpoints that were deleted, by `keep` or by hand.
        """
        present = self._present
        if which in present:
            return present[which]
        if which == "best":
            best = best_of(present)
            return present[best] if best is not None else None
        return list(present.values())[-1] if which == "last" and present else None

    def before(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The row of the checkpoint before another one; None if that is the first."""
        rows = list(self._present.values())
        index = next((i for i, each in enumerate(rows) if each["checkpoint_id"] == row["checkpoint_id"]), 0)
        return rows[index - 1] if index else None

    @property
    def _present(self) -> dict[str, Mapping[str, Any]]:
        """Kept checkpoints with a file, by id, oldest first."""
        return {identity: row for identity, row in self.kept.items() if row.get("path") and self._is_there(row)}

    def find(self, which: str, clocks: Iterable[str]) -> SavedCheckpoint:
        """See `Book.checkpoint`."""
        row = self.choose(which)
        if row is None:
            present = list(self.kept)
            words = "no checkpoint that is still there has a score" if which == "best" and present else "there is none"
            raise UnknownKey(f"checkpoint({which!r}): {words}.", did_you_mean(which, ["best", "last", *present]))
        source.fetch(self._folder, [_name_of(row)])
        best = self.choose("best")
        return SavedCheckpoint(
            id=str(row["checkpoint_id"]),
            path=self.file_of(row).absolute(),
            score=score_of(row),
            is_best=best is not None and best["checkpoint_id"] == row["checkpoint_id"],
            clocks={name: int(row[name]) for name in clocks if row.get(name) is not None},
            attempt=int(row["attempt"]),
            time=row["time_ns"] / 1e9,
            format=str(row.get("format") or ""),
        )

    def _is_there(self, row: Mapping[str, object]) -> bool:
        return exists(self.file_of(row)) or source.has(self._folder, _name_of(row))


def kept_checkpoints(rows: Iterable[Mapping[str, object]]) -> dict[str, Mapping[str, Any]]:
    """Kept checkpoints by id, oldest first: those without a later row."""
    present: dict[str, Mapping[str, object]] = {}
    for row in rows:
        identity = str(row["checkpoint_id"])
        if row.get("kept") is False:
            present.pop(identity, None)
        else:
            present[identity] = row
    return present


def _name_of(row: Mapping[str, object]) -> str:
    """Its name in a run's folder, as used in a remote."""
    return str(row["path"]).replace(os.sep, "/")


def best_of(checkpoints: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The id with the best score; of equal ones the earlier. The newest checkpoint defines whether higher is better."""
    scored = {identity: row for identity, row in checkpoints.items() if _is_score(row.get("score"))}
    if not scored:
        return None
    sign = -1.0 if list(scored.values())[-1].get("higher_is_better") is False else 1.0
    return max(scored, key=lambda identity: sign * float(scored[identity]["score"]))


def score_of(row: Mapping[str, object]) -> float | None:
    """The score of a checkpoint; None without one."""
    score = row.get("score")
    return float(score) if isinstance(score, (int, float)) and _is_score(score) else None


def _is_score(value: object) -> bool:
    return isinstance(value, (int, float)) and value == value  # NaN is not a score


class CheckpointSave:
    """Where a checkpoint was saved, from its row of a `CheckpointHistory`.

    Attributes:
      attempt, writer: who saved it.
      lanes: lane -> the last number before it, its own row included, so that a second restore finds it; {}: damaged.
      row: lane -> number of its own row.
      moment, written: unix ns when the save began, and when it ended and the row was written.
      clocks: its readings. through: the readings up to which later rows stay, too.
    """

    __slots__ = ("attempt", "clocks", "lanes", "moment", "row", "through", "writer", "written")

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.attempt, self.writer = int(row["attempt"]), str(row["writer"])
        self.lanes: dict[int, int] = {}
        is_known = False
        with tolerating(TypeError, ValueError, AttributeError, KeyError):
            lanes = _object_in(row.get("positions"))[self.writer]  # {}: nothing was written before
            self.lanes, is_known = {int(lane): int(seq) for lane, seq in lanes.items()}, True
        self.row: dict[int, int] = {}
        if row.get("lane") is not None and row.get("seq") is not None:
            self.row = {int(row["lane"]): int(row["seq"])}
        if is_known:
            self.lanes |= {lane: max(self.lanes.get(lane, 0), seq) for lane, seq in self.row.items()}
        self.written = int(row["time_ns"])
        self.moment = self.written - int(float(row.get("seconds") or 0.0) * 1e9)
        self.clocks = {name: cell for name, cell in row.items() if type(cell) is int}
        self.through = {name: n for name, n in _object_in(row.get("through")).items() if type(n) is int}


def counts_in(checkpoint: Mapping[str, object]) -> list[tuple[str, object, object]]:
    """(scope, None, environment steps counted) of each scope when a checkpoint was saved; see `Book.episode_counts`."""
    return [(scope, None, n) for scope, n in _object_in(checkpoint.get("counts")).items() if type(n) is int]


def _object_in(text: object) -> dict[str, Any]:
    """A JSON object of a row; {} if it is not an object."""
    with tolerating(ValueError):
        read = json.loads(str(text or "{}"))
        if isinstance(read, dict):
            return read
    return {}
