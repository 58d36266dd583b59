"""What health rules remember of a run after a rewind.

    python -m rollbook.runs.recalling RUN RULES ATTEMPT MOST_ROWS FILE

Rules judge a run by its past: its first returns, its best, the longest time without an update. After a rewind the
keeper asks this process for their memory of the effective history, as if the abandoned rows had never been. The keeper
itself reads no Parquet.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rollbook import health
from rollbook.book import Book
from rollbook.runs.checking import every_alert, pieces_for
from rollbook.schema.alerts import Alerts
from rollbook.system.files import write_json


class _Stored:
    """The rows of `alerts` that a keeper would have stored."""

    def __init__(self) -> None:
        self.rows: list[tuple[Mapping[str, object], dict[str, Any]]] = []

    def record(self, table: str, columns: Mapping[str, object], **clocks: Any) -> int:
        self.rows.append((columns, clocks))
        return 0

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        """Not needed."""


def recall(book: Book, specs: Sequence[Mapping[str, Any]], attempt: int, most_rows: int) -> dict[str, Any] | None:
    """Show rules the rows that an attempt continues from.

    Args:
      specs: {"name": ..., option: value} of each rule.
      most_rows: a longer history is not recalled: that would take gigabytes next to a training.
      attempt: rows of earlier attempts count if they are in the effective history.
    Returns:
      rules: the memory of each rule, by name. said: the state of `Alerts`. again: [columns, clocks] of each alert about
      these rows that the rewind has hidden: it was written after the point to which the run went back.
      None if the history is longer than `most_rows`.
    """
    made = {str(spec["name"]): health.make(**spec) for spec in specs if spec["name"] != "silent"}
    wanted = frozenset[str]().union(*(rule.tables for rule in made.values()))
    if max(map(book.row_count, wanted), default=0) > most_rows:
        return None

    def before(table: str, columns: Sequence[str] | None = None) -> pa.Table:
        rows = book.table(table, columns=columns)
        return rows.filter(pc.less(rows["attempt"], attempt))

    stored = _Stored()
    alerts = Alerts(stored)
    rules, info = list(made.values()), book.run_info()
    for _now, alert in every_alert(rules, info, pieces_for(rules, info, before)):
        alerts.report(alert)
    shown = Counter((row["rule"], row["level"], row["key"]) for row in book.alerts().to_pylist())
    again = []
    for columns, clocks in stored.rows:
        like = (columns["rule"], columns["level"], columns["key"])
        shown[like] -= 1
        if shown[like] < 0:
            again.append([columns, clocks])
    memories = {name: rule.state() for name, rule in made.items() if hasattr(rule, "state")}
    return {"rules": memories, "said": alerts.state(), "again": again}


if __name__ == "__main__":
    run, rules, attempt, most, path = sys.argv[1:]
    found = recall(Book(run), json.loads(rules), int(attempt), int(most))
    if found is not None:
        write_json(path, found)
