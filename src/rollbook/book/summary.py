"""What a run said of itself as a whole (`run.summary`), also when it was killed before run.json could say so.

Each change of the summary is a mark in the journal, so it is as safe as a row; run.json is written now and then, and at
the end. A life that ended by itself has left everything there; after any other the marks are gone through.
"""

from __future__ import annotations

import json
from typing import Any

from rollbook.book.table_protocols import StoredRun
from rollbook.book.tables import read_table
from rollbook.ground import manifest
from rollbook.ground.foreign import tolerating
from rollbook.storage import Pieces

__all__ = ["all_marks", "summary_of"]


def summary_of(book: StoredRun) -> dict[str, Any]:
    """See `Book.own_summary`."""
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


def all_marks(book: StoredRun) -> list[dict[str, Any]]:
    """See `Book.marks`."""

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
