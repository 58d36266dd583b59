"""Unity ML-Agents' run_logs/timers.json: the last values of a training whose event files were not kept."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

from rollbook.formats.importers._metadata import describe
from rollbook.protocols import ForeignRun, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_NAME, _LOGS = "timers.json", "run_logs"
_LONGEST = 64 * 1024 * 1024
_BEGINNING = 4096
_MEAN = ".mean"
_STEP = "Step"
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class MLAgents:
    """Unity ML-Agents' timers.json: the last value of every statistic of each behavior, at its last step.

    The names are those of the event files (`Environment/Cumulative Reward`). If the folder has event files of a
    behavior, they have its curves, and nothing is read from here. Sums over agents are left out; the file's own timings
    are of the whole program and have no table.
    """

    name = "ml_agents"
    what = "ML-Agents timers"
    files = (_NAME,)

    def finds(self, path: Path) -> bool:
        """Whether it is a folder with such a file, and a behavior without event files."""
        file = _file_of(path)
        return bool(_behaviors(file)) or _is_damaged(file)

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each behavior; of a damaged file one without rows."""
        file = _file_of(path).resolve()
        folder = _run_folder(file)
        if _is_damaged(file):
            run = ForeignRun(folder.name, files=[file], folder=folder)
            run.rows = functools.partial(_rows, file, "", run)
            yield run
            return
        behaviors = _behaviors(file)
        metadata = _read(file).get("metadata")
        times = metadata if isinstance(metadata, dict) else {}
        for behavior in sorted(behaviors):
            name = folder.name if len(behaviors) == 1 else f"{folder.name}-{behavior}"
            run = ForeignRun(name, files=[file], folder=folder)
            run.started, run.ended = _seconds(times.get("start_time_seconds")), _seconds(times.get("end_time_seconds"))
            run.details = functools.partial(describe, run, folder)
            run.rows = functools.partial(_rows, file, behavior, run)
            yield run


def _rows(file: Path, behavior: str, run: ForeignRun) -> Iterator[Row]:
    run.left_out.clear()
    gauges = _read(file).get("gauges")
    if not isinstance(gauges, dict):
        run.lose("files timers.json that cannot be read")
        return
    values: dict[str, Any] = {}
    clocks: dict[str, int] = {}
    for key, gauge in gauges.items():
        name = _name(key, behavior)
        if name is None:
            continue
        value = gauge.get("value") if isinstance(gauge, dict) else None
        if not isinstance(value, (int, float)):
            run.leave_out("values that are no numbers")
        elif name == _STEP:
            clocks["env_step"] = int(value)
        else:
            values[name] = float(value)
    if values:
        moment = run.ended if run.ended is not None else file.stat().st_mtime
        yield Row(moment, clocks, values)


def _name(key: str, behavior: str) -> str | None:
    """The tag of a statistic: `Walker.Policy.LearningRate.mean` is `Policy/Learning Rate`; None if it is another's."""
    if not (key.startswith(f"{behavior}.") and key.endswith(_MEAN)):
        return None
    parts = key[len(behavior) + 1 : -len(_MEAN)].split(".")
    return "/".join(_WORDS.sub(" ", part) for part in parts)


def _behaviors(file: Path) -> set[str]:
    """The behaviors of a file, without those that have event files in its folder."""
    gauges = _read(file).get("gauges")
    names = gauges if isinstance(gauges, dict) else {}
    ending = f".{_STEP}{_MEAN}"
    found = {name.removesuffix(ending) for name in names if name.endswith(ending)}
    folder = _run_folder(file)
    return {each for each in found if not any((folder / each).glob("*tfevents*"))}


def _is_damaged(file: Path) -> bool:
    """Whether it was a file of ML-Agents and cannot be read."""
    if file.name != _NAME or not file.is_file() or _read(file):
        return False
    with open(file, "rb") as stream:
        return b'"gauges"' in stream.read(_BEGINNING)


def _run_folder(file: Path) -> Path:
    """The folder of the training."""
    return file.parent.parent if file.parent.name == _LOGS else file.parent


def _file_of(path: Path) -> Path:
    return path / _NAME if path.is_dir() else path


def _read(file: Path) -> dict[str, Any]:
    try:
        if file.name != _NAME or file.stat().st_size > _LONGEST:
            return {}
        parsed = json.loads(file.read_bytes().decode("utf-8", "backslashreplace"))
    except (OSError, ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _seconds(text: object) -> float | None:
    try:
        return float(str(text))
    except ValueError:
        return None
