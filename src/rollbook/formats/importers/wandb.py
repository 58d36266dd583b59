"""Weights & Biases offline runs: the log `run-<id>.wandb` in `wandb/offline-run-*` and `wandb/run-*`.

The file is a log of records (`_blocks`). A record is a protocol buffer message; its field numbers are those of
wandb/proto/wandb_internal.proto of wandb 0.31. wandb itself has no reader for these files in Python.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from rollbook.formats.importers._blocks import blocks_of
from rollbook.formats.importers._metadata import describe, files_below, with_own_names
from rollbook.formats.importers._wire import BadMessage, fields, first, moment, signed
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.counters import clocks_of
from rollbook.values import Histogram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

_HEADER = b":W&B" + (0xBEE1).to_bytes(2, "little") + b"\0"
_HISTORY, _CONFIG, _STATS, _RUN, _EXIT = 2, 5, 7, 17, 18
_ENVELOPE = (16, 19, 200)
"""Fields of a record in addition to its content: control, uuid and the writer."""

_SKIPPED = {4: "lines of console output", 13: "lines of console output", 8: "artifacts", 10: "alerts"}
_FORMS = {
    "image-file": "pictures",
    "images/separated": "pictures",
    "video-file": "videos",
    "table-file": "tables",
    "audio-file": "sounds",
    "html-file": "pages",
    "object3D-file": "models",
    "graph-file": "graphs",
}


class Wandb:
    """Weights & Biases offline runs (`*.wandb`): history, system metrics, configuration, group, tags, how it ended.

    A row of history is a row here: its `_step` is the clock `step`, its `_timestamp` the time; a counter of a known
    framework such as `global_step` is also a clock. Nested names are joined with ".". Files of one run id, as from
    resumed runs, are one run. Tables, images and console output are left out and counted.

    Args:
      clock: the clock that `_step` counts.
    """

    name = "wandb"
    what = "W&B offline run"
    files = ("*.wandb",)
    gathers = True

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether there are `.wandb` files."""
        return next(_files(path), None) is not None

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each run id, with its display name, and the id if two have the same name."""
        by_id: dict[str, list[Path]] = {}
        for file in sorted(_files(path)):
            by_id.setdefault(file.stem.removeprefix("run-"), []).append(file)
        return with_own_names((self._run(run_id, files), run_id) for run_id, files in by_id.items())

    def _run(self, run_id: str, files: list[Path]) -> ForeignRun:
        run = ForeignRun(run_id, clocks=(self._clock,), files=files)
        settings: list[bytes] = []
        for file in files:  # a run's metadata is before its first row; later changes of the configuration count, too
            for number, data in _records(file, lambda _what: None, until=_HISTORY):
                if number == _RUN:
                    with contextlib.suppress(BadMessage):  # counted when the rows are read
                        self._describe(run, data, settings)
                elif number == _CONFIG:
                    settings.append(data)
        run.details = lambda: describe(run, files[0].parent, _config_of(settings))
        run.rows = lambda: self._rows(run, files)
        return run

    def _describe(self, run: ForeignRun, data: bytes, settings: list[bytes]) -> None:
        by_number = {number: value for number, value in fields(data) if isinstance(value, bytes)}
        text = {number: value.decode("utf-8", "backslashreplace") for number, value in by_number.items()}
        run.name = text.get(8) or run.name
        run.notes = text.get(9, "")
        run.group = text.get(6) or None
        run.job_type = text.get(7) or None
        run.project = text.get(3) or None
        tags = [value for number, value in fields(data) if number == 10 and isinstance(value, bytes)]
        run.tags = tuple(tag.decode("utf-8", "backslashreplace") for tag in tags)
        if 4 in by_number:
            settings.append(by_number[4])

    def _rows(self, run: ForeignRun, files: list[Path]) -> Iterator[Row]:
        run.left_out.clear()
        run.status, run.failure = "crashed", "W&B has no record of its end: it was killed, or it still runs"
        for file in files:
            start = 0.0
            for number, data in _records(file, run.lose):
                try:
                    if number == _HISTORY:
                        row = self._row(data, start, run)
                        if row is not None:
                            yield row
                    elif number == _STATS:
                        yield from _system(data)
                    elif number == _RUN:
                        start = moment(first(data, 17))
                        run.started = run.started or start or None
                        _settings(first(data, 4))
                    elif number == _CONFIG:
                        _settings(data)
                    elif number == _EXIT:
                        code = signed(first(data, 1))
                        run.status = "finished" if code == 0 else "crashed"
                        run.failure = "" if code == 0 else f"exit code {code}, says W&B"
                    elif number in _SKIPPED:
                        run.leave_out(_SKIPPED[number])
                except BadMessage:
                    run.lose("records that cannot be read")

    def _row(self, data: bytes, start: float, run: ForeignRun) -> Row | None:
        logged: dict[str, Any] = {}
        step: int | None = None
        for number, value in fields(data):
            if number == 1 and isinstance(value, bytes):
                _put(logged, *_item(value))
            elif number == 2 and isinstance(value, bytes):
                step = signed(first(value, 1))
        values: dict[str, Any] = {}
        for name, content in logged.items():
            _flatten(name, content, values, run)
        stamp, runtime = values.pop("_timestamp", None), values.pop("_runtime", None)
        step_given = values.pop("_step", step)
        if not values:
            return None
        time = float(stamp) if isinstance(stamp, (int, float)) else start + float(runtime or 0.0)
        clocks = clocks_of(values)
        if isinstance(step_given, int):
            clocks[self._clock] = step_given
        return Row(time, clocks, values)


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        if path.suffix == ".wandb":
            yield path
    elif path.is_dir():
        yield from files_below(path, "*.wandb")


def _records(file: Path, lose: Callable[[str], None], until: int = 0) -> Iterator[tuple[int, bytes]]:
    """(field number, message) of each record, in the order of the file; a partially written one is skipped.

    Args:
      until: stop before the first record of that number.
    """
    for record in blocks_of(file, _HEADER, "files that do not begin as a .wandb file of version 0 does", lose):
        try:
            pair = next(
                (
                    (number, value)
                    for number, value in fields(record)
                    if isinstance(value, bytes) and number not in _ENVELOPE
                ),
                None,
            )
        except BadMessage:
            lose("records that cannot be read")
            continue
        if pair is None:
            continue
        if pair[0] == until:
            return
        yield pair


def _item(data: bytes) -> tuple[list[str], Any]:
    """The names of an item from the outermost to the innermost, and its value."""
    names: list[str] = []
    value: Any = None
    for number, content in fields(data):
        if not isinstance(content, bytes):
            continue
        if number in (1, 2):
            if content:
                names.append(content.decode("utf-8", "backslashreplace"))
        elif number == 16:
            try:
                value = json.loads(content)
            except (ValueError, RecursionError):  # W&B 0.19 writes some texts bare, such as the names of GPUs
                value = content.decode("utf-8", "backslashreplace")
    return names, value


def _put(into: dict[str, Any], names: list[str], value: object) -> None:
    """Put a value at its nested names."""
    for name in names[:-1]:
        inner = into.get(name)
        if not isinstance(inner, dict):
            inner = into[name] = {}
        into = inner
    if names:
        into[names[-1]] = value


def _flatten(name: str, value: object, values: dict[str, Any], run: ForeignRun) -> None:
    """Put the value logged under a name into `values`, or count it as left out."""
    if isinstance(value, (bool, int, float, str)):
        values[name] = value
    elif isinstance(value, dict) and "_type" in value:
        histogram = _histogram(value) if value["_type"] == "histogram" else None
        if histogram is not None:
            values[name] = histogram
        else:
            run.leave_out(_FORMS.get(str(value["_type"]), f"values of the type {str(value['_type'])[:40]}"))
    elif isinstance(value, dict):
        for inner, content in value.items():
            _flatten(f"{name}.{inner}", content, values, run)
    elif value is not None:
        run.leave_out("lists")


def _histogram(value: dict[str, Any]) -> Histogram | None:
    try:
        if "packedBins" in value:
            packed = value["packedBins"]
            low, size, count = float(packed["min"]), float(packed["size"]), int(packed["count"])
            if not 0 < count <= 10_000:
                return None
            edges = [low + size * n for n in range(count + 1)]
        else:
            edges = [float(edge) for edge in value["bins"]]
        return Histogram(edges, [float(count) for count in value["values"]])
    except (KeyError, TypeError, ValueError):
        return None


def _config_of(updates: list[bytes]) -> dict[str, Any]:
    """The configuration after its records, in their order."""
    config: dict[str, Any] = {}
    for data in updates:
        with contextlib.suppress(BadMessage):  # counted when the rows are read
            for names, content in _settings(data):
                _put(config, names, content)
    return config


def _settings(data: int | bytes | None) -> list[tuple[list[str], Any]]:
    """(names, value) of each setting in a record of the configuration, without wandb's own."""
    updates = [value for number, value in fields(data) if number == 1] if isinstance(data, bytes) else []
    items = [_item(value) for value in updates if isinstance(value, bytes)]
    return [(names, value) for names, value in items if names and names[0] != "_wandb"]


def _system(data: bytes) -> Iterator[Row]:
    """System metrics, as `system/<name>`."""
    time, values = 0.0, {}
    for number, value in fields(data):
        if number == 2 and isinstance(value, bytes):
            time = moment(value)
        elif number == 3 and isinstance(value, bytes):
            names, content = _item(value)
            if isinstance(content, (int, float)):
                values[f"system/{'.'.join(names)}"] = content
    if values and time:
        yield Row(time, {}, values)
