"""Finds the position in a run for a clock reading, as a cut that run.json can store."""

from __future__ import annotations

import numpy as np

from rollbook.book.axis import chosen_rows
from rollbook.errors import UnknownKey
from rollbook.schema import run_files as layout
from rollbook.schema.checkpoint_rows import cut_behind
from rollbook.schema.tables import TABLES
from rollbook.storage import Pieces
from rollbook.values.arrow import to_numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.book.table_protocols import StoredRun
    from rollbook.schema.shapes import CutJson
    from rollbook.values.array_types import NDArray


def place_at(book: StoredRun, clock: str, value: int) -> tuple[int, CutJson, dict[str, int]]:
    """See `Book.place_at`."""
    return book.files.read(_tables(book), lambda pieces: _find(book, pieces, clock, value))


def place_behind(book: StoredRun, checkpoint: Mapping[str, Any]) -> tuple[int, CutJson]:
    """See `Book.place_behind`."""
    attempt, writer, cut, through = cut_behind(checkpoint)
    if through:
        cut = book.files.read(_tables(book), lambda pieces: _extend(book, pieces, attempt, cut, writer, through))
    return attempt, cut


def _tables(book: StoredRun) -> list[str]:
    return [*dict.fromkeys([*TABLES, *layout.table_names(book.path)])]


def _extend(
    book: StoredRun,
    tables: dict[str, Pieces],
    attempt: int,
    cut: CutJson,
    writer: str,
    readings: Mapping[str, int],
) -> CutJson:
    """Extend a cut to where the first of some clocks leaves its reading; exact for `writer`."""
    pieces = [piece for each in tables.values() for piece in each]
    run = book.context(pieces, "effective")
    clocks = tuple(name for name in readings if name in run.clocks)
    end: int | None = None
    last = cut["time"]
    later: list[tuple[NDArray, NDArray, NDArray]] = []  # times, lanes and numbers of the rows of the writer that saved
    for piece in pieces:
        rows = chosen_rows(piece, clocks, run)
        times, attempts = to_numpy(rows["time"])[0], to_numpy(rows["attempt"])[0]
        after = np.flatnonzero((attempts == attempt) & (times > cut["time"]))
        if not len(after):
            continue
        last = max(last, int(times[after].max()))
        for clock in clocks:
            if clock not in rows.column_names:
                continue
            cells, valid = to_numpy(rows[clock])
            beyond = after if valid is None else after[valid[after]]
            beyond = beyond[cells[beyond] > readings[clock]]
            if len(beyond):
                first = int(times[beyond].min())
                end = first if end is None else min(end, first)
        own = after[to_numpy(rows["writer"])[0][after].astype(str) == writer]
        later.append((times[own], to_numpy(rows["lane"])[0][own], to_numpy(rows["seq"])[0][own]))
    lanes = dict(cut["writers"].get(writer, {}))
    for times, numbers, seqs in later:
        stays = np.ones(len(times), dtype=bool) if end is None else times < end
        for lane in np.unique(numbers[stays]).tolist():
            lanes[str(lane)] = max(lanes.get(str(lane), 0), int(seqs[stays & (numbers == lane)].max()))
    return {"time": last if end is None else end - 1, "writers": {**cut["writers"], writer: lanes}}


def _find(book: StoredRun, tables: dict[str, Pieces], clock: str, value: int) -> tuple[int, CutJson, dict[str, int]]:
    pieces = [piece for each in tables.values() for piece in each]
    run = book.context(pieces, "effective")
    best: tuple[tuple[int, int, int], str, dict[str, int]] | None = None
    lowest: int | None = None
    for piece in pieces:
        if clock not in piece.meta["clocks"]:
            continue
        # A late row of a checkpoint's scope does not show where the run was when it was written.
        rows = chosen_rows(piece, run.clocks, run)
        if clock not in rows.column_names or not rows.num_rows:
            continue
        readings, valid = to_numpy(rows[clock])
        known = np.ones(len(readings), dtype=bool) if valid is None else valid
        if not known.any():
            continue
        smallest = int(readings[known].min())
        lowest = smallest if lowest is None else min(lowest, smallest)
        stays = np.flatnonzero(known & (readings <= value))
        if not len(stays):
            continue
        times, seqs, attempts = (to_numpy(rows[name])[0][stays] for name in ("time", "seq", "attempt"))
        last = int(stays[np.lexsort((seqs, times, attempts))[-1]])
        age = tuple(int(to_numpy(rows[name])[0][last]) for name in ("attempt", "time", "seq"))
        if best is None or age > best[0]:
            clocks = {name: rows[name][last].as_py() for name in run.clocks if name in rows.column_names}
            given = {name: int(reading) for name, reading in clocks.items() if reading is not None}
            best = ((age[0], age[1], age[2]), str(rows["writer"][last].as_py()), given)
    if best is None:
        seen = "no row has a reading of it" if lowest is None else f"its readings begin at {lowest}"
        raise UnknownKey(f"rewind({clock}={value}): there is nothing to go back to: {seen}")
    (attempt, time_ns, _), writer, clocks = best
    lanes: dict[str, int] = {}
    for piece in pieces:
        if piece.meta.get("writer") not in (None, writer):
            continue
        rows = chosen_rows(piece, (), run)
        mine = np.array([str(w) == writer for w in to_numpy(rows["writer"])[0]], dtype=bool)
        mine &= to_numpy(rows["time"])[0] <= time_ns
        numbers, seqs = to_numpy(rows["lane"])[0][mine], to_numpy(rows["seq"])[0][mine]
        for lane in np.unique(numbers).tolist():
            lanes[str(lane)] = max(lanes.get(str(lane), 0), int(seqs[numbers == lane].max()))
    return attempt, {"time": time_ns, "writers": {writer: lanes}}, clocks
