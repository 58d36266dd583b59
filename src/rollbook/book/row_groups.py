"""The rows of one table, a row group at a time: for work whose memory must not grow with the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollbook.book.read_context import Context
from rollbook.errors import Damaged
from rollbook.schema.manifest import Attempts
from rollbook.storage import BadPiece, Pieces, RunFiles, identity

RowGroup: TypeAlias = tuple[int, int]
"""A row group: the number of its piece, and its own number in it."""

Taker: TypeAlias = Callable[[RowGroup, pa.Table, "npt.NDArray[np.bool_] | None", str], None]


class RowGroups:
    """The row groups of a table: sealed parts have several, a piece of the journal is one.

    Args:
      files: the files of the run.
      table: which table.
      attempts: which attempts of the run; see `Book.metrics`.
      context: makes what `Book.context` returns for pieces.
    Attributes:
      damaged: path -> how many reads of a damaged file were refused by `read`; 0: it was left out by `scan`.
    """

    def __init__(self, files: RunFiles, table: str, attempts: Attempts, context: Callable[[Pieces], Context]) -> None:
        self._files, self._table, self._attempts, self._context = files, table, attempts, context
        self._pieces: Pieces = []
        self.damaged: dict[str, int] = {}

    def scan(self, columns: Sequence[str], start: Callable[[], Taker]) -> None:
        """Read some columns of all row groups, in order.

        Args:
          start: called first, and again if files moved meanwhile; returns what takes each row group: which it is, its
            rows, which of them are of the chosen attempts (None: all), and the scope of rows without that column.
        """

        def work(tables: dict[str, Pieces]) -> None:
            self._pieces = list(tables[self._table])
            history = self._context(self._pieces).history
            takes_all = history.chooses_all(self._attempts)
            take = start()
            for number, piece in enumerate(self._pieces):
                scope = str((piece.meta.get("constants") or {}).get("scope") or piece.meta.get("scope") or "")
                for group in [None] if piece.part is None else range(len(piece.part.row_groups)):
                    try:
                        rows = piece.read(columns, None if group is None else [group])
                    except BadPiece as bad:
                        self._files.report(bad)
                        self.damaged.setdefault(bad.path, 0)
                        continue
                    chosen = None if takes_all else history.chosen(identity(rows, piece.meta), self._attempts)
                    take((number, group or 0), rows, chosen, scope)

        self._files.read([self._table], work)

    def read(self, group: RowGroup) -> tuple[pa.Table, set[str]]:
        """All columns of a row group, and which of them hold JSON.

        Raises:
          Damaged: its file has become unreadable; it is counted in `damaged`.
          FileNotFoundError: it was merged into another file; `scan` again.
        """
        piece = self._pieces[group[0]]
        try:
            rows = piece.read(None, None if piece.part is None else [group[1]])
        except BadPiece as bad:
            self._files.report(bad)
            self.damaged[bad.path] = self.damaged.get(bad.path, 0) + 1
            raise Damaged(f"{bad.path} is damaged: {bad}") from None
        fields = piece.meta.get("fields") or {}
        return rows, {name for name, more in fields.items() if more.get("rollbook") == "json"}
