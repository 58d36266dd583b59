"""The checkpoints of a run, one row each: those that are still there, or all that were saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from rollbook.book.checkpoints import checkpoint_rows
from rollbook.book.questions.asked import Checkpoints, Window
from rollbook.book.questions.source import Queries, Source
from rollbook.book.questions.windows import Page, Shown, page_of
from rollbook.schema.checkpoint_rows import CheckpointHistory
from rollbook.schema.expressions import literal, named_tables, quoted
from rollbook.schema.run_files import table_names
from rollbook.schema.tables import TABLES
from rollbook.values.arrow import from_numpy, strings, take_table

_ROW = ("writer", "lane", "seq", "index")
"""Columns that together identify a row."""
_NOW = ("is_best", "kept", "status")
"""Columns that a row of the table cannot know, because they depend on later rows and on the files."""


def saved_checkpoints(table: pa.Table, folder: str) -> pa.Table:
    """A row for each checkpoint that was saved, as its newest save wrote it.

    Args:
      table: the table `checkpoints`, oldest first: a row for each save, and another when a file is deleted.
      folder: of the run.
    Returns:
      The same columns, and `status`: "kept"; "deleted" by rollbook; "missing": its file is gone. `kept` is false for
      deleted ones; `is_best` is true for the kept one with the best score.
    """
    if not table.num_rows or "checkpoint_id" not in table.column_names:
        return table.slice(0, 0).append_column("status", strings([]))
    history = CheckpointHistory(checkpoint_rows(table), Path(folder))
    newest = {str(row["checkpoint_id"]): n for n, row in enumerate(history.rows) if row.get("kept") is not False}
    names = sorted(newest, key=lambda name: newest[name])
    statuses, best = history.statuses(), history.choose("best")
    rows = take_table(table, np.array([newest[name] for name in names], np.int64))
    is_best = [best is not None and str(best["checkpoint_id"]) == name for name in names]
    now = {
        "is_best": from_numpy(np.array(is_best, bool)),
        "kept": from_numpy(np.array([statuses[name] != "deleted" for name in names], bool)),
        "status": strings([statuses[name] for name in names]),
    }
    for name, cells in now.items():
        index = rows.schema.get_field_index(name)
        rows = rows.append_column(name, cells) if index < 0 else rows.set_column(index, name, cells)
    return rows


def chosen_checkpoints(question: Window, source: Source, *, counted: bool = False) -> Page:
    """The checkpoints that a question asks for: a `Checkpoints`, or any other window for all that were saved.

    Args:
      counted: whether to count all, and those that fit.
    Raises:
      BadInput: a condition or order that cannot be understood.
    """
    every = saved_checkpoints(source.table("checkpoints", question.attempts), source.folder)
    everything = not isinstance(question, Checkpoints) or question.everything
    if _is_whole(question):  # needs no DuckDB
        there = every if everything else _those_kept(every)
        return Page(there, every.num_rows, there.num_rows)
    more = named_tables(question.where or "", [*TABLES, *table_names(source.folder)])

    def work(db: Queries) -> Page:
        columns = list(dict.fromkeys([*db.columns["checkpoints"], *_NOW]))
        db.view("saved", _query(every, columns))
        also = [] if everything else ["status = 'kept'"]
        return page_of(db, question, Shown("saved", "saved", columns, also), counted=counted)

    return source.asked([*dict.fromkeys(["checkpoints", *more])], work, question.attempts)


def _is_whole(question: Window) -> bool:
    return question.limit is None and not (question.where or question.order_by or question.search or question.offset)


def _those_kept(table: pa.Table) -> pa.Table:
    return take_table(table, np.flatnonzero([status == "kept" for status in table["status"].to_pylist()]))


def _query(every: pa.Table, columns: list[str]) -> str:
    """These rows in SQL: those of the table, with what is known of each now."""
    if not every.num_rows:
        kinds = dict(zip(_NOW, ("boolean", "boolean", "varchar"), strict=True))
        none = [f"null::{kinds[name]} as {name}" if name in kinds else quoted(name) for name in columns]
        return f"select {', '.join(none)} from checkpoints where false"
    shown = ", ".join(f"{'n' if name in _NOW else 'c'}.{quoted(name)}" for name in columns)
    cells = every.select([*_ROW, *_NOW]).to_pylist()
    rows = ", ".join(f"({', '.join(map(_cell, row.values()))})" for row in cells)
    named = ", ".join(map(quoted, (*_ROW, *_NOW)))
    same = " and ".join(f"c.{quoted(name)} is not distinct from n.{quoted(name)}" for name in _ROW)
    return f"select {shown} from checkpoints c join (values {rows}) n({named}) on {same}"


def _cell(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value) if isinstance(value, int) else literal(str(value))
