"""Alerts of many runs, as one list by time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rollbook.runs.run_set import RunSet


def alerts_of(runs: RunSet, since: float | None = None) -> list[dict[str, Any]]:
    """The alerts of these runs, oldest first.

    Args:
      since: only alerts at or after this time, in unix seconds.
    Returns:
      One dict per alert: run (id), project, name, time (ISO 8601, UTC), seconds (unix), level ("note", "warn" or
      "fail"), rule, key, message, and the clocks that it knows.
    """
    rows: list[dict[str, Any]] = []
    for book in runs:
        for row in book.alerts().to_pylist():
            moment: datetime = row["time"]
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            if since is not None and moment.timestamp() < since:
                continue
            rows.append(
                {
                    "run": book.id, "project": book.project, "name": book.name,
                    "time": moment.isoformat(), "seconds": moment.timestamp(),
                    **{name: row.get(name) for name in ("level", "rule", "key", "message")},
                    "clocks": {clock: row[clock] for clock in book.clocks if row.get(clock) is not None},
                }
            )  # fmt: skip
    return sorted(rows, key=lambda row: float(row["seconds"]))
