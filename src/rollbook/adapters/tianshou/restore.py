"""Logged data as nested dicts of arrays: from a run's book, or from Tianshou's own TensorBoard files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rollbook.errors import NotARun
from rollbook.system.optional import need

POINTER = "rollbook.json"
"""File in a Tianshou folder: {"folder": path of the run, relative to this file}."""

_OTHER_NAMES = {"train": "training", "gradient_step": "update_step"}
_OTHER_NAMES.update([(new, old) for old, new in _OTHER_NAMES.items()])


class Restored(dict[str, Any]):
    """A dict in which `train` and `training`, and `gradient_step` and `update_step`, are two names of one entry."""

    def __missing__(self, key: str) -> Any:
        other_name = _OTHER_NAMES.get(key)
        if other_name is not None and dict.__contains__(self, other_name):
            return dict.__getitem__(self, other_name)
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or dict.__contains__(self, _OTHER_NAMES.get(str(key), key))

    def get(self, key: str, default: object = None) -> Any:
        """The value under `key` or its other name."""
        return self[key] if key in self else default  # noqa: SIM401 - this is `get`


def series_of(values: object, steps: object, times: object) -> Any:
    """An array of `values` whose attributes `steps` and `times` (unix seconds) hold the position of each value."""
    import numpy as np

    class Series(np.ndarray[Any, np.dtype[Any]]):
        """The values of one key."""

        steps: Any = None
        times: Any = None

    array = np.asarray(values).view(Series)
    array.steps, array.times = np.asarray(steps), np.asarray(times)
    return array


def nested(series: Iterable[tuple[str, object]]) -> Restored:
    """Keys split at "/". If a key is both a value and a prefix, its value is stored under ""."""
    restored = Restored()
    for key, values in series:
        inner, parts = restored, key.split("/")
        for part in parts[:-1]:
            below = dict.get(inner, part)
            if not isinstance(below, Restored):
                inner[part] = Restored() if below is None else Restored({"": below})
            inner = dict.__getitem__(inner, part)
        below = dict.get(inner, parts[-1])
        if isinstance(below, Restored):
            below[""] = values
        else:
            inner[parts[-1]] = values
    return restored


def restore_logged_data(log_path: str | os.PathLike[str]) -> Restored:
    """The data logged under `log_path`.

    Args:
      log_path: a run's folder; a folder with a pointer to one; or one with TensorBoard event files of any version.
    Returns:
      Nested dicts of arrays. Each array has the attributes `steps` and `times`. {} if nothing is found.
    """
    folder = Path(log_path)
    run = _run_folder(folder)
    if run is not None:
        return _from_book(run)
    if folder.is_dir() and any(folder.glob("events.out.tfevents.*")):
        return nested(_from_events(folder))
    return Restored()


def _run_folder(folder: Path) -> Path | None:
    if (folder / "run.json").is_file():
        return folder
    try:
        pointer = json.loads((folder / POINTER).read_text(encoding="utf-8"))
        run_folder = Path(os.path.normpath(folder / pointer["folder"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not (run_folder / "run.json").is_file():
        raise NotARun(
            f"{folder / POINTER} points to {run_folder}, where there is no run (any more). Pass the run's folder."
        )
    return run_folder


_CLOCK_OF_SCOPE = {"train": "env_step", "training": "env_step", "test": "env_step", "update": "step", "info": "epoch"}


def _from_book(folder: Path) -> Restored:
    import numpy as np

    from rollbook.book import Book

    book = Book(folder)
    columns = []
    for key in sorted(book.keys()):
        scope, _, name = key.partition("/")
        if scope not in _CLOCK_OF_SCOPE and scope != "save":
            continue
        clock = _CLOCK_OF_SCOPE.get(scope) or {"gradient_step": "step"}.get(name, name)
        table = book.metrics([key])
        column = table.column(key).drop_null() if table.num_rows else None
        if column is None or not len(column):
            continue
        rows = table.filter(table.column(key).is_valid())
        steps = rows.column(clock) if clock in rows.column_names else None
        at = steps.to_pylist() if steps is not None else [None] * rows.num_rows
        times = [moment.timestamp() for moment in rows.column("time").to_pylist()]
        values = np.asarray(rows.column(key).to_pylist())
        columns.append((key, series_of(values, [-1 if s is None else s for s in at], times)))
    return nested(columns)


def _from_events(folder: Path) -> list[tuple[str, object]]:
    """Every scalar of every event file, in order. A later file replaces earlier values from its first step on."""
    module = "tensorboard.backend.event_processing.event_file_loader"
    loader = need(module, extra="tensorboard", why="reading TensorBoard files").LegacyEventFileLoader
    series: dict[str, list[tuple[int, float, float]]] = {}
    for path in sorted(folder.glob("events.out.tfevents.*"), key=lambda file: file.name):
        here: dict[str, list[tuple[int, float, float]]] = {}
        for event in loader(str(path)).Load():
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    here.setdefault(value.tag, []).append((event.step, value.simple_value, event.wall_time))
        for tag, points in here.items():
            before = [point for point in series.get(tag, []) if point[0] < points[0][0]]
            series[tag] = before + points
    return [(tag, _columns(points)) for tag, points in series.items()]


def _columns(points: list[tuple[int, float, float]]) -> Any:
    steps, values, times = zip(*points, strict=True)
    return series_of(values, steps, times)
