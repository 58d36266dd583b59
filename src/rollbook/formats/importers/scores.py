"""Returns without a tool: .npy, lists in JSON, numbers in text files; gym's stats.json and keras-rl's log.json."""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path

from rollbook.errors import BadInput
from rollbook.formats.importers._beside import describe
from rollbook.formats.importers._labels import labels_of
from rollbook.formats.importers._paths import read_path
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.counters import is_reading, x_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_WORDS = r"(?:rewards?|returns?|scores?|episodes?|evaluations?|evals?|results?|success(?:es)?|lengths?|ep_rew\w*)"
_TELLING = re.compile(rf"(?:^|.*[-_. ]){_WORDS}(?:[-_. ].*|\d*$)", re.IGNORECASE)
"""File names that say that what is inside are results."""

_OF_TEST = re.compile(r"(?:^|[-_. ])(?:evals?|evaluations?|tests?|testing)(?:[-_. ]|$)", re.IGNORECASE)
_OF_A_SEED = re.compile(r"(?:seed|run|trial|s|rep)?[-_ ]?(?P<n>\d+)", re.IGNORECASE)
_LONGEST = 64 * 1024 * 1024
_MOST = 5_000_000
_GYM = ("episode_rewards", "episode_lengths", "timestamps")


class Scores:
    """Files with nothing but results: a row of numbers in .npy, .json or .txt, lists by name, gym's *.stats.json.

    A single row of numbers is `eval_return` if the file's name says that it is of tests, else `returns`; its place is
    the clock `episode`, or `step` for tests. Of lists of equal length by name, one may be the x-axis. A list for each
    seed is a run each. Anything else would be a guess and is refused.
    """

    name = "scores"
    what = "file of scores"
    files = (
        "*.stats.json", "log.json", "history.json", "*scores*.json", "*rewards*.json", "*returns*.json",
        "*results*.json", "training_log*.json", "*scores*.txt", "*rewards*.txt", "*returns*.txt",
        "*scores*.csv", "*rewards*.csv", "*returns*.csv",
    )  # fmt: skip
    looks_into = (".npy",)

    def __init__(self) -> None:
        self.refused: dict[Path, str] = {}

    def finds(self, path: Path) -> bool:
        """Whether it is a file of results, or a folder that holds some."""
        return any(True for file in _files(path) for _ in self._of_file(file))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each row of numbers."""
        made = [run for file in _files(path) for run in self._of_file(file)]
        if path.is_file():
            file = path.resolve()
            if file in self.refused:
                raise BadInput(f"import {path}: {self.refused[file]}")
            if not made:
                made = [ForeignRun(file.stem, files=[file], home=file.parent, part=file.stem)]
                made[0].rows = functools.partial(_none, made[0])
            for run in made:
                run.name = run.part
        elif len(made) == 1:
            made[0].part = ""
        return made

    def _of_file(self, file: Path) -> Iterator[ForeignRun]:
        content = _content(file)
        if content is None:
            return
        if isinstance(content, str):
            self.refused[file] = content
            return
        for mark, columns, tests in _series(file, content):
            run = ForeignRun(f"{file.parent.name}-{file.stem}{mark}", files=[file], home=file.parent)
            run.part = f"{file.stem}{mark}"
            seeded = _OF_A_SEED.fullmatch(mark.lstrip("-"))
            if seeded is not None and "s" in mark.lower():
                run.seed, run.sources["seed"] = int(seeded["n"]), f"{file.name}, the name of a list"
            describe(run, file.parent)
            run.rows = functools.partial(_rows, file, run, columns, tests)
            yield run


def _none(run: ForeignRun) -> tuple[Row, ...]:
    run.left_out.clear()
    run.lose("files that hold no row of numbers")
    return ()


def _rows(file: Path, run: ForeignRun, columns: dict[str, list[Any]], tests: bool) -> Iterator[Row]:
    run.left_out.clear()
    moment = os.stat(file).st_mtime
    said = str(labels_of(file).get("x", ("", ""))[0])
    axis = said if said in columns else next((name for name in columns if x_clock(name)), "")
    clock = (x_clock(axis) or "step") if axis else ("step" if tests else "episode")
    episodes = all(name in columns for name in _GYM)
    steps = 0
    for n in range(len(next(iter(columns.values())))):
        values = {name: list_[n] for name, list_ in columns.items() if name != axis}
        if episodes:
            steps += int(values["episode_lengths"])
            clocks = {"env_step": steps, "episode": n + 1}
            moment = float(values.pop("timestamps"))
            yield Row(
                moment, clocks, {"train/return": values["episode_rewards"], "train/length": values["episode_lengths"]}
            )
            continue
        place = columns[axis][n] if axis else n
        numbers = {name: value for name, value in values.items() if isinstance(value, (int, float))}
        if len(numbers) < len(values):
            run.leave_out("values that are no numbers", len(values) - len(numbers))
        if numbers:
            yield Row(moment, {clock: int(place)} if is_reading(place) else {}, numbers)


def _series(file: Path, content: Any) -> Iterator[tuple[str, dict[str, list[Any]], bool]]:
    """For each run in a file: what its name ends in, its lists by name, and whether they are of tests."""
    tests = _OF_TEST.search(file.stem) is not None
    key = "eval_return" if tests else "returns"
    if isinstance(content, list):
        yield "", {key: content}, tests
        return
    seeds = [name for name in content if _OF_A_SEED.fullmatch(name)]
    if len(seeds) > 1 and len(seeds) == len(content):
        for name in seeds:
            yield f"-{name}", {key: content[name]}, tests
        return
    yield "", content, tests


def _content(file: Path) -> Any:
    """A list of numbers, or lists of one length by name; a text that says why it is neither; None for other files."""
    try:
        if not 0 < file.stat().st_size <= _LONGEST:
            return None
        if file.suffix == ".npy":
            return _array(file)
        with open(file, encoding="utf-8", errors="backslashreplace") as stream:
            text = stream.read()
    except OSError:
        return None
    if file.suffix in (".txt", ".csv"):
        try:
            numbers = [float(word) for word in text.replace(",", " ").split()]
        except ValueError:
            return None
        lines = [line for line in text.splitlines() if line.strip()]
        return numbers if len(lines) in (1, len(numbers)) and len(numbers) > 1 else None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _of_json(parsed)


def _of_json(parsed: object) -> Any:
    if isinstance(parsed, list) and len(parsed) > 1:
        if all(type(value) in (int, float) for value in parsed):
            return parsed
        if all(isinstance(row, dict) for row in parsed):
            names = dict.fromkeys(name for row in parsed for name in row)
            columns = {str(name): [row.get(name) for row in parsed] for name in names}
            return columns if any(x_clock(name) for name in columns) else None
    if isinstance(parsed, dict):
        lists = {str(name): value for name, value in parsed.items() if isinstance(value, list) and len(value) > 1}
        lists = {name: value for name, value in lists.items() if all(type(one) in (int, float) for one in value)}
        if lists and (all(name in lists for name in _GYM) or len({len(value) for value in lists.values()}) == 1):
            return lists
    return None


def _array(file: Path) -> Any:
    told = read_path([file.stem])
    if not _TELLING.match(file.stem) and not (told.algo and told.env):
        return None
    import numpy as np

    try:
        array = np.load(file, allow_pickle=False, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return "It holds objects, which are not read, or it is damaged"
    if array.dtype.kind not in "fiub" or array.size > _MOST or array.size < 2:
        return None
    if array.ndim == 2 and 1 in array.shape:
        array = array.reshape(-1)
    if array.ndim != 1:
        return (
            f"{file.name} has the shape {' x '.join(map(str, array.shape))}: which of these are seeds and which are "
            "steps would be a guess. Save a row of numbers for each run, or a table with named columns"
        )
    return np.asarray(array, dtype=np.float64).tolist()


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path.resolve()] if path.suffix in (".npy", ".json", ".txt", ".csv") else []
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return []
    wanted = [name for name in names if name.endswith(".npy") or _NAMES.fullmatch(name)]
    return [file for name in wanted if (file := path.resolve() / name).is_file()]


_NAMES = re.compile(
    r".*\.stats\.json|log\.json|history\.json|training_log.*\.json|.*(?:scores|rewards|returns|results).*\.(?:json|txt|csv)"
)
