"""Rollouts of other tools as rows of our tables: tasks, rollouts, turns, tokens, fates."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rollbook.formats.importers.jsonl import JsonLines, objects
from rollbook.protocols import ForeignRun, Row
from rollbook.system.guard import ours

TABLES = ("tasks", "rollouts", "turns", "tokens", "fates")


Read = Callable[[int, Path, ForeignRun], Iterator[dict[str, Any]]]
"""The rollouts of one file, as in `rows_of`; it counts with `leave_out` what it leaves out."""


def dump_run(name: str, files: Sequence[tuple[int, Path]], read: Read) -> ForeignRun:
    """A run whose rollouts are in files, one for each (step, file)."""
    run = ForeignRun(name, files=[file for _step, file in files], tables=TABLES)
    run.rows = functools.partial(_rows_of_files, files, read, run)
    return run


def with_metrics(run: ForeignRun, folder: Path) -> ForeignRun:
    """The run, with the rows of metrics.jsonl and the configuration that the training left in that folder."""
    importer = JsonLines()
    if not importer.finds(folder):
        return run
    metrics = next(iter(importer.runs(folder)))
    rollouts = run.rows

    def rows() -> Iterator[Row]:
        yield from rollouts()
        yield from metrics.rows()
        for what, n in metrics.left_out.items():
            (run.lose if what in metrics.lost else run.leave_out)(what, n)

    run.rows, run.files = rows, [*run.files, *metrics.files]
    run.tables = ("metrics", *run.tables)
    run.config, run.seed, run.group = metrics.config, metrics.seed, metrics.group
    return run


def trainings(files: Iterable[Path], folder_of: Callable[[Path], Path]) -> dict[str, tuple[Path, list[Path]]]:
    """The files of each training: name -> its folder and its files. Where two names are equal, the folder above helps.

    Args:
      folder_of: the folder of the training that a file belongs to.
    """
    by_folder: dict[Path, list[Path]] = {}
    for file in files:
        by_folder.setdefault(folder_of(file), []).append(file)
    names = [folder.name for folder in by_folder]
    return {
        folder.name if names.count(folder.name) == 1 else f"{folder.parent.name}-{folder.name}": (folder, own)
        for folder, own in by_folder.items()
    }


def _rows_of_files(files: Sequence[tuple[int, Path]], read: Read, run: ForeignRun) -> Iterator[Row]:
    run.left_out.clear()
    return rows_of(one for step, file in files for one in read(step, file, run))


def rows_of(found: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """The rows of rollouts; those of one rollout in the order of their tables.

    Args:
      found: for each rollout `id`, `time`, `clocks`, `prompt` (a text or None), `turns` (a list of columns), `columns`
        (of the rollout's row) and `fate` (columns, or None if its use is not known). Optional: `tokens` (a list of
        columns, lists of numbers) and `fate_clocks`, if the update has other clocks than `clocks`.
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
        for tokens in one.get("tokens", ()):
            lists = {column: cell for column, cell in tokens.items() if cell is not None}
            if any(isinstance(cell, list) for cell in lists.values()):
                yield Row(moment, clocks, {"rollout_id": name, **lists}, table="tokens")
        if one["fate"] is not None:
            later = one.get("fate_clocks", clocks)
            yield Row(moment, later, {"rollout_id": name, **_plain(one["fate"])}, table="fates")


def records_of(file: Path, run: ForeignRun) -> Iterator[tuple[dict[str, Any], float]]:
    """The JSON objects of a file, one per line, each with the time of the file; other lines are counted."""
    try:
        moment = os.stat(file).st_mtime
        yield from ((record, moment) for record in objects(file, run))
    except ours(OSError):
        run.lose("files that cannot be read")


def whole(value: object) -> int | None:
    """An integer; None for anything else."""
    return (
        int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value // 1 else None
    )


def floats(value: object, n: int | None = None) -> list[Any] | None:
    """The first n of a list of numbers (all without n), NaN for each missing one; None for anything else."""
    if not isinstance(value, list) or not all(cell is None or isinstance(cell, (int, float)) for cell in value):
        return None
    listed = value if n is None else value[:n]
    return [math.nan if cell is None else cell for cell in listed] if None in listed else listed


def _plain(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Cells that a table can hold: numbers, texts and booleans unchanged, the rest as JSON; None is left out."""
    cells: dict[str, Any] = {}
    for name, cell in columns.items():
        if isinstance(cell, (str, bool, int, float)):
            cells[name] = cell
        elif cell is not None:
            cells[name] = json.dumps(cell, ensure_ascii=False, default=str)
    return cells
