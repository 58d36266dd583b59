"""Returns without a tool: .npy, lists in JSON, numbers in text files; gym's stats.json and keras-rl's log.json."""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import os
import re
import zlib
from collections import Counter
from pathlib import Path

from rollbook.errors import BadInput
from rollbook.formats.importers._beside import describe
from rollbook.formats.importers._labels import labels_of
from rollbook.formats.importers._names import SPLITTING, names_of_returns
from rollbook.formats.importers._paths import is_environment, read_path
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
_MOST_RUNS = 2_000
"""A list that says more of its rows than this is no list of runs."""

_UNREAD = {
    ".pkl": "It is a pickle, which can run code when it is read: save a table or a .npy of it",
    ".pickle": "It is a pickle, which can run code when it is read: save a table or a .npy of it",
    ".gz": "It is compressed: unpack it with gunzip --keep",
    ".zip": "It is an archive: unpack it",
    ".xlsx": "It is a spreadsheet: save it as CSV",
    ".parquet": "Which of its columns are what is not known: save it as CSV",
    ".feather": "Which of its columns are what is not known: save it as CSV",
}
"""Endings of files that are not read, and what to do with those whose name says that they hold results."""

_OF_RESULTS = re.compile(
    r"(?:.*[-_. ])?(?:progress|metrics|monitor|history|results?|scores?|rewards?|returns?|evaluations?|"
    r"learning[-_]curves?|training[-_]log)(?:[-_. ].*|\d*)",
    re.IGNORECASE,
)

_GYM = ("episode_rewards", "episode_lengths", "timestamps")


class Scores:
    """Files with nothing but results: a row of numbers in .npy, .json or .txt, lists by name, gym's *.stats.json.

    A single row of numbers is `eval_return` if the file's name says that it is of tests, else `returns`; its place is
    the clock `episode`, or `step` for tests. Lines of two numbers of which the first counts are episode and return. Of
    lists of equal length by name, one may be the x-axis. A list for each seed is a run each. Anything else would be a
    guess and is refused.
    """

    name = "scores"
    what = "file of scores"
    files = (
        "*.stats.json",
        "log.json",
        "history.json",
        "*_history.json",
        "*_metrics.json",
        "score.json",
        "*.json.gz",
        "*scores*.json",
        "*rewards*.json",
        "*returns*.json",
        "*results*.json",
        "training_log*.json",
        "*scores*.txt",
        "*rewards*.txt",
        "*returns*.txt",
        "*scores*.csv",
        "*rewards*.csv",
        "*returns*.csv",
    )
    looks_into = (".npy", ".npz", *_UNREAD)

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
        stem = file.name.removesuffix(".gz").removesuffix(file.suffix if file.suffix != ".gz" else ".json")
        for mark, columns, tests, of_run in _series(file, content):
            run = ForeignRun(f"{file.parent.name}-{stem}{mark}", files=[file], home=file.parent)
            run.part = f"{stem}{mark}"
            run.algo, run.env = str(of_run.get("algo", "")), str(of_run.get("env", ""))
            if is_reading(of_run.get("seed")):
                run.seed, run.sources["seed"] = int(of_run["seed"]), file.name
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
    labelled = str(labels_of(file).get("x", ("", ""))[0])
    axis = labelled if labelled in columns else next((name for name in columns if x_clock(name)), "")
    clock = (x_clock(axis) or "step") if axis else ("step" if tests else "episode")
    episodes = all(name in columns for name in _GYM)
    names = {} if tests or episodes else names_of_returns({key: one[:4] for key, one in columns.items()}, axis)
    steps = 0
    for n in range(len(next(iter(columns.values())))):
        values = {names.get(name, name): list_[n] for name, list_ in columns.items() if name != axis}
        if episodes:
            steps += int(values["episode_lengths"])
            clocks = {"env_step": steps, "episode": n + 1}
            moment = float(values.pop("timestamps"))
            yield Row(
                moment, clocks, {"train/return": values["episode_rewards"], "train/length": values["episode_lengths"]}
            )
            continue
        step = columns[axis][n] if axis else n
        numbers = {name: value for name, value in values.items() if isinstance(value, (int, float))}
        if len(numbers) < len(values):
            run.leave_out("values that are no numbers", len(values) - len(numbers))
        if numbers:
            yield Row(moment, {clock: int(step)} if is_reading(step) else {}, numbers)


def _series(file: Path, content: Any) -> Iterator[tuple[str, dict[str, list[Any]], bool, dict[str, Any]]]:
    """For each run in a file: the end of its name, its lists by name, whether they are of tests, and its fields."""
    tests = _OF_TEST.search(file.stem) is not None
    key = "eval_return" if tests else "returns"
    if isinstance(content, _Several):
        counted = Counter(mark for mark, _columns, _said in content.runs)
        for n, (mark, columns, of_run) in enumerate(content.runs):
            own = f"{mark}-{n}" if counted[mark] > 1 else mark
            yield own, {key if name == "returns" else name: one for name, one in columns.items()}, tests, of_run
        return
    if isinstance(content, list):
        yield "", {key: content}, tests, {}
        return
    seeds = [name for name in content if _OF_A_SEED.fullmatch(name)]
    if len(seeds) > 1 and len(seeds) == len(content):
        for name in seeds:
            yield f"-{name}", {key: content[name]}, tests, {}
        return
    yield "", {key if name == "returns" else name: one for name, one in content.items()}, tests, {}


def _content(file: Path) -> Any:
    """A list of numbers, or lists of one length by name; a text that says why it is neither; None for other files."""
    if file.suffix in _UNREAD and not file.name.endswith(".json.gz"):
        return _UNREAD[file.suffix] if _OF_RESULTS.fullmatch(file.name.partition(".")[0]) else None
    try:
        if not 0 < file.stat().st_size <= _LONGEST:
            return None
        if file.suffix == ".npy":
            return _array(file)
        if file.suffix == ".npz":
            return _arrays(file)
        opened = gzip.open if file.suffix == ".gz" else open
        with opened(file, "rt", encoding="utf-8", errors="backslashreplace") as stream:
            text = str(stream.read(_LONGEST + 1))
    except (OSError, EOFError, zlib.error):
        return None
    if file.suffix in (".txt", ".csv"):
        try:
            numbers = [float(word) for word in text.replace(",", " ").split()]
        except ValueError:
            return None
        lines = [line for line in text.splitlines() if line.strip()]
        if len(numbers) == 2 * len(lines) and all(len(line.replace(",", " ").split()) == 2 for line in lines):
            steps = [int(number) for number in numbers[::2] if is_reading(number)]
            counts = len(steps) == len(lines) > 1 and all(a < b for a, b in itertools.pairwise(steps))
            return {"episode": steps, "returns": numbers[1::2]} if counts else None
        return numbers if len(lines) in (1, len(numbers)) and len(numbers) > 1 else None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _of_json(parsed)


_DREAMERS = {"xs": "step", "ys": "returns"}


class _Several:
    """Several runs in one file: the end of the name of each, its fields, and its lists by name."""

    def __init__(self, runs: list[tuple[str, dict[str, Any], dict[str, list[Any]]]]) -> None:
        self.runs = [(mark, columns, of_run) for mark, of_run, columns in runs]


def _are_numbers(*lists: object) -> bool:
    """Whether these are lists of numbers, of one length."""
    return len({len(one) if isinstance(one, list) else -1 for one in lists}) == 1 and all(
        isinstance(one, list) and one and all(type(value) in (int, float) for value in one) for one in lists
    )


def _said_by(row: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The fields of a row that identify its run: as a suffix for the run's name, and by field."""
    of_run = {SPLITTING[name.lower()]: value for name, value in row.items() if name.lower() in SPLITTING}
    of_run = {field: value for field, value in of_run.items() if isinstance(value, (str, int))}
    return "".join(f"-seed{value}" if field == "seed" else f"-{value}" for field, value in of_run.items()), of_run


def _several_of(rows: list[dict[str, Any]]) -> _Several | None:
    """The runs of a list whose entries are runs with lists of numbers, or rows that name their run."""
    lists = [{str(name): one for name, one in row.items() if isinstance(one, list)} for row in rows]
    if all(len(each) > 1 and _are_numbers(*each.values()) for each in lists):  # of DreamerV2, DreamerV3 and heirs
        named = [{_DREAMERS.get(name, name): one for name, one in each.items()} for each in lists]
        return _Several([(*_said_by(row), each) for row, each in zip(rows, named, strict=True)])
    divided: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        divided.setdefault(json.dumps(_said_by(row)), []).append(row)
    if not 1 < len(divided) < min(len(rows), _MOST_RUNS) or not any(map(x_clock, rows[0])):
        return None
    names = dict.fromkeys(name for row in rows for name in row)
    return _Several(
        [
            (*json.loads(of_run), {name: [row.get(name) for row in own] for name in names})
            for of_run, own in divided.items()
        ]
    )


def _of_json(parsed: object) -> Any:
    if isinstance(parsed, list) and len(parsed) > 1:
        if all(type(value) in (int, float) for value in parsed):
            return parsed
        if all(isinstance(row, dict) for row in parsed):
            if (several := _several_of(parsed)) is not None:
                return several
            names = dict.fromkeys(name for row in parsed for name in row)
            columns = {str(name): [row.get(name) for row in parsed] for name in names}
            return columns if any(x_clock(name) for name in columns) else None
    if isinstance(parsed, dict):
        lists = {str(name): value for name, value in parsed.items() if isinstance(value, list) and len(value) > 1}
        lists = {name: value for name, value in lists.items() if all(type(one) in (int, float) for one in value)}
        tasks = sum(map(is_environment, lists))
        if tasks > 1 and 2 * tasks > len(lists):
            return (
                f"It has the scores of {len(lists)} tasks and no training: rollbook scores compares such files, one "
                "for each algorithm"
            )
        if lists and (all(name in lists for name in _GYM) or len({len(value) for value in lists.values()}) == 1):
            return lists
    return None


def _array(file: Path) -> Any:
    path_facts = read_path([file.stem])
    if not _TELLING.match(file.stem) and not (path_facts.algo and path_facts.env):
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


def _arrays(file: Path) -> Any:
    """The rows of numbers of a .npz, if its name says that it holds results; a text that says why they are none."""
    if not _OF_RESULTS.fullmatch(file.stem) or file.name == "evaluations.npz":
        return None
    import numpy as np

    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except Exception:  # a zip file's own errors, and those of numpy
        return "It holds objects, which are not read, or it is damaged"
    rows = {name: array for name, array in arrays.items() if array.ndim == 1 and array.dtype.kind in "fiub"}
    if len(rows) < len(arrays) or len({len(row) for row in rows.values()}) != 1 or max(map(len, rows.values())) < 2:
        shapes = ", ".join(f"{name} {' x '.join(map(str, array.shape))}" for name, array in arrays.items())
        return (
            f"Which of its arrays are seeds and which are steps would be a guess ({shapes}). Save a row of numbers for "
            "each run, or a table with named columns"
        )
    return {name: row.tolist() for name, row in rows.items()}


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path.resolve()] if path.suffix in (".npz", ".npy", ".json", ".txt", ".csv", *_UNREAD) else []
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return []
    wanted = [name for name in names if name.endswith((".npy", ".npz", *_UNREAD)) or _NAMES.fullmatch(name)]
    return [file for name in wanted if (file := path.resolve() / name).is_file()]


_NAMES = re.compile(
    r".*\.stats\.json|log\.json|(?:.*_)?history\.json|.*_metrics\.json|training_log.*\.json|score\.json|.*\.json\.gz|.*(?:scores|rewards|returns|results).*\.(?:json|txt|csv)"
)
