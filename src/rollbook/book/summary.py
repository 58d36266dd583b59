"""What a run said of itself as a whole (`run.summary`), also when it was killed before run.json could say so.

Each change of the summary is a mark in the journal, so it is as safe as a row; run.json is written now and then, and at
the end. A life that ended by itself has left everything there; after any other the marks are gone through.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from rollbook.book.read_context import Context
from rollbook.book.tables import read_table
from rollbook.ground import manifest
from rollbook.ground.foreign import tolerating
from rollbook.storage import Attempts, Pieces, RunFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.ground.shapes import RunJson

__all__ = ["MarkedRun", "all_marks", "summary_of"]


class MarkedRun(Protocol):
    """The part of `Book` that the marks ask for."""

    files: RunFiles
    path: Path

    @property
    def info(self) -> RunJson:
        """The content of run.json."""

    def context(self, pieces: Pieces, attempts: Attempts) -> Context:
        """What reading needs to know beside the rows."""


def summary_of(book: MarkedRun) -> dict[str, Any]:
    """The summary as the run's newest words have it."""
    fields = book.info
    summary: dict[str, object] = dict(fields["summary"])
    newest = manifest.newest(fields)
    if "last" in newest:  # it wrote run.json after its last mark; only other writers may have had later words
        since = newest["last"] if type(newest["last"]) is int else 0
        for key, word in manifest.summary_of_others(book.path, since).items():
            manifest.follow_summary(summary, {"values": {key: word[1]}} if len(word) == 2 else {"gone": [key]})
        return summary
    for mark in all_marks(book):
        if mark["mark"] == "summary":
            manifest.follow_summary(summary, mark["payload"])
    return summary


def all_marks(book: MarkedRun) -> list[dict[str, Any]]:
    """The marks of all lives, oldest first: `mark`, `attempt`, `writer` …, and `payload`, what the mark says.

    A journal may hold anything: a payload that is no object is {}.
    """

    def work(tables: dict[str, Pieces]) -> list[dict[str, Any]]:
        run = book.context(tables["marks"], "all")
        table = read_table("marks", tables["marks"], run.clocks, run.history, "all")
        return table.drop_columns(["time"]).to_pylist() if table.num_rows else []

    marks = book.files.read(["marks"], work)
    for mark in marks:
        said = {}
        with tolerating(TypeError, ValueError, RecursionError):
            said = json.loads(mark["payload"])
        mark["payload"] = said if isinstance(said, dict) else {}
    return marks
