"""DVCLive's folders: `dvclive/metrics.json` with `plots/metrics/**/<key>.tsv`, one file for each metric."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

from rollbook.formats.importers._metadata import describe, yaml_of
from rollbook.formats.importers._plain import flat, plain
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.counters import clocks_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_SUMMARY, _PARAMS, _PIPELINE = "metrics.json", "params.yaml", "dvc.yaml"
_PLOTS = (("plots", "metrics"), ("plots", "scalars"), ("scalars",))
"""Where a folder has its metrics: DVCLive 2 and 3, 1, and 0.9 to 0.12."""

_LONGEST = 1_000_000


class DvcLive:
    """DVCLive's folders: metrics along their steps, times if it logged them, params.yaml, values without a plot.

    Values of one step are one row. Parameters that the folder lacks are those of params.yaml next to dvc.yaml, in the
    folder above.

    Args:
      clock: the clock that DVCLive's steps count.
    """

    name = "dvclive"
    what = "DVCLive run"
    files = (_SUMMARY, "plots/metrics/*.tsv", "plots/scalars/*.tsv")

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether it is a folder that DVCLive wrote."""
        return bool(_series_of(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """The run of a folder."""
        folder = path.resolve()
        is_inner = folder.parts[-2:] in _PLOTS
        if is_inner and (folder.parents[1] / _SUMMARY).is_file():
            return []  # it is given by its summary
        folder = folder.parents[1] if is_inner else folder
        series = _series_of(folder)
        if not series:
            return []
        summary = [file] if (file := folder / _SUMMARY).is_file() else []
        run = ForeignRun(folder.name, files=[*series.values(), *summary], folder=folder, clocks=(self._clock,))
        run.details = functools.partial(_describe, run, folder)
        run.rows = functools.partial(self._rows, folder, run, series)
        return [run]

    def _rows(self, folder: Path, run: ForeignRun, series: dict[str, Path]) -> Iterator[Row]:
        run.left_out.clear()
        rows: dict[tuple[int, int], tuple[float, dict[str, Any]]] = {}
        for key, file in series.items():
            moment, repeated = file.stat().st_mtime, {}  # type: float, dict[int, int]
            for stamp, step, value in _points(file, run):
                again = repeated.get(step, -1) + 1  # a step that is logged twice is two rows
                repeated[step] = again
                there = rows.setdefault((again, step), (moment if stamp is None else stamp, {}))
                there[1][key] = value
        last = 0
        for (_again, step), (moment, values) in sorted(rows.items()):
            last = max(last, step)
            yield Row(moment, {**clocks_of(values), self._clock: step}, values)
        values = {key: value for key, value in _summary_of(folder, run).items() if key not in series and key != "step"}
        if values:
            yield Row((folder / _SUMMARY).stat().st_mtime, {self._clock: last}, values)


def _points(file: Path, run: ForeignRun) -> Iterator[tuple[float | None, int, object]]:
    """(unix seconds or None, step, value) of the lines of a file."""
    text = file.read_bytes().decode("utf-8", "backslashreplace")
    lines = text.split("\n")
    if lines.pop():
        run.leave_out("lines that are half written")
    names, *others = [line.rstrip("\r").split("\t") for line in lines] or [[]]
    step_at = names.index("step") if "step" in names else None
    time_at = names.index("timestamp") if "timestamp" in names else None
    if step_at is None or len(names) < 2:
        run.lose("files without a column step")
        return
    for cells in others:
        try:
            if len(cells) != len(names):
                raise ValueError
            value = plain(cells[-1])
            if isinstance(value, str):
                raise ValueError
            yield None if time_at is None else float(cells[time_at]) / 1000, int(cells[step_at]), value
        except ValueError:
            if any(cells):
                run.lose("lines that are no step and value")


def _summary_of(folder: Path, run: ForeignRun) -> dict[str, Any]:
    """The latest value of each metric, by the names of the series; {} without a summary."""
    values: dict[str, Any] = {}
    file = folder / _SUMMARY
    if file.is_file():
        try:
            flat("", json.loads(file.read_bytes().decode("utf-8", "backslashreplace")), values, run.leave_out)
        except (ValueError, RecursionError):
            run.lose(f"files {_SUMMARY} that are no JSON")
    return {key: value for key, value in values.items() if isinstance(value, (bool, int, float))}


def _describe(run: ForeignRun, folder: Path) -> None:
    of_pipeline = [folder.parent] if (folder.parent / _PIPELINE).is_file() else []
    for parent in (folder, *of_pipeline):
        file = parent / _PARAMS
        try:
            text = file.read_text(encoding="utf-8") if file.stat().st_size <= _LONGEST else ""
            config = yaml_of(text)
        except (OSError, ValueError):
            continue
        if isinstance(config, dict) and config:
            run.sources["config"] = str(file)
            describe(run, folder, config)
            return
    describe(run, folder)


def _series_of(folder: Path) -> dict[str, Path]:
    """The file of each metric, by its name; {} if it is no folder of DVCLive."""
    for parts in _PLOTS:
        top = folder.joinpath(*parts)
        if not top.is_dir() or (parts[0] != "plots" and not (folder / _SUMMARY).is_file()):
            continue
        files = [Path(inside, name) for inside, _folders, names in os.walk(top) for name in names]
        series = {
            file.relative_to(top).with_suffix("").as_posix(): file for file in sorted(files) if file.suffix == ".tsv"
        }
        if series:
            return series
    return {}
