"""The checkpoints of a run in its effective history: which ones are kept, the best, and the last.

The table has one row when a checkpoint is saved, and another (`kept` = false) when it is deleted or its file is
overwritten. The best one is determined on reading, because a row cannot know what comes after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.errors import UnknownKey, did_you_mean
from rollbook.ground import source
from rollbook.ground.arrow import from_numpy, to_numpy
from rollbook.ground.brief import brief

__all__ = ["CheckpointHistory", "SavedCheckpoint", "kept_checkpoints", "with_best"]


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
      table: the table `checkpoints`. folder: the run's folder.
    Attributes:
      rows: of the table as dicts, oldest first, with `time_ns` (unix ns) instead of `time`.
    """

    def __init__(self, table: pa.Table, folder: Path) -> None:
        self.rows: list[dict[str, Any]] = []
        self._folder = folder
        if table.num_rows:
            times = to_numpy(table["time"].cast(pa.timestamp("ns", "UTC")))[0].astype(np.int64).tolist()
            plain = table.drop_columns(["time"]).to_pylist()  # Python has no type for ns
            self.rows = [dict(row, time_ns=time_ns) for row, time_ns in zip(plain, times, strict=True)]

    @property
    def kept(self) -> dict[str, Mapping[str, Any]]:
        """Kept checkpoints by id, oldest first."""
        return kept_checkpoints(self.rows)

    def file_of(self, row: Mapping[str, object]) -> Path:
        """The file or folder of a checkpoint: in the run's folder, unless it was registered from elsewhere."""
        path = Path(str(row["path"]))
        return path if path.is_absolute() else self._folder / path

    def choose(self, which: str) -> Mapping[str, Any] | None:
        """The row of the checkpoint for "last", "best" or an id; None if there is none.

        Skips checkpoints that were deleted, by `keep` or by hand.
        """
        present = {identity: row for identity, row in self.kept.items() if row.get("path") and self._is_there(row)}
        if which in present:
            return present[which]
        if which == "best":
            best = _best(present)
            return present[best] if best is not None else None
        return list(present.values())[-1] if which == "last" and present else None

    def find(self, which: str, clocks: Iterable[str]) -> SavedCheckpoint:
        """See `Book.checkpoint`."""
        row = self.choose(which)
        if row is None:
            present = list(self.kept)
            words = "no checkpoint that is still there has a score" if which == "best" and present else "there is none"
            raise UnknownKey(f"checkpoint({which!r}): {words}.{did_you_mean(which, ['best', 'last', *present])}")
        source.fetch(self._folder, [_name_of(row)])
        best = self.choose("best")
        score = row.get("score")
        return SavedCheckpoint(
            id=str(row["checkpoint_id"]),
            path=self.file_of(row).absolute(),
            score=float(score) if isinstance(score, (int, float)) and _is_score(score) else None,
            is_best=best is not None and best["checkpoint_id"] == row["checkpoint_id"],
            clocks={name: int(row[name]) for name in clocks if row.get(name) is not None},
            attempt=int(row["attempt"]),
            time=row["time_ns"] / 1e9,
            format=str(row.get("format") or ""),
        )

    def _is_there(self, row: Mapping[str, object]) -> bool:
        return self.file_of(row).exists() or source.has(self._folder, _name_of(row))


def with_best(table: pa.Table) -> pa.Table:
    """The table with `is_best` true for at most one row: the best checkpoint that is still kept."""
    names = ("checkpoint_id", "score", "kept", "higher_is_better")
    if not table.num_rows or any(name not in table.column_names for name in (*names[:2], "is_best")):
        return table
    cells = {name: table[name].to_pylist() for name in names if name in table.column_names}
    rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    best = _best(kept_checkpoints(rows))
    flags = [best is not None and str(row["checkpoint_id"]) == best and row.get("kept") is not False for row in rows]
    return table.set_column(table.column_names.index("is_best"), "is_best", from_numpy(np.array(flags, dtype=bool)))


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


def _best(checkpoints: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The id with the best score; of equal ones the earlier. The newest checkpoint defines whether higher is better."""
    scored = {identity: row for identity, row in checkpoints.items() if _is_score(row.get("score"))}
    if not scored:
        return None
    sign = -1.0 if list(scored.values())[-1].get("higher_is_better") is False else 1.0
    return max(scored, key=lambda identity: sign * float(scored[identity]["score"]))


def _is_score(value: object) -> bool:
    return isinstance(value, (int, float)) and value == value  # NaN is not a score
