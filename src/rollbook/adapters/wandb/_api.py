"""`wandb.Api()` for the runs of a folder, for analysis and resume scripts."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.book import Book

__all__ = ["Api", "ApiRun"]


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
        self._root = os.fspath(given.get("dir") or os.environ.get("ROLLBOOK_DIR", "runs"))
        self.default_entity = str(given.get("entity", ""))

    def runs(
        self, path: str | None = None, filters: Mapping[str, Any] | None = None, order: str = "+created_at",
        per_page: int = 50, include_sweeps: bool = True, lazy: bool = True,
    ) -> list[ApiRun]:  # fmt: skip
        """The runs of a project ("entity/project" or "project"), oldest first; newest first with order="-created_at".

        `filters` are wandb's, for "config.x", "summary_metrics.x", "state", "group", "tags" and "display_name", with
        $and, $or, $not, $in, $nin, $eq, $ne, $gt, $gte, $lt, $lte, $regex and $exists.
        """
        from rollbook.runs.catalog import open as open_runs

        project = (path or "").rpartition("/")[2]
        books = [book for book in open_runs(self._root) if not project or book.project == project]
        runs = [run for run in map(ApiRun, books) if _fits(run, filters or {})]
        name = order.lstrip("+-").removeprefix("summary_metrics.")
        if order.lstrip("+-") != name:
            runs.sort(key=lambda run: (run.summary.get(name) is None, run.summary.get(name) or 0))
        else:
            runs.sort(key=lambda run: run.created)
        return runs[::-1] if order.startswith("-") else runs

    def run(self, path: str) -> ApiRun:
        """One run: "entity/project/id", "project/id" or an id.

        Raises:
          CommError: there is no such run.
        """
        from rollbook.adapters.wandb._current import CommError

        parts = [part for part in path.strip("/").split("/") if part and part != "runs"]
        for run in self.runs(parts[-2] if len(parts) > 1 else None):
            if parts and run.id == parts[-1]:
                return run
        raise CommError(f"Api().run({path!r}): there is no such run below {self._root}")

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
        self.config: dict[str, Any] = dict(about.get("config") or {})
        self.group, self.job_type = about.get("group"), about.get("job_type")
        self.tags, self.notes = list(about.get("tags") or ()), about.get("notes") or ""
        self.created = float(about.get("created") or 0.0)
        self.path, self.url = [self.entity, self.project, self.id], None
        self._summary: dict[str, Any] | None = None

    @property
    def summary(self) -> dict[str, Any]:
        """The last value of each key, and the run's own summary entries."""
        if self._summary is None:
            last = {key: value for key, (value, _clocks, _time) in self.book.latest().items()}
            self._summary = {**last, **dict(self.book.info.get("summary") or {})}
        return self._summary

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
        self, keys: Sequence[str] | None = None, page_size: int = 1000, min_step: int | None = None,
        max_step: int | None = None,
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        """Every row of history as a dict with `_step`, `_timestamp` and the values logged at that step.

        With `keys`, only rows that have all of them, as in wandb.
        """
        rows: dict[int, dict[str, Any]] = {}
        there = set(self.book.keys())
        wanted = [key for key in (keys or sorted(there)) if key in there and not key.startswith(("rollbook/", "host/"))]
        for key in wanted:
            table = self.book.metrics([key], x="step")
            steps, times = table["step"].to_pylist(), table["time"].to_pylist()
            for step, stamp, value in zip(steps, times, table[key].to_pylist(), strict=True):
                if step is None or value is None:
                    continue
                row = rows.setdefault(int(step), {"_step": int(step), "_timestamp": stamp.timestamp()})
                row[key] = value
        for step in sorted(rows):
            inside = (min_step is None or step >= min_step) and (max_step is None or step < max_step)
            if inside and (keys is None or all(key in rows[step] or key.startswith("_") for key in keys)):
                yield rows[step]

    def history(
        self, samples: int = 500, keys: Sequence[str] | None = None, x_axis: str = "_step", pandas: bool = True,
        stream: str = "default",
    ) -> Any:  # fmt: skip
        """At most `samples` rows of history, evenly spaced, as a pandas frame or a list of dicts."""
        rows = list(self.scan_history(keys))
        if len(rows) > samples > 0:
            rows = [rows[round(n * (len(rows) - 1) / max(1, samples - 1))] for n in range(samples)]
        if not pandas:
            return rows
        from rollbook.ground.optional import need

        return need("pandas", extra="pandas", why="Api().run().history()").DataFrame(rows)

    def files(self, names: Iterable[str] | None = None) -> list[Any]:
        """The files that the program saved with the run."""
        from types import SimpleNamespace

        base = self.book.path / "files"
        found = [path for path in sorted(base.rglob("*")) if path.is_file()] if base.is_dir() else []
        return [
            SimpleNamespace(name=str(path.relative_to(base)), path=str(path), size=path.stat().st_size)
            for path in found
        ]

    def __repr__(self) -> str:
        return f"<Run {self.project}/{self.id} ({self.state})>"


def _fits(run: ApiRun, filters: Mapping[str, Any]) -> bool:
    for name, wanted in filters.items():
        if name == "$and":
            fits = all(_fits(run, part) for part in wanted)
        elif name == "$or":
            fits = any(_fits(run, part) for part in wanted)
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
    return getattr(run, {"display_name": "name", "displayName": "name", "jobType": "job_type"}.get(name, name), None)


def _holds(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, dict) or not any(str(word).startswith("$") for word in wanted):
        return bool(value == wanted or (isinstance(value, list) and wanted in value))
    return all(_answer(str(word), value, other) for word, other in wanted.items())


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
    if word in ("$gt", "$gte", "$lt", "$lte"):
        if value is None:
            return False
        return bool({"$gt": value > other, "$gte": value >= other, "$lt": value < other, "$lte": value <= other}[word])
    from rollbook.adapters.wandb._current import UsageError

    raise UsageError(
        f"Api().runs(filters=…): {word!r} is not known. There are: $and, $or, $not, $eq, $ne, $in, $nin, $gt, $gte, "
        "$lt, $lte, $regex and $exists"
    )
