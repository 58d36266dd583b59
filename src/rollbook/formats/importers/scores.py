"""Results without a tool: .npy, JSON, YAML, pickles, numbers in text files; gym's stats.json and Dopamine's logs."""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import os
import re
import zlib
from pathlib import Path

from rollbook.errors import BadInput
from rollbook.formats.importers._contents import GYM, Content, axis_of, runs_in
from rollbook.formats.importers._labels import labels_of
from rollbook.formats.importers._metadata import CONFIG_NAMES, describe, yaml_of
from rollbook.formats.importers._names import is_result, names_of_returns
from rollbook.formats.importers._paths import read_path
from rollbook.formats.importers._pickled import value_of_pickle
from rollbook.formats.importers._registry import patterns
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.counters import clock_name, is_reading, x_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_WORDS = r"(?:rewards?|returns?|scores?|episodes?|evaluations?|evals?|results?|success(?:es)?|lengths?|ep_rew\w*)"
_TELLING = re.compile(rf"(?:^|.*[-_. ]){_WORDS}(?:[-_. ].*|\d*$)", re.IGNORECASE)
"""File names that say that what is inside are results."""

_OF_TEST = re.compile(r"(?:^|[-_. ])(?:evals?|evaluations?|tests?|testing)(?:[-_. ]|$)", re.IGNORECASE)
_LONGEST = 64 * 1024 * 1024
_HEAD = 64 * 1024
_KEY = re.compile(r'"([^"\n]{1,80})"\s*:')
_MOST = 5_000_000

_UNREAD = {
    ".gz": "It is compressed: unpack it with gunzip --keep",
    ".zip": "It is an archive: unpack it",
    ".tar": "It is an archive: unpack it",
    ".tgz": "It is an archive: unpack it",
    ".xlsx": "It is a spreadsheet: save it as CSV",
    ".h5": "It is HDF5, which is not read: save it as CSV",
    ".hdf5": "It is HDF5, which is not read: save it as CSV",
    ".mat": "It is a file of MATLAB, which is not read: save it as CSV",
    ".parquet": "Which of its columns are what is not known: save it as CSV",
    ".feather": "Which of its columns are what is not known: save it as CSV",
}
"""Endings of files that are not read, and what to do with those whose name says that they hold results."""

_OF_RESULTS = re.compile(
    r"(?:.*[-_. ])?(?:progress|metrics|monitor|history|results?|scores?|rewards?|returns?|evaluations?|"
    r"learning[-_]curves?|logs?|training[-_]log|stats)(?:[-_. ].*|\d*)",
    re.IGNORECASE,
)

_DAMAGED = "It is no JSON: it may be damaged, or half written"
_PICKLED = (".pkl", ".pickle")
_IN_WORDS = (".json", ".yaml", ".yml")
_DOPAMINE = re.compile(r"log_(\d+)")
"""A pickle of all iterations so far, which Dopamine writes after each of them."""

_NO_RESULTS = re.compile(r"(?:wandb-|package|tsconfig|tokenizer|.*config\.|.*vocab|.*schema\.).*", re.IGNORECASE)


class Scores:
    """Files with nothing but results: a row of numbers in .npy, JSON or .txt, lists by name, gym's *.stats.json.

    A single row of numbers is `eval_return` if the file's name says that it is of tests, else `returns`; its index is
    the clock `episode`, or `step` for tests. Lines of two numbers of which the first counts are episode and return. Of
    lists of equal length by name, one may be the x-axis. Lists by seed, algorithm or any other name of a run are a run
    each. JSON is looked into whatever its file is called; YAML and pickles if their name says that they hold results.
    Pickles are read without running anything in them (`_pickled.py`). Anything else would be a guess and is refused.
    """

    name = "scores"
    what = "file of scores"
    files = (
        "*.json.gz",
        "*scores*.txt",
        "*rewards*.txt",
        "*returns*.txt",
        "*scores*.csv",
        "*rewards*.csv",
        "*returns*.csv",
        "log_[0-9]*",
    )
    looks_into = (".npy", ".npz", *_PICKLED, *_IN_WORDS, *_UNREAD)

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
            if self.refused.get(file, _DAMAGED) != _DAMAGED:
                raise BadInput(f"import {path}: {self.refused[file]}")
            if not made:
                made = [ForeignRun(file.stem, files=[file], folder=file.parent, part=file.stem)]
                made[0].rows = functools.partial(_none, made[0])
            for run in made:
                run.name = run.part
        elif len(made) == 1:
            made[0].part = ""
        return made

    def _of_file(self, file: Path) -> Iterator[ForeignRun]:
        held = _content(file)
        if isinstance(held, str):
            if held:
                self.refused[file] = held
            return
        stem = file.name.removesuffix(".gz").removesuffix(file.suffix if file.suffix != ".gz" else ".json")
        tests = _OF_TEST.search(stem) is not None
        for mark, fields, tables, config in held:
            run = ForeignRun(f"{file.parent.name}-{stem}{mark}", files=[file], folder=file.parent)
            run.part = f"{stem}{mark}"
            run.algo, run.env = str(fields.get("algo", "")), str(fields.get("env", ""))
            if is_reading(fields.get("seed")):
                run.seed, run.sources["seed"] = int(fields["seed"]), file.name
            describe(run, file.parent, config)
            run.rows = functools.partial(_rows, file, run, tables, tests)
            yield run


def _none(run: ForeignRun) -> tuple[Row, ...]:
    run.left_out.clear()
    run.lose("files that hold no row of numbers")
    return ()


def _rows(file: Path, run: ForeignRun, tables: list[dict[str, list[Any]]], tests: bool) -> Iterator[Row]:
    run.left_out.clear()
    moment = os.stat(file).st_mtime
    labelled = str(labels_of(file).get("x", ("", ""))[0])
    for table in tables:
        if all(name in table for name in GYM):
            yield from _of_gym(table)
            continue
        axis = labelled if labelled in table else axis_of(table)
        clock = (x_clock(axis) or "step") if axis else ("step" if tests else "episode")
        clocks = {axis: clock, **{name: own for name in table if (own := clock_name(name)) and own != clock}}
        names = {} if tests else names_of_returns({key: one[:4] for key, one in table.items() if key}, axis)
        names[""] = "eval_return" if tests else "returns"
        for n in range(len(next(iter(table.values())))):
            readings = {own: int(table[name][n]) for name, own in clocks.items() if name and is_reading(table[name][n])}
            values = {names.get(name, name): one[n] for name, one in table.items() if not (axis and name == axis)}
            numbers = {name: value for name, value in values.items() if isinstance(value, (int, float))}
            missing = sum(value is not None for value in values.values()) - len(numbers)
            if missing:
                run.leave_out("values that are no numbers", missing)
            if numbers:
                yield Row(moment, readings if axis else {clock: n, **readings}, numbers)


def _of_gym(table: dict[str, list[Any]]) -> Iterator[Row]:
    """The episodes of gym's *.stats.json."""
    steps = 0
    for n, (gained, length, moment) in enumerate(zip(*(table[name] for name in GYM), strict=False), start=1):
        steps += int(length)
        yield Row(float(moment), {"env_step": steps, "episode": n}, {"train/return": gained, "train/length": length})


def _content(file: Path) -> list[Content] | str:
    """The runs of a file; a text that says why it has none, "" for a file that looks like no results at all."""
    stem, ending = file.name.partition(".")[0], file.suffix.lower()
    tells = bool(_OF_RESULTS.fullmatch(stem) or _TELLING.match(stem))
    if ending in _UNREAD and not file.name.endswith(".json.gz"):
        return _UNREAD[ending] if _OF_RESULTS.fullmatch(stem) else ""
    try:
        if not 0 < file.stat().st_size <= _LONGEST:
            return f"It has more than {_LONGEST >> 20} MiB" if tells and file.stat().st_size else ""
        if ending in _PICKLED or _DOPAMINE.fullmatch(file.name):
            return _of_pickle(file, tells)
        if ending == ".npy":
            return _one(_array(file))
        if ending == ".npz":
            return _one(_arrays(file))
        if ending == ".json" and not tells and not _may_hold(file, file.stat().st_mtime_ns):
            return ""
        opened = gzip.open if ending == ".gz" else open
        with opened(file, "rt", encoding="utf-8", errors="backslashreplace") as stream:
            text = str(stream.read(_LONGEST + 1))
    except (OSError, EOFError, zlib.error):
        return ""
    if ending in (".txt", ".csv"):
        return _one(_of_text(text))
    try:
        value = json.loads(text) if ending in (".json", ".gz") else yaml_of(text) if tells else None
    except (ValueError, RecursionError):
        return _DAMAGED if tells and ending == ".json" else ""
    return runs_in(value, tells=tells)


@functools.lru_cache(maxsize=65_536)
def _may_hold(file: Path, _changed: int) -> bool:
    """Whether JSON of any name begins with names of results or counters: most JSON files hold something else."""
    with open(file, "rb") as stream:
        head = stream.read(_HEAD).decode("utf-8", "replace")
    return head.lstrip()[:1] in ("{", "[") and any(is_result(name) or x_clock(name) for name in {*_KEY.findall(head)})


def _one(table: dict[str, list[Any]] | str | None) -> list[Content] | str:
    return [Content("", {}, [table], {})] if isinstance(table, dict) else table or ""


def _of_text(text: str) -> dict[str, list[Any]] | None:
    """A row or a column of numbers, or lines of a counter and a return."""
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    if len(numbers) == 2 * len(lines) and all(len(line.replace(",", " ").split()) == 2 for line in lines):
        steps = [int(number) for number in numbers[::2] if is_reading(number)]
        counts = len(steps) == len(lines) > 1 and all(a < b for a, b in itertools.pairwise(steps))
        return {"episode": steps, "returns": numbers[1::2]} if counts else None
    return {"": numbers} if len(lines) in (1, len(numbers)) and len(numbers) > 1 else None


def _of_pickle(file: Path, tells: bool) -> list[Content] | str:
    """The runs of a pickle, of which only plain values are read."""
    tells = tells or _DOPAMINE.fullmatch(file.name) is not None
    if not tells:
        return ""
    try:
        value = value_of_pickle(file.read_bytes())
    except ValueError as err:
        return "" if _DOPAMINE.fullmatch(file.name) else f"It is a pickle that cannot be read ({err})"
    return runs_in(value, tells=tells) or (
        "It is a pickle of objects that only a program can make, and reading never runs one: save a table or a .npy "
        "of it"
    )


def _array(file: Path) -> dict[str, list[Any]] | str | None:
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
    return {"": np.asarray(array, dtype=np.float64).tolist()}


def _arrays(file: Path) -> dict[str, list[Any]] | str | None:
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
    endings = (".npy", ".npz", *_PICKLED, *_IN_WORDS, *_UNREAD)
    if path.is_file():
        return [path.resolve()] if path.suffix in (*endings, ".txt", ".csv") or _DOPAMINE.fullmatch(path.name) else []
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return []
    others = _of_others()
    wanted = [
        name
        for name in names
        if (name.lower().endswith(endings) and name not in others and not _NO_RESULTS.match(name))
        or _TEXTS.fullmatch(name)
    ]
    iterations = sorted((int(match[1]), name) for name in names if (match := _DOPAMINE.fullmatch(name)) is not None)
    wanted += [name for _n, name in iterations[-1:]]
    return [file for name in wanted if (file := path.resolve() / name).is_file()]


@functools.cache
def _of_others() -> frozenset[str]:
    """Names of files that are read by a format which comes later, or that are a configuration."""
    formats = [*patterns()]
    later = formats[formats.index(Scores.name) + 1 :]
    named = (glob.rpartition("/")[2] for name in later for glob in patterns()[name])
    return frozenset({*CONFIG_NAMES, "run.json", *named})


_TEXTS = re.compile(r".*(?:scores|rewards|returns|results).*\.(?:txt|csv)")
