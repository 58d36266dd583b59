"""SwanLab's runs: the log `run-<id>.swanlab` in `swanlog/run-*`, as SwanLab 0.10 writes it (version 2).

A log of records like W&B's (`_blocks`). A record is the message Record of swanlab/proto/swanlab/record/v1; the field
numbers are those of that file, and of run_pb2 and data_pb2 next to it.
"""

from __future__ import annotations

from pathlib import Path

from rollbook.formats.importers._blocks import blocks_of
from rollbook.formats.importers._metadata import config_near, with_own_names
from rollbook.formats.importers._wire import BadMessage, double, fields, first, moment, signed
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.counters import clocks_of
from rollbook.schema.seeds import named_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_HEADER = b":SWL" + (0xE1D6).to_bytes(2, "little") + b"\2"
_WRONG = "files that do not begin as a .swanlab file of version 2 does"
_START, _FINISH, _SCALAR = 10, 11, 13
_SKIPPED = {14: "pictures, videos and texts", 16: "lines of console output", 20: "saved files"}
_STATES = {1: "finished", 2: "crashed", 3: "killed"}


class SwanLab:
    """SwanLab's runs (`*.swanlab`, version 2): scalars, configuration, project, group, tags, notes, how it ended.

    Scalars of one step are one row. Images, videos, texts and console output are left out and counted.

    Args:
      clock: the clock that SwanLab's steps count.
    """

    name = "swanlab"
    what = "SwanLab run"
    files = ("*.swanlab",)

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether there are `.swanlab` files."""
        return bool(_files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each file, with the name of its experiment, and the id if two have the same name."""
        made = [self._run(file) for file in _files(path)]
        return with_own_names((run, run.files[0].stem.removeprefix("run-")) for run in made)

    def _run(self, file: Path) -> ForeignRun:
        run = ForeignRun(file.stem.removeprefix("run-"), clocks=(self._clock,), files=[file])
        settings = config_near(file.parent / "files")
        run.config = {
            key: cell["value"] if isinstance(cell, dict) and "value" in cell else cell for key, cell in settings.items()
        }
        run.seed = named_seed(run.config)
        for record in blocks_of(file, _HEADER, _WRONG, lambda _what: None):
            try:
                start = first(record, _START)
                if isinstance(start, bytes):
                    fields_of_run = [
                        (n, value.decode("utf-8", "backslashreplace"))
                        for n, value in fields(start)
                        if isinstance(value, bytes)
                    ]
                    text = dict(fields_of_run)
                    run.name, run.notes = text.get(4) or run.name, text.get(5, "")
                    run.project, run.group, run.job_type = text.get(1) or None, text.get(7) or None, text.get(8) or None
                    run.tags = tuple(tag for n, tag in fields_of_run if n == 6)
                    break
            except BadMessage:
                continue
        run.rows = lambda: self._rows(file, run)
        return run

    def _rows(self, file: Path, run: ForeignRun) -> Iterator[Row]:
        run.left_out.clear()
        run.status = "crashed"  # without an end record: it was killed, or it still runs
        values: dict[str, Any] = {}
        step, stamp = None, 0.0
        for record in blocks_of(file, _HEADER, _WRONG, run.lose):
            try:
                by_number = {number: value for number, value in fields(record) if number >= _START}
                if isinstance(scalar := by_number.get(_SCALAR), bytes):
                    of = dict(fields(scalar))
                    key, at = of.get(1), signed(of.get(2))
                    value = of.get(5)
                    number = double(first(value, 1)) if isinstance(value, bytes) else None
                    name = key.decode("utf-8", "backslashreplace") if isinstance(key, bytes) else ""
                    if at != step or name in values:
                        if values:
                            yield self._row(stamp, step, values)
                        values, step, stamp = {}, at, moment(of.get(4))
                    values[name] = 0.0 if number is None else number
                elif isinstance(end := by_number.get(_FINISH), bytes):
                    run.status = _STATES.get(signed(first(end, 1)), "crashed")
                else:
                    for number in by_number:
                        if number in _SKIPPED:
                            run.leave_out(_SKIPPED[number])
            except BadMessage:
                run.lose("records that cannot be read")
        if values:
            yield self._row(stamp, step, values)

    def _row(self, stamp: float, step: int | None, values: dict[str, Any]) -> Row:
        return Row(stamp, {**clocks_of(values), self._clock: step or 0}, values)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == ".swanlab" else []
    return sorted(file for file in path.rglob("*.swanlab") if file.is_file()) if path.is_dir() else []
