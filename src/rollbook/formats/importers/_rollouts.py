"""Rollouts that another tool wrote, as rows of our tables: tasks, rollouts, turns, fates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rollbook.protocols import Row

__all__ = ["TABLES", "lines_of", "rows_of"]

TABLES = ("tasks", "rollouts", "turns", "fates")


def rows_of(found: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """The rows of rollouts, in the order of their tables for each.

    Args:
      found: of each rollout `id`, `time`, `clocks`, `prompt` (a text or None), `turns` (a list of columns), `columns`
        (of its own row) and `fate` (columns, or None where nothing is known of its use).
    """
    seen: set[str] = set()
    for one in found:
        moment, clocks, name = one["time"], one["clocks"], one["id"]
        own = {"rollout_id": name, "turns": len(one["turns"]), **_plain(one["columns"])}
        if one["prompt"] is not None:
            own["task_id"] = hashlib.blake2b(one["prompt"].encode("utf-8", "replace"), digest_size=8).hexdigest()
            if own["task_id"] not in seen:
                seen.add(own["task_id"])
                yield Row(moment, {}, {"task_id": own["task_id"], "prompt": one["prompt"]}, table="tasks")
        yield Row(moment, clocks, own, table="rollouts")
        for number, turn in enumerate(one["turns"]):
            yield Row(moment, clocks, {"rollout_id": name, "turn": number, **_plain(turn)}, table="turns")
        if one["fate"] is not None:
            yield Row(moment, clocks, {"rollout_id": name, **_plain(one["fate"])}, table="fates")


def lines_of(data: bytes, leave_out: Any) -> Iterator[dict[str, Any]]:
    """The JSON objects of a file, one a line; other lines are counted."""
    for line in data.splitlines():
        if not line.strip():
            continue
        try:
            said = json.loads(line.decode("utf-8", "backslashreplace"))
        except (ValueError, RecursionError):
            said = None
        if isinstance(said, dict):
            yield said
        else:
            leave_out("lines that are no object")


def _plain(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Cells that a table can hold: numbers, texts and booleans as they are, the rest as JSON; None left out."""
    cells: dict[str, Any] = {}
    for name, cell in columns.items():
        if isinstance(cell, (str, bool, int, float)):
            cells[name] = cell
        elif cell is not None:
            cells[name] = json.dumps(cell, ensure_ascii=False, default=str)
    return cells
