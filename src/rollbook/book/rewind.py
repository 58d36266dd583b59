"""The rows of a book for `schema.cuts`: where a run is cut when it goes back, and how far its clocks have come."""

from __future__ import annotations

import numpy as np

from rollbook.book.axis import chosen_rows
from rollbook.journal import last_numbers, list_writers
from rollbook.schema import cuts
from rollbook.schema import run_files as layout
from rollbook.schema.tables import TABLES
from rollbook.storage import Pieces
from rollbook.values.arrow import to_numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from rollbook.book.read_context import Context
    from rollbook.book.table_protocols import StoredRun
    from rollbook.schema.manifest import Cut
    from rollbook.storage import Piece
    from rollbook.values.array_types import NDArray

    T = TypeVar("T")


def cut_at(book: StoredRun, clock: str, value: int) -> tuple[int, Cut, dict[str, int]]:
    """See `Book.cut_at`."""
    return _with_rows(book, lambda rows: cuts.cut_at(rows, clock, value, rows.clocks))


def cut_behind(book: StoredRun, checkpoint: Mapping[str, Any]) -> tuple[int, Cut]:
    """See `Book.cut_behind`."""
    return _with_rows(book, lambda rows: cuts.cut_behind(rows, checkpoint))


def reached(book: StoredRun) -> dict[str, int]:
    """See `Book.reached`."""
    return _with_rows(book, lambda rows: cuts.reached(rows, rows.clocks))


def _with_rows(book: StoredRun, work: Callable[[_Rows], T]) -> T:
    names = [*dict.fromkeys([*TABLES, *layout.table_names(book.path), "marks"])]

    def of_pieces(tables: dict[str, Pieces]) -> T:
        pieces = [(table, piece) for table, own in tables.items() for piece in own]
        return work(_Rows(pieces, book.context([piece for _, piece in pieces], "effective"), book.path))

    return book.files.read(names, of_pieces)


class _Rows:
    """See `cuts.RunRows`."""

    def __init__(self, pieces: list[tuple[str, Piece]], run: Context, path: Any) -> None:
        self._pieces, self._run = pieces, run
        self.clocks = run.clocks
        self.chain, self.mains = run.history.chain, run.main_writers
        self.hosts = {writer: (host.clock, host.time_offset) for writer, host in run.hosts().items()}
        self.ends = {info.id: last_numbers(info) for info in list_writers(path)}

    def lanes(self, clocks: Sequence[str], attempt: int | None = None, but: str = "") -> Iterator[_Lane]:
        for table, piece in self._pieces:
            if attempt is not None and piece.meta.get("attempt") not in (None, attempt):
                continue
            if but and piece.meta.get("writer") == but:
                continue
            more = ("kept",) if table == "checkpoints" and clocks and "kept" in piece.columns else ()
            rows = chosen_rows(piece, (*clocks, *more), self._run)
            if not rows.num_rows:
                continue
            seqs, times = to_numpy(rows["seq"])[0], to_numpy(rows["time"])[0]
            cells = {clock: to_numpy(rows[clock]) for clock in clocks if clock in rows.column_names}
            deleted = np.zeros(len(seqs), dtype=bool)
            if more:
                values, valid = to_numpy(rows["kept"])
                deleted = ~values.astype(bool) & (True if valid is None else valid)
            known = {clock: ~deleted if valid is None else valid & ~deleted for clock, (_, valid) in cells.items()}
            for (number, writer, lane), at in _groups(rows, piece.meta):
                if attempt in (None, number):
                    if not bool(np.all(np.diff(seqs[at]) >= 0)):
                        at = np.arange(len(seqs))[at][np.argsort(seqs[at], kind="stable")]
                    readings = {clock: (cells[clock][0][at], known[clock][at]) for clock in cells}
                    yield _Lane(number, writer, lane, seqs[at], times[at], readings)


def _groups(rows: Any, meta: Mapping[str, Any]) -> Iterator[tuple[tuple[int, str, int], Any]]:
    """((attempt, writer, lane), its rows) of each lane in a piece; most pieces have one."""
    own = meta.get("attempt"), meta.get("writer"), meta.get("lane")
    if None not in own:
        yield (int(own[0]), str(own[1]), int(own[2])), slice(None)  # type: ignore[arg-type]
        return
    attempts, lanes = to_numpy(rows["attempt"])[0], to_numpy(rows["lane"])[0]
    names, writers = np.unique(to_numpy(rows["writer"])[0].astype(str), return_inverse=True)
    highest = int(lanes.max()) + 1
    codes = (attempts * len(names) + writers) * highest + lanes
    for code in np.unique(codes).tolist():
        rest, lane = divmod(code, highest)
        attempt, writer = divmod(rest, len(names))
        yield (int(attempt), str(names[writer]), int(lane)), np.flatnonzero(codes == code)


class _Lane:
    """See `cuts.LaneRows`."""

    def __init__(
        self,
        attempt: int,
        writer: str,
        lane: int,
        seqs: NDArray,
        times: NDArray,
        readings: Mapping[str, tuple[NDArray, NDArray]],
    ) -> None:
        self.attempt, self.writer, self.lane = attempt, writer, lane
        self._seqs, self._times, self._readings = seqs, times, readings

    def last_seq(self) -> int:
        return int(self._seqs[-1])

    def extremes(self, clock: str) -> tuple[int, int] | None:
        cells, known = self._readings.get(clock, (self._seqs, np.zeros(0, dtype=bool)))
        if not known.any():
            return None
        return int(cells[known].min()), int(cells[known].max())

    def first_beyond(self, readings: Mapping[str, int], after: int = 0) -> tuple[int, int] | None:
        beyond = np.zeros(len(self._seqs), dtype=bool)
        for clock, reading in readings.items():
            if clock in self._readings:
                cells, known = self._readings[clock]
                beyond |= known & (cells > reading)
        found = np.flatnonzero(beyond & (self._seqs > after))
        return (int(self._seqs[found[0]]), int(self._times[found[0]])) if len(found) else None

    def first_since(self, moment: int) -> int | None:
        found = np.flatnonzero(self._times >= moment)
        return int(self._seqs[found[0]]) if len(found) else None

    def last_known(self, clock: str, up_to: int) -> tuple[int, int, dict[str, int]] | None:
        if clock not in self._readings:
            return None
        found = np.flatnonzero(self._readings[clock][1] & (self._seqs <= up_to))
        if not len(found):
            return None
        at = found[-1]
        known = {name: int(cells[at]) for name, (cells, there) in self._readings.items() if there[at]}
        return int(self._times[at]), int(self._seqs[at]), known
