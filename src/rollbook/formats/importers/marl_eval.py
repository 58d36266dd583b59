"""marl-eval's JSON files, as written by Mava, Stoix, BenchMARL and JaxMARL's users: every evaluation of every seed.

The layout is that of marl_eval/json_tools: environment, task, algorithm, run, then `step_<n>` with `step_count`,
`elapsed_time` and lists with one number per evaluation episode, and `absolute_metrics`.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
from pathlib import Path

from rollbook.formats.importers._metadata import config_near
from rollbook.protocols import ForeignRun, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_LONGEST = 512 * 1024 * 1024
_RETURNS = ("mean_episode_return", "episode_return", "return", "returns", "mean_return")
_LENGTHS = ("episode_length", "mean_episode_length")
_STEP = re.compile(r"step_(\d+)")


class MarlEval:
    """marl-eval's JSON (Mava, Stoix, BenchMARL): a run for each environment, task, algorithm and seed.

    Means of an evaluation are rows at `step_count`, named like the metric. If a metric has a number for each episode,
    the episodes are also imported. The algorithm is the group; environment and task are in the configuration.
    `absolute_metrics` are `absolute/<metric>` at the last step.
    """

    name = "marl_eval"
    what = "marl-eval results"
    files = ("metrics.json", "*marl_eval*.json")

    def finds(self, path: Path) -> bool:
        """Whether there is such a file."""
        return any(_runs_in(file) for file in _files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """All runs of each file, in the file's order."""
        taken: set[str] = set()
        for file in _files(path):
            settings = config_near(file.parent)
            for environment, task, algorithm, name, steps in _runs_in(file):
                called = f"{task}-{algorithm}-{name}"
                if called in taken:
                    called = f"{environment}-{called}"
                n = 2
                while called in taken:
                    called, n = f"{task}-{algorithm}-{name}-{n}", n + 1
                taken.add(called)
                seed = re.search(r"(\d+)$", name)
                config = {**settings, "environment": environment, "task": task, "algorithm": algorithm}
                run = ForeignRun(called, config=config, seed=int(seed[1]) if seed else None, group=algorithm)
                run.files = [file]
                run.rows = functools.partial(self._rows, file, steps, run)
                yield run
        if path.is_file() and not taken:
            run = ForeignRun(path.stem, files=[path])
            run.rows = functools.partial(self._rows, path, {}, run)
            yield run

    def _rows(self, file: Path, steps: dict[str, Any], run: ForeignRun) -> Iterator[Row]:
        run.left_out.clear()
        if not steps:
            run.lose("files that cannot be read")
        found = sorted((int(match[1]), step) for key, step in steps.items() if (match := _STEP.fullmatch(key)))
        passed = [float(step.get("elapsed_time", 0.0) or 0.0) for _n, step in found if isinstance(step, dict)]
        start = os.stat(file).st_mtime - max(passed, default=0.0)
        clocks: dict[str, int] = {}
        moment = start
        for n, step in found:
            if not isinstance(step, dict) or not _is_number(step.get("step_count")):
                run.lose("evaluations without a step_count")
                continue
            clocks = {"env_step": int(step["step_count"])}
            moment = start + float(step.get("elapsed_time", 0.0) or 0.0)
            values = dict(_means(step, "", run))
            if values:
                yield Row(moment, clocks, values)
            yield from _episodes(moment, clocks, step, n)
        absolute = steps.get("absolute_metrics")
        if isinstance(absolute, dict) and (values := dict(_means(absolute, "absolute/", run))):
            yield Row(moment, clocks, values)


def _means(step: dict[str, Any], prefix: str, run: ForeignRun) -> Iterator[tuple[str, float]]:
    for key, cell in step.items():
        if key in ("step_count", "elapsed_time"):
            continue
        numbers = cell if isinstance(cell, list) else [cell]
        if not numbers or not all(_is_number(number) for number in numbers):
            run.leave_out("metrics that are no numbers")
            continue
        yield prefix + key, math.fsum(numbers) / len(numbers) if all(map(math.isfinite, numbers)) else float("nan")


def _episodes(moment: float, clocks: dict[str, int], step: dict[str, Any], n: int) -> Iterator[Row]:
    gained: list[Any] = next(
        (step[key] for key in _RETURNS if isinstance(step.get(key), list) and len(step[key]) > 1), []
    )
    lengths: list[Any] = next((step[key] for key in _LENGTHS if isinstance(step.get(key), list)), [])
    for k, number in enumerate(gained):
        if not _is_number(number):
            continue
        episode: dict[str, Any] = {"episode_id": f"evaluation-{n}-{k}", "return": float(number)}
        if len(lengths) == len(gained) and _is_number(lengths[k]):
            episode["length"] = int(lengths[k])
        yield Row(moment, clocks, episode, scope="test", table="episodes")


def _runs_in(file: Path) -> list[tuple[str, str, str, str, dict[str, Any]]]:
    try:
        if file.stat().st_size > _LONGEST:
            return []
        parsed = json.loads(file.read_bytes().decode("utf-8", "backslashreplace"))
    except (OSError, ValueError, RecursionError):
        return []
    found = []
    for environment, tasks in _items(parsed):
        for task, algorithms in _items(tasks):
            for algorithm, runs in _items(algorithms):
                for name, steps in _items(runs):
                    if isinstance(steps, dict) and any(_STEP.fullmatch(str(key)) for key in steps):
                        found.append((str(environment), str(task), str(algorithm), str(name), steps))
    return found


def _items(value: object) -> list[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == ".json" else []
    if not path.is_dir():
        return []
    return sorted(file for file in path.glob("*.json") if file.name == "metrics.json" or "marl_eval" in file.name)
