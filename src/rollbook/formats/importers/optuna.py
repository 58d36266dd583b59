"""Optuna's studies: databases (`sqlite:///study.db`) and the logs of JournalStorage. A trial is a run.

The tables are those of optuna/storages/_rdb/models.py, Optuna 2.4 to 5; the operations those of
optuna/storages/journal/_storage.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import json
from pathlib import Path

from rollbook.formats.importers._database import UNREADABLE, damaged, has_tables, opened, with_log
from rollbook.formats.importers._metadata import with_own_names
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.seeds import named_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

_DATABASES = (".db", ".sqlite", ".sqlite3")
_JOURNALS = (".log", ".journal")
_TABLES = {"studies", "trials", "trial_params", "trial_values"}
_BEGIN = b'{"op_code"'
_STATES = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")
_STATUS = {"COMPLETE": "finished", "PRUNED": "killed", "FAIL": "crashed", "RUNNING": "crashed"}
_DIRECTIONS = ("", "minimize", "maximize")
_METRIC_NAMES = "study:metric_names"
_INFINITE = {"INF_POS": float("inf"), "INF_NEG": float("-inf"), "NAN": float("nan")}
"""What a database has next to an empty cell for a number that SQL lacks."""

_DAMAGED = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)
"""What entries of a damaged file raise: a number that is none, a trial that is not there."""

_CREATE_STUDY, _DELETE_STUDY, _STUDY_USER, _STUDY_SYSTEM, _CREATE_TRIAL, _PARAM, _STATE, _REPORT, _USER = range(9)
"""The operations of a journal."""


class Optuna:
    """Optuna's databases and journals: a run for each trial, with its parameters, reports, values and how it ended.

    Parameters are the configuration, the study is project and group, its directions are tags. What the trial reported
    is `intermediate_value` along its steps, what it returned `value`, of several objectives `values_<n>` or the name
    that the study has for it; user attributes of the trial are `user_attrs/<name>`, as in Optuna's data frame. A pruned
    trial was killed. Trials that wait are no runs yet.

    Args:
      clock: the clock that the steps of reports count.
    """

    name = "optuna"
    what = "Optuna trial"
    files = ("optuna.db", "*.sqlite3", "*.journal")
    looks_into = (*_DATABASES, *_JOURNALS)

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether there is a database or a journal of Optuna."""
        return bool(_files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each trial that has begun, in the order of studies and trials."""
        return with_own_names((run, run.files[0].stem) for run in self._each(path))

    def _each(self, path: Path) -> Iterator[ForeignRun]:
        files = _files(path)
        for file in files or ([path] if path.is_file() else []):
            try:
                studies, lost = _of_journal(file) if file.suffix in _JOURNALS else (_of_database(file), 0)
            except (*UNREADABLE, *_DAMAGED):
                yield damaged(file)
                continue
            begun = [(study, trial) for study in studies for trial in study.trials if trial.state != "WAITING"]
            if not begun and (lost or not files):
                yield damaged(file)
            yield from (self._run(file, study, trial, lost) for study, trial in begun)

    def _run(self, file: Path, study: _Study, trial: _Trial, lost: int) -> ForeignRun:
        run = ForeignRun(f"{study.name}-{trial.number}", config=trial.params, project=study.name, group=study.name)
        run.key = f"{file.name}\0{study.name}\0{trial.number}"
        run.seed = named_seed({**study.attributes, **trial.attributes, **trial.params})
        run.tags, run.clocks = tuple(filter(None, study.directions)), (self._clock,)
        run.files = with_log(file)
        run.started, run.ended = trial.started, trial.ended
        run.status = _STATUS.get(trial.state, "crashed")
        if trial.state == "RUNNING":
            run.failure = "Optuna says RUNNING: it was killed, or it still runs"
        elif trial.state != "COMPLETE":
            run.failure = f"{trial.state}, says Optuna"
        run.rows = functools.partial(self._rows, file, run, study, trial, lost)
        return run

    def _rows(self, file: Path, run: ForeignRun, study: _Study, trial: _Trial, lost: int) -> Iterator[Row]:
        run.left_out.clear()
        if lost:
            run.lose("lines that are no JSON", lost)
        moment = trial.ended or trial.started or file.stat().st_mtime
        try:
            reported = trial.reports()
        except (*UNREADABLE, *_DAMAGED):
            run.lose("rows of a damaged database")
            reported = {}
        for step, number in sorted(reported.items()):
            yield Row(moment, {self._clock: step}, {"intermediate_value": number})
        values: dict[str, Any] = dict(zip(study.names_of(len(trial.values)), trial.values, strict=True))
        for name, value in trial.attributes.items():
            if isinstance(value, (bool, int, float, str)):
                values[f"user_attrs/{name}"] = value
            else:
                run.leave_out("user attributes that are no number and no text")
        if values:
            yield Row(moment, {self._clock: max(reported)} if reported else {}, values)


@dataclasses.dataclass
class _Trial:
    """A trial.

    Attributes:
      reports: gives step -> reported value; of a database they are read when the rows are.
      params: as the program got them; values: one for each objective.
    """

    number: int
    state: str = "RUNNING"
    started: float | None = None
    ended: float | None = None
    params: dict[str, Any] = dataclasses.field(default_factory=dict)
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    values: list[float] = dataclasses.field(default_factory=list)
    reported: dict[int, float] = dataclasses.field(default_factory=dict)
    reads: Callable[[], dict[int, float]] | None = None

    def reports(self) -> dict[int, float]:
        """Step -> reported value."""
        return self.reported if self.reads is None else self.reads()


@dataclasses.dataclass
class _Study:
    """A study with its trials."""

    name: str
    directions: list[str]
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    metric_names: list[str] = dataclasses.field(default_factory=list)
    trials: list[_Trial] = dataclasses.field(default_factory=list)

    def names_of(self, n: int) -> list[str]:
        """The names of a trial's values."""
        if len(self.metric_names) == n:
            return self.metric_names
        return ["value"] if n == 1 else [f"values_{number}" for number in range(n)]


# -- databases


def _of_database(file: Path) -> list[_Study]:
    with contextlib.closing(opened(file)) as database:
        read = functools.partial(_table, database)
        studies = {each["study_id"]: _Study(str(each["study_name"]), []) for each in read("studies")}
        for each in sorted(read("study_directions"), key=lambda each: each.get("objective") or 0):
            studies[each["study_id"]].directions.append(str(each["direction"]).lower().replace("not_set", ""))
        for each in read("study_user_attributes"):
            studies[each["study_id"]].attributes[each["key"]] = _json(each["value_json"])
        for each in read("study_system_attributes"):
            if each["key"] == _METRIC_NAMES and isinstance(names := _json(each["value_json"]), list):
                studies[each["study_id"]].metric_names = [str(name) for name in names]
        trials: dict[int, _Trial] = {}
        for each in sorted(read("trials"), key=lambda each: each["trial_id"]):
            study = studies[each["study_id"]]
            number = each.get("number")
            trial = _Trial(len(study.trials) if number is None else int(number), str(each["state"]))
            trial.started, trial.ended = _seconds(each["datetime_start"]), _seconds(each["datetime_complete"])
            trial.reads = functools.partial(_reported, file, each["trial_id"])
            trials[each["trial_id"]] = trial
            study.trials.append(trial)
        for each in read("trial_params"):
            trials[each["trial_id"]].params[str(each["param_name"])] = _param(
                each["param_value"], each["distribution_json"]
            )
        for each in read("trial_user_attributes"):
            trials[each["trial_id"]].attributes[str(each["key"])] = _json(each["value_json"])
        for each in sorted(read("trial_values"), key=lambda each: each.get("objective") or 0):
            trials[each["trial_id"]].values.append(_number(each["value"], each.get("value_type")))
    return [*studies.values()]


def _table(database: sqlite3.Connection, name: str) -> list[dict[str, Any]]:
    """The rows of a table, by the names of its columns; versions of Optuna differ in them. [] if there is none."""
    if not database.execute("select 1 from sqlite_master where type = 'table' and name = ?", (name,)).fetchall():
        return []
    cursor = database.execute(f"select * from {name}")
    columns = [column[0] for column in cursor.description]
    return [dict(zip(columns, row, strict=True)) for row in cursor]


def _reported(file: Path, trial: int) -> dict[int, float]:
    with contextlib.closing(opened(file)) as database:
        found = database.execute("select * from trial_intermediate_values where trial_id = ?", (trial,))
        columns = [column[0] for column in found.description]
        rows = [dict(zip(columns, row, strict=True)) for row in found]
    return {
        int(each["step"]): _number(each["intermediate_value"], each.get("intermediate_value_type")) for each in rows
    }


def _number(value: object, kind: object) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    return _INFINITE.get(str(kind), float("nan"))


# -- journals


def _of_journal(file: Path) -> tuple[list[_Study], int]:
    """The studies of a journal, and how many lines are no JSON. The last line may be half written."""
    studies: list[_Study | None] = []
    trials: list[tuple[_Study, _Trial]] = []
    lost = 0
    for line in file.read_bytes().split(b"\n")[:-1]:
        try:
            _apply(json.loads(line), studies, trials)
        except _DAMAGED:
            lost += bool(line.strip())
    return [study for study in studies if study is not None], lost


def _apply(entry: dict[str, Any], studies: list[_Study | None], trials: list[tuple[_Study, _Trial]]) -> None:
    """Do what a line of a journal says, unless Optuna refuses it there: a trial that is over is not changed."""
    code = entry["op_code"]
    if code == _CREATE_STUDY:
        if all(study is None or study.name != entry["study_name"] for study in studies):
            studies.append(_Study(str(entry["study_name"]), [_DIRECTIONS[way] for way in entry["directions"]]))
        return
    if code in (_DELETE_STUDY, _STUDY_USER, _STUDY_SYSTEM, _CREATE_TRIAL):
        study = studies[entry["study_id"]]
        if study is None:
            return
        if code == _DELETE_STUDY:
            studies[entry["study_id"]] = None
        elif code == _STUDY_USER:
            study.attributes.update(entry["user_attr"])
        elif code == _STUDY_SYSTEM:
            study.metric_names = entry["system_attr"].get(_METRIC_NAMES, study.metric_names)
        else:
            trials.append((study, _created(entry, len(study.trials))))
            study.trials.append(trials[-1][1])
        return
    _study, trial = trials[entry["trial_id"]]
    if trial.state in ("COMPLETE", "PRUNED", "FAIL"):
        return
    if code == _PARAM:
        trial.params[entry["param_name"]] = _param(entry["param_value_internal"], entry["distribution"])
    elif code == _REPORT:
        trial.reported[int(entry["step"])] = float(entry["intermediate_value"])
    elif code == _USER:
        trial.attributes.update(entry["user_attr"])
    elif code == _STATE:
        trial.state = _STATES[entry["state"]]
        trial.values = [float(value) for value in entry.get("values") or ()]
        trial.started = _seconds(entry.get("datetime_start")) or trial.started
        trial.ended = _seconds(entry.get("datetime_complete")) or trial.ended


def _created(entry: dict[str, Any], number: int) -> _Trial:
    """A new trial; one that was added whole, or waits, has more than its begin."""
    trial = _Trial(number, _STATES[entry.get("state", 0)])
    trial.started, trial.ended = _seconds(entry.get("datetime_start")), _seconds(entry.get("datetime_complete"))
    shapes = entry.get("distributions") or {}
    trial.params = {name: _param(value, shapes[name]) for name, value in (entry.get("params") or {}).items()}
    trial.attributes = dict(entry.get("user_attrs") or {})
    values = entry.get("values") or ([] if entry.get("value") is None else [entry["value"]])
    trial.values = [float(value) for value in values]
    trial.reported = {int(step): float(value) for step, value in (entry.get("intermediate_values") or {}).items()}
    return trial


# -- both


def _param(stored: object, distribution: object) -> object:
    """A parameter as the program got it: a choice by its index, whole numbers as such."""
    shape = _json(distribution)
    about = shape if isinstance(shape, dict) else {}
    attributes = about.get("attributes") or {}
    if isinstance(stored, (int, float)) and isinstance(choices := attributes.get("choices"), list):
        return choices[int(stored)] if 0 <= int(stored) < len(choices) else stored
    if isinstance(stored, float) and str(about.get("name", "")).startswith("Int") and stored == int(stored):
        return int(stored)
    return stored


def _json(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


def _seconds(text: object) -> float | None:
    """Unix seconds of a time; one without a zone is of this machine's, as Optuna writes it."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def _files(path: Path) -> list[Path]:
    if path.is_file():
        files = [path]
    else:
        files = sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else []
    return [
        file
        for file in files
        if (file.suffix in _DATABASES and has_tables(file, _TABLES)) or (file.suffix in _JOURNALS and _is_journal(file))
    ]


def _is_journal(file: Path) -> bool:
    try:
        with open(file, "rb") as stream:
            return stream.read(len(_BEGIN)) == _BEGIN
    except OSError:
        return False
