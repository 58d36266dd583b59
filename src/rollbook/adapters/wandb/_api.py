"""`wandb.Api()` for the runs of a folder, for analysis and resume scripts."""

from __future__ import annotations

import operator
import os
from types import SimpleNamespace

from rollbook.adapters.wandb._artifacts import File, files_of, find, kept_in
from rollbook.schema.clocks import STANDARD
from rollbook.schema.run_files import value_name
from rollbook.system.texts import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.adapters.wandb._artifacts import Artifact
    from rollbook.book import Book


class Runs(list["ApiRun"]):
    """What `Api.runs` returns."""

    def histories(
        self,
        samples: int = 500,
        keys: Sequence[str] | None = None,
        x_axis: str = "_step",
        format: str = "default",
        stream: str = "default",
    ) -> Any:
        """The histories of all runs, each row with `run_id`: a list of dicts, or a frame of pandas or polars."""
        rows = [
            {**row, "run_id": run.id}
            for run in self
            for row in run.history(samples, keys, x_axis, pandas=False, stream=stream)
        ]
        if format == "default":
            return rows
        from rollbook.system.optional import need

        return need(format, extra=format, why=f"histories(format={format!r})").DataFrame(rows)


def _logged(key: str) -> str:
    """The name that the program gave a key: one with the name of a clock is kept as value/<key>."""
    return key.removeprefix("value/") if value_name(key.removeprefix("value/"), STANDARD) == key else key


def _nobody(entity: str) -> SimpleNamespace:
    return SimpleNamespace(username="", name="", email="", entity=entity, teams=[], admin=False)


def last_values(latest: Mapping[str, tuple[Any, Mapping[str, int], float]], began: float) -> dict[str, Any]:
    """The summary of what was logged: the last value of each key, and wandb's `_step`, `_timestamp` and `_runtime`.

    Args:
      latest: key -> (value, clocks, unix seconds).
      began: when the run began, in unix seconds.
    """
    found: dict[str, Any] = {_logged(key): value for key, (value, _clocks, _time) in latest.items()}
    if latest:
        newest = max(time for _value, _clocks, time in latest.values())
        found |= {"_timestamp": newest, "_runtime": newest - began}
    steps = [clocks["step"] for _value, clocks, _time in latest.values() if "step" in clocks]
    return {**found, "_step": max(steps)} if steps else found


class _Summary(dict[str, "Any"]):
    """The summary of a run; wandb's own examples read its `_json_dict`."""

    @property
    def _json_dict(self) -> dict[str, Any]:
        return dict(self)


class Sweep:
    """The runs of a sweep, which are a group here.

    Args:
      id: of the sweep.
      runs: its runs, oldest first.
    """

    def __init__(self, id: str, runs: Runs) -> None:
        self.id = self.name = id
        self.runs = runs

    def best_run(self, order: str = "+created_at") -> ApiRun | None:
        """The first run in this order, such as "-summary_metrics.score"."""
        return next(iter(_ordered(self.runs, order)), None)


class Api:
    """The runs below $ROLLBOOK_DIR, or "runs"; entities are ignored. Arguments as in `wandb.Api`.

    Args:
      overrides: {"dir": folder} sets another folder; other entries are accepted and have no effect.
      timeout, api_key: accepted, without effect.
    """

    api_key: str | None = None
    """None: there is no server."""

    def __init__(
        self, overrides: Mapping[str, Any] | None = None, timeout: int | None = None, api_key: str | None = None
    ):
        given = dict(overrides or {})
        self._root = os.fspath(given.get("dir") or os.environ.get("ROLLBOOK_DIR") or "runs")
        self.default_entity = str(given.get("entity", ""))

    @property
    def viewer(self) -> SimpleNamespace:
        """The user who is logged in: none, and no team, because there is no server."""
        return _nobody(self.default_entity)

    def runs(
        self,
        path: str | None = None,
        filters: Mapping[str, Any] | None = None,
        order: str = "+created_at",
        per_page: int = 50,
        include_sweeps: bool = True,
        lazy: bool = True,
    ) -> Runs:
        """The runs of a project ("entity/project" or "project"), oldest first.

        `order` is "+created_at", "-summary_metrics.x", "+config.x" or another of the filters' names; runs without it
        are last. `filters` are wandb's, for "config.x", "summary_metrics.x", "state", "group", "tags", "created_at" and
        "display_name", with $and, $or, $nor, $not, $in, $nin, $eq, $ne, $gt, $gte, $lt, $lte, $regex and $exists.
        """
        from rollbook.runs.catalog import open as open_runs

        project = (path or "").rpartition("/")[2]
        books = [book for book in open_runs(self._root) if not project or book.project == project]
        return _ordered([run for run in map(ApiRun, books) if _fits(run, filters or {})], order)

    def run(self, path: str) -> ApiRun:
        """One run: "entity/project/id", "project/id" or an id.

        Raises:
          CommError: there is no such run.
        """
        from rollbook.adapters.wandb._current import CommError

        parts = [part for part in path.strip("/").split("/") if part and part != "runs"]
        from rollbook.runs.catalog import open as open_runs

        project = parts[-2] if len(parts) > 1 else None
        named = open_runs(self._root).filter(
            lambda row: bool(parts) and row["id"] == parts[-1] and project in (None, row["project"])
        )
        if named:
            return ApiRun(named[0])
        raise CommError(f"Api().run({path!r}): there is no such run below {self._root}")

    def sweep(self, path: str) -> Sweep:
        """The runs of a sweep: "entity/project/id" or its id.

        Raises:
          CommError: there is no run of it.
        """
        from rollbook.adapters.wandb._current import CommError

        sweep_id = path.rpartition("/")[2]
        runs = self.runs(filters={"sweep": sweep_id})
        if not runs:
            raise CommError(f"Api().sweep({path!r}): there is no run of that sweep below {self._root}")
        return Sweep(sweep_id, runs)

    def artifact(self, name: str, type: str | None = None) -> Artifact:
        """An artifact "entity/project/name:alias" of the newest run that has it.

        Raises:
          CommError: there is none.
        """
        from rollbook.adapters.wandb._current import CommError

        parts = name.split("/")
        runs = self.runs(parts[-2] if len(parts) > 1 else None, order="-created_at")
        found = find(name, [run.book.path for run in runs], type)
        if found.folder is None:
            raise CommError(f"Api().artifact({name!r}): there is no such artifact below {self._root}")
        return found

    def artifact_exists(self, name: str, type: str | None = None) -> bool:
        """Whether there is such an artifact."""
        from rollbook.adapters.wandb._current import CommError

        try:
            return self.artifact(name, type) is not None
        except CommError:
            return False

    def flush(self) -> None:
        """Does nothing: runs are read again at each call."""

    def projects(self, entity: str | None = None) -> list[Any]:
        """The projects, each with a name."""
        from types import SimpleNamespace

        return [
            SimpleNamespace(name=name, entity=entity or "") for name in sorted({run.project for run in self.runs()})
        ]


class ApiRun:
    """A run as `wandb.Api` returns it, read from a book."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.id, self.name, self.project, self.entity = book.id, book.name, book.project, ""
        self.state = {"killed": "killed", "stale": "crashed"}.get(book.status, book.status)
        about = book.info
        self.config: dict[str, Any] = dict(about.config)
        self.group, self.job_type = about.group, about.job_type
        self.tags, self.notes = list(about.tags), about.notes
        self.created = about.created or 0.0
        self.path, self.url = [self.entity, self.project, self.id], None
        self.sweep_name = str(self.group).removeprefix("sweep-") if str(self.group).startswith("sweep-") else None
        self.rawconfig, self.metadata, self.display_name = self.config, about.as_json(), self.name
        self._summary: _Summary | None = None

    @property
    def summary(self) -> _Summary:
        """The last value of each key, and the run's own summary entries."""
        if self._summary is None:
            last = last_values(self.book.latest(), self.created)
            self._summary = _Summary({**last, **self.book.info.summary})
        return self._summary

    @property
    def json_config(self) -> str:
        """The configuration as JSON, each entry as {"value": …}."""
        return json_text({name: {"value": value} for name, value in self.config.items()})

    @property
    def summary_metrics(self) -> dict[str, Any]:
        """Same as `summary`."""
        return self.summary

    @property
    def user(self) -> SimpleNamespace:
        """The user who recorded it: one without a name, as `Api.viewer`."""
        return _nobody(self.entity)

    @property
    def sweep(self) -> str | None:
        """The id of the sweep that started it."""
        return self.sweep_name

    @property
    def system_metrics(self) -> dict[str, Any]:
        """The last value of each measure of the machine."""
        return {key: value for key, value in self.summary.items() if key.startswith(("host/", "system/"))}

    def load(self, force: bool = False) -> ApiRun:
        """The run: it is read from its folder at each call."""
        return self

    def update(self) -> None:
        """Write changed name, notes, tags and group. Other things of a finished run stay as they are."""
        from rollbook.schema import manifest

        manifest.edit(
            self.book.path, {"name": self.name, "notes": self.notes, "tags": list(self.tags), "group": self.group}
        )

    save = update

    @property
    def created_at(self) -> str:
        """When the run began, in ISO form."""
        import datetime

        return datetime.datetime.fromtimestamp(self.created, datetime.UTC).isoformat()

    @property
    def lastHistoryStep(self) -> int:
        """The last step."""
        return max((row["_step"] for row in self.scan_history()), default=-1)

    def scan_history(
        self,
        keys: Sequence[str] | None = None,
        page_size: int = 1000,
        min_step: int | None = None,
        max_step: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Every row of history as a dict with `_step`, `_timestamp`, `_runtime` and the values logged at that step.

        With `keys`, only rows that have all of them, as in wandb. For a run that was not logged by this module, `_step`
        is the axis of its rows (`env_step`, …), which is a column, too; without any, rows are numbered. What a
        SummaryWriter logged has `global_step` too, as in wandb. A picture or video is a dict with its `path`, which
        `file` takes.
        """
        rows: dict[int, dict[str, Any]] = {}
        every = self.book.keys()
        there = {_logged(key): key for key in every if not key.startswith(("rollbook/", "host/"))}
        wanted = [key for key in (keys or sorted(there)) if key in there]
        if keys and not wanted and any(key in (*self.book.clocks, "global_step") for key in keys):  # of clocks alone
            wanted = sorted(there)
        for key in wanted:
            axis, table = self._rows_of(there[key])
            clocks = [name for name in self.book.clocks if name in table.column_names and name != "step"]
            readings = {name: table[name].to_pylist() for name in clocks if name not in there}
            steps = range(table.num_rows) if axis is None else table[axis].to_pylist()
            stamps, values = table["time"].to_pylist(), table[there[key]].to_pylist()
            for n, (step, stamp, value) in enumerate(zip(steps, stamps, values, strict=True)):
                if step is None or value is None:
                    continue
                moment = stamp.timestamp()
                row = self._row_at(rows, int(step), moment)
                known = {name: of_clock[n] for name, of_clock in readings.items() if of_clock[n] is not None}
                if axis == "step" and step in known.values() and "global_step" not in there:
                    known["global_step"] = step  # what SummaryWriter does: its step is the reading of two clocks
                row |= known
                row[key] = value
        for key, step, moment, entry in self._pictures(keys):
            self._row_at(rows, step, moment)[key] = entry
        for step in sorted(rows):
            inside = (min_step is None or step >= min_step) and (max_step is None or step < max_step)
            if inside and (keys is None or all(key in rows[step] or key.startswith("_") for key in keys)):
                yield rows[step]

    def _row_at(self, rows: dict[int, dict[str, Any]], step: int, moment: float) -> dict[str, Any]:
        """The row of a step, a new one if there is none."""
        return rows.setdefault(step, {"_step": step, "_timestamp": moment, "_runtime": moment - self.created})

    def _pictures(self, keys: Sequence[str] | None) -> Iterator[tuple[str, int, float, dict[str, Any]]]:
        """(key, step, unix seconds, as wandb writes it down) of each picture and video that has a step."""
        for row in self.book.media().to_pylist():
            if row.get("step") is not None and (keys is None or row["key"] in keys):
                kind = "video-file" if row["kind"] == "video" else "image-file"
                entry = {"_type": kind, "path": row["path"], "width": row["width"], "height": row["height"]}
                yield row["key"], row["step"], row["time"].timestamp(), entry

    def _rows_of(self, key: str) -> tuple[str | None, Any]:
        """(the axis, a clock; None if rows have none; the rows of a key with it)."""
        for axis in dict.fromkeys(("step", self.book.series(key, points=1).axis)):
            if axis in self.book.clocks:
                table = self.book.metrics([key], x=axis, exact=True)
                if table.num_rows:
                    return axis, table
        return None, self.book.metrics([key])

    def history(
        self,
        samples: int = 500,
        keys: Sequence[str] | None = None,
        x_axis: str = "_step",
        pandas: bool = True,
        stream: str = "default",
    ) -> Any:
        """At most `samples` rows of history, evenly spaced, as a pandas frame or a list of dicts.

        With `keys`, rows that have all of them, and `x_axis`.
        """
        if keys is not None and not x_axis.startswith("_"):
            keys = list(dict.fromkeys([*keys, x_axis]))
        rows = list(self.scan_history(keys))
        if len(rows) > samples > 0:
            rows = [rows[round(n * (len(rows) - 1) / max(1, samples - 1))] for n in range(samples)]
        if not pandas:
            return rows
        from rollbook.system.optional import need

        return need("pandas", extra="pandas", why="Api().run().history()").DataFrame(rows)

    def files(self, names: Iterable[str] | None = None, per_page: int = 50) -> list[File]:
        """The files that the program saved with the run, and its pictures and videos, each with name, path, size and
        `download`."""
        wanted = None if names is None else set(names)
        saved = files_of(self.book.path / "files")
        there = {file.name for file in saved}
        shown = dict.fromkeys(entry["path"] for _key, _step, _moment, entry in self._pictures(None))
        kept = [name for name in shown if name not in there and (self.book.path / name).is_file()]
        every = [*saved, *(File(name, self.book.path) for name in kept)]
        return [file for file in every if wanted is None or file.name in wanted]

    def file(self, name: str) -> File:
        """A file that the program saved with the run.

        Raises:
          CommError: there is no such name.
        """
        from rollbook.adapters.wandb._current import CommError

        found = self.files([name])
        if not found:
            raise CommError(f"the run {self.id} has no file {name!r}; its files() are the ones that it saved")
        return found[0]

    def logged_artifacts(self, per_page: int = 100) -> list[Artifact]:
        """The artifacts that the run logged, each version."""
        return kept_in(self.book.path)

    def __repr__(self) -> str:
        return f"<Run {self.project}/{self.id} ({self.state})>"


def _ordered(runs: Sequence[ApiRun], order: str) -> Runs:
    """Runs by a field, those without it last, the oldest first among equals."""
    name = order.lstrip("+-")
    there = sorted(runs, key=lambda run: run.created)
    if name in ("created_at", "createdAt", ""):
        return Runs(there[::-1] if order.startswith("-") else there)
    known = [(value, run) for run in there if (value := _field(run, name)) is not None]
    mixed = len({isinstance(value, str) for value, _run in known}) > 1
    known.sort(key=lambda pair: str(pair[0]) if mixed else pair[0], reverse=order.startswith("-"))
    return Runs([run for _value, run in known] + [run for run in there if _field(run, name) is None])


def _fits(run: ApiRun, filters: Mapping[str, Any]) -> bool:
    for name, wanted in filters.items():
        if name == "$and":
            fits = all(_fits(run, part) for part in wanted)
        elif name == "$or":
            fits = any(_fits(run, part) for part in wanted)
        elif name == "$nor":
            fits = not any(_fits(run, part) for part in wanted)
        elif name == "$not":
            fits = not _fits(run, wanted)
        else:
            fits = _holds(_field(run, name), wanted)
        if not fits:
            return False
    return True


def _field(run: ApiRun, name: str) -> Any:
    first, _, rest = name.partition(".")
    if first in ("config", "summary_metrics"):
        value: Any = run.config if first == "config" else run.summary
        rest = rest.removesuffix(".value")
        if rest in value:
            return value[rest]
        for part in rest.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value
    return getattr(run, _FIELDS.get(name, name), None)


_FIELDS = {"display_name": "name", "displayName": "name", "jobType": "job_type", "createdAt": "created_at"}


def _holds(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, dict) or not any(str(word).startswith("$") for word in wanted):
        return bool(value == wanted or (isinstance(value, list) and wanted in value))
    return all(_answer(str(word), value, other) for word, other in wanted.items())


_COMPARED = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}


def _answer(word: str, value: Any, other: Any) -> bool:
    among = value if isinstance(value, list) else [value]
    if word == "$eq":
        return bool(value == other)
    if word == "$ne":
        return bool(value != other)
    if word == "$in":
        return any(item in other for item in among)
    if word == "$nin":
        return all(item not in other for item in among)
    if word == "$regex":
        import re

        return any(re.search(other, str(item)) for item in among)
    if word == "$exists":
        return (value is not None) == bool(other)
    if word == "$not":
        return not _holds(value, other)
    if word in _COMPARED:
        try:
            return value is not None and bool(_COMPARED[word](value, other))
        except TypeError:  # a number and a text: neither is before the other
            return False
    from rollbook.adapters.wandb._current import UsageError

    raise UsageError(
        f"Api().runs(filters=…): {word!r} is not known. There are: $and, $or, $nor, $not, $eq, $ne, $in, $nin, $gt, "
        "$gte, $lt, $lte, $regex and $exists"
    )
