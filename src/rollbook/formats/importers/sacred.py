"""Sacred's runs, as its FileStorageObserver writes them: `<number>/run.json` with config, metrics and info."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

from rollbook.protocols import ForeignRun, Row
from rollbook.schema.counters import clocks_of
from rollbook.schema.seeds import named_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

_RUN, _CONFIG, _METRICS, _INFO, _OUT = "run.json", "config.json", "metrics.json", "info.json", "cout.txt"
_LONGEST = 512 * 1024 * 1024
_LONGEST_TEXT = 1_000_000
_STATUS = {"COMPLETED": "finished", "FAILED": "crashed", "INTERRUPTED": "killed", "TIMEOUT": "killed"}


class Sacred:
    """Sacred's runs (FileStorageObserver): metrics with their steps and times, configuration, seed, output, its end.

    Lists of equal length in info.json, as PyMARL keeps its results, are values, too, along the list `<name>_T` if there
    is one; their rows have no times. The experiment's name is the group.

    Args:
      clock: the clock that Sacred's steps count.
    """

    name = "sacred"
    what = "Sacred run"
    files = (_RUN,)

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether it is the folder of a run of Sacred."""
        about = _read(path / _RUN)
        return _is_run(about) or (not about and (path / _RUN).is_file() and (path / _METRICS).is_file())

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """The run of a folder."""
        folder = path.resolve()
        about = _read(folder / _RUN)
        is_damaged = not about and (folder / _METRICS).is_file()
        if not _is_run(about) and not is_damaged:
            return []
        config = _read(folder / _CONFIG)
        experiment = about.get("experiment")
        called = experiment.get("name") if isinstance(experiment, dict) else None
        run = ForeignRun(folder.name, config=config, seed=named_seed(config), folder=folder, clocks=(self._clock,))
        run.group = called if isinstance(called, str) else None
        run.files = [file for name in (_RUN, _CONFIG, _METRICS, _INFO, _OUT) if (file := folder / name).is_file()]
        run.sources["config"] = str(folder / _CONFIG)
        status = str(about.get("status") or "")
        run.started, run.ended = _moment(about.get("start_time")), _moment(about.get("stop_time"))
        run.status = _STATUS.get(status, "crashed")
        if run.status != "finished":
            trace = about.get("fail_trace")
            last = str(trace[-1]).strip() if isinstance(trace, list) and trace else ""
            run.failure = f"{status or 'no status'}, says Sacred{': ' if last else ''}{last}"
        parts: dict[str, Callable[[], Iterable[Row]]] = {}
        if (folder / _METRICS).is_file():
            parts[_METRICS] = lambda: self._metrics(folder / _METRICS, run)
        if (folder / _INFO).is_file():
            parts[_INFO] = lambda: self._info(folder / _INFO, run)
        if (folder / _OUT).is_file():
            parts[_OUT] = lambda: self._output(folder / _OUT, run)
        if is_damaged:
            parts[_RUN] = lambda: _damaged(run, _RUN)
        run.give(parts)
        return [run]

    def _metrics(self, file: Path, run: ForeignRun) -> Iterator[Row]:
        rows: list[tuple[float, int, str, float]] = []
        if not (series_of := _read(file)):
            yield from _damaged(run, file.name)
        for name, series in series_of.items():
            lists = [series.get(part) for part in ("steps", "timestamps", "values")] if isinstance(series, dict) else []
            if len(lists) != 3 or not all(isinstance(part, list) for part in lists):
                run.lose("metrics without steps, times and values")
                continue
            for step, stamp, value in zip(*lists, strict=False):
                number, moment = _number(value), _moment(stamp)
                if number is None or moment is None or not isinstance(step, (int, float)):
                    run.leave_out("values that are no numbers")
                else:
                    rows.append((moment, int(step), name, number))
        rows.sort(key=lambda row: row[:2])
        for moment, step, name, number in rows:
            yield Row(moment, {**clocks_of({name: number}), self._clock: step}, {name: number})

    def _info(self, file: Path, run: ForeignRun) -> Iterator[Row]:
        moment = file.stat().st_mtime
        if not _is_json(file):
            yield from _damaged(run, file.name)
        lists = {name: value for name, value in _read(file).items() if isinstance(value, list) and value}
        for name, values in lists.items():
            steps = lists.get(f"{name}_T")
            if name.endswith("_T") and name[:-2] in lists:
                continue
            for n, value in enumerate(values):
                number = _number(value)
                if number is None:
                    run.leave_out("values that are no numbers")
                    continue
                step = steps[n] if steps is not None and n < len(steps) else n
                clocks = (
                    {"env_step" if steps is not None else self._clock: int(step)} if _number(step) is not None else {}
                )
                yield Row(moment, clocks, {name: number})

    def _output(self, file: Path, run: ForeignRun) -> Iterator[Row]:
        with open(file, encoding="utf-8", errors="backslashreplace") as stream:
            text = stream.read(_LONGEST_TEXT)
        if text.strip():
            yield Row(file.stat().st_mtime, {}, {"cout": text})


def _is_run(about: dict[str, Any]) -> bool:
    return isinstance(about.get("experiment"), dict) and "status" in about and "start_time" in about


def _read(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _LONGEST:
            return {}
        parsed = json.loads(file.read_bytes().decode("utf-8", "backslashreplace"))
    except (OSError, ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _damaged(run: ForeignRun, name: str) -> tuple[Row, ...]:
    run.lose(f"files {name} that are no JSON")
    return ()


def _is_json(file: Path) -> bool:
    try:
        json.loads(file.read_bytes().decode("utf-8", "backslashreplace"))
    except (OSError, ValueError, RecursionError):
        return False
    return True


def _number(value: object) -> float | None:
    """A number, also as jsonpickle writes numpy's."""
    if isinstance(value, dict):
        value = value.get("value")
    return float(value) if isinstance(value, (int, float)) else None


def _moment(text: object) -> float | None:
    """Unix seconds of an ISO time; Sacred's are UTC."""
    if not isinstance(text, str):
        return None
    try:
        read = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=datetime.UTC)).timestamp()
