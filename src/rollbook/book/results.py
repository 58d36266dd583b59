"""The results of a run: the part of its summary that rollbook computes.

    {"test/return.last": 481.2, "test/return.best": 500.0, "checkpoint.best": "k3…", "checkpoint.best_score": 500.0,
     "length.env_step": 100000, "length.episodes": 812, "length.seconds": 93.1, "status": "finished"}

Contains the last and the best value of the canonical scores (`aliases.SCORES`). They come from the metadata and
statistics of sealed parts, so a long run costs no more than a short one. Rows are read only if some of them do not
count or are not sealed. The keeper writes the results into run.json when an attempt is over; without them, they are
computed on reading.

Values that the run sets itself (`run.summary`) take precedence. Each change of them is a mark in the journal, as safe
as a row; run.json is written from time to time and at the end. If the attempt itself recorded its end, run.json is
complete; otherwise the marks are read.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from rollbook.book.checkpoints import checkpoint_rows
from rollbook.book.episode_curves import read_metrics
from rollbook.book.latest import latest_values
from rollbook.book.metrics import all_keys
from rollbook.book.read_context import Context, are_chosen
from rollbook.book.select import canonical_keys, select_metrics
from rollbook.book.table_protocols import StoredRun
from rollbook.book.tables import read_table
from rollbook.errors import RollbookError
from rollbook.schema import manifest
from rollbook.schema.checkpoint_rows import CheckpointHistory
from rollbook.schema.manifest import Attempts
from rollbook.storage import Piece, Pieces, RunFiles
from rollbook.system.guard import tolerating
from rollbook.values.arrow import to_numpy


class MeasuredRun(Protocol):
    """The part of `Book` that is used here."""

    files: RunFiles
    path: Path

    @property
    def info(self) -> manifest.RunJson:
        """The content of run.json."""

    @property
    def status(self) -> str:
        """The current status."""

    def context(self, pieces: Pieces, attempts: Attempts) -> Context:
        """What reading needs to know besides the rows."""

    def table(self, name: str, attempts: Attempts = "effective") -> pa.Table:
        """All rows of a table."""


def results_written(book: MeasuredRun) -> dict[str, Any]:
    """The results that the keeper wrote when the newest attempt ended; computed now if there are none yet."""
    return manifest.results(book.info) or results_of(book)


def write_results(book: MeasuredRun) -> None:
    """Compute the results and write them into run.json, for a run whose newest attempt is over.

    Raises:
      OSError: run.json cannot be replaced; the old one is untouched.
    """
    manifest.keep_results(str(book.path), manifest.newest(book.info).n or 1, results_of(book))


def results_of(book: MeasuredRun) -> dict[str, Any]:
    """See the module. What cannot be read is left out: a summary does not raise."""
    values: dict[str, object] = {}
    for part in (_scores, _checkpoint, _length):
        try:
            values.update(part(book))
        except RollbookError:
            continue
    status = book.status
    if status != "running":
        values["status"] = status
    return values


def _scores(book: MeasuredRun) -> dict[str, object]:
    from rollbook.schema import aliases  # hundreds of names, not needed to read a series by its own name

    def work(pieces: Pieces) -> dict[str, object]:
        run = book.context(pieces, "effective")
        labels = all_keys(pieces, run.clocks)
        native = {label: key for key, label in labels.items()}
        latest = latest_values(pieces, run)
        values: dict[str, object] = {}
        clear = canonical_keys(labels)
        for name in (name for name in aliases.SCORES if clear.get(name) in latest):
            label = clear[name]
            last = _number(latest[label][0])
            key = native[label]
            lowest, highest = _extremes([piece for piece in pieces if key in piece.meta["keys"]], run, key, label)
            best = lowest if aliases.lower_is_better(name) else highest
            values.update({f"{name}.{how}": v for how, v in (("last", last), ("best", best)) if v is not None})
        ends = [readings for _, readings, _ in latest.values()]
        for clock in run.clocks:
            seen = [readings[clock] for readings in ends if clock in readings]
            values.update({f"length.{clock}": max(seen)} if seen else {})
        return values

    return read_metrics(book.files, work)


def _extremes(pieces: Pieces, run: Context, key: str, label: str) -> tuple[float | None, float | None]:
    """(lowest, highest) of the finite values that count."""
    ranges = [
        span for piece in pieces if are_chosen(piece, run) is not False for span in _range(piece, run, key, label)
    ]
    return min((low for low, _ in ranges), default=None), max((high for _, high in ranges), default=None)


def _range(piece: Piece, run: Context, key: str, label: str) -> list[tuple[float, float]]:
    """(lowest, highest) of a piece's finite values that count: from the footer if possible, else from the rows."""
    if piece.part is not None and piece.is_whole and not (piece.is_long or piece.is_waiting) and are_chosen(piece, run):
        column = piece.column_of(key)
        known = [piece.part.column_range(column, block) for block in range(len(piece.part.row_groups))]
        if all(span is not None and _number(span[0]) is not None and _number(span[1]) is not None for span in known):
            return [(float(span[0]), float(span[1])) for span in known if span is not None]
    values = to_numpy(select_metrics([piece], run, [key])[label])[0].astype(np.float64)
    finite = values[np.isfinite(values)]
    return [(float(finite.min()), float(finite.max()))] if len(finite) else []


def _checkpoint(book: MeasuredRun) -> dict[str, object]:
    row = CheckpointHistory(checkpoint_rows(book.table("checkpoints")), book.path).choose("best")
    if row is None:
        return {}
    return {"checkpoint.best": str(row["checkpoint_id"]), "checkpoint.best_score": _number(row.get("score"))}


def _length(book: MeasuredRun) -> dict[str, object]:
    def work(tables: dict[str, Pieces]) -> int:
        pieces = tables["episodes"]
        run = book.context(pieces, "effective")
        known = {n: are_chosen(piece, run) for n, piece in enumerate(pieces)}
        some = [piece for n, piece in enumerate(pieces) if known[n] is None]
        rows = sum(piece.rows for n, piece in enumerate(pieces) if known[n])
        return rows + (read_table("episodes", some, run).num_rows if some else 0)

    episodes = book.files.read(["episodes"], work)
    seconds = [entry.ended - entry.started for entry in book.info.attempts if entry.started and entry.ended]
    values: dict[str, object] = {"length.episodes": episodes} if episodes else {}
    if seconds:
        values["length.seconds"] = round(sum(seconds), 1)
    return values


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def summary_of(book: StoredRun) -> dict[str, Any]:
    """See `Book.own_summary`."""
    summary: dict[str, object] = dict(book.info.summary)
    newest = manifest.newest(book.info)
    if newest.has("last"):  # this writer wrote run.json after its last mark; only others may have later values
        for key, word in manifest.summary_of_others(book.path, newest.last or 0).items():
            manifest.follow_summary(summary, {"values": {key: word[1]}} if len(word) == 2 else {"gone": [key]})
        return summary
    for mark in all_marks(book):
        if mark["mark"] == "summary":
            manifest.follow_summary(summary, mark["payload"])
    return summary


def all_marks(book: StoredRun) -> list[dict[str, Any]]:
    """See `Book.marks`."""

    def work(tables: dict[str, Pieces]) -> list[dict[str, Any]]:
        table = read_table("marks", tables["marks"], book.context(tables["marks"], "all"))
        return table.drop_columns(["time"]).to_pylist() if table.num_rows else []

    marks = book.files.read(["marks"], work)
    for mark in marks:
        payload = {}
        with tolerating(TypeError, ValueError, RecursionError):
            payload = json.loads(mark["payload"])
        mark["payload"] = payload if isinstance(payload, dict) else {}
    return marks
