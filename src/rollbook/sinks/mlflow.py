"""Mlflow: rows to an MLflow tracking store."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rollbook.sinks._plain import file_name
from rollbook.sinks._steps import step_of
from rollbook.sinks._trackers import flat_config
from rollbook.system.optional import need
from rollbook.values import Image, Video
from rollbook.values.scalars import as_float

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rollbook.protocols import Row, RunInfo

MOST_METRICS = 1000
MOST_PARAMS = 100
LONGEST_PARAM = 6000
ID_TAG = "rollbook.id"
_STRANGE = re.compile(r"[^\w\-./: ]")


class Mlflow:
    """One MLflow run per rollbook run, found again by the tag `rollbook.id`.

    Each value has its own time and step, so nothing has to increase. Database stores keep a row that is delivered twice
    once; file stores show the same point twice. Characters that MLflow refuses in names become "_". In a file store,
    where "loss" is a file and cannot be a folder too, "loss/policy" becomes "loss_/policy".

    Args:
      tracking_uri: the store; by default from MLflow's own settings.
      experiment: by default the run's project.
      x: the clock to use as the step; by default the run's own choice.
    """

    is_service = True
    thinned = (1.0, "key")
    needs = ("mlflow", "mlflow")
    accepts: frozenset[type] = frozenset({float, int, bool, str, Image, Video})

    def __init__(self, *, tracking_uri: str | None = None, experiment: str | None = None, x: str = "") -> None:
        self._uri = tracking_uri
        self._experiment = experiment
        self._asked_x = self._x = x
        self._clocks: tuple[str, ...] = ()
        self._client: Any = None
        self._metric: Any = None
        self._id = ""
        self._folder = Path()
        self._is_final = self._is_file_store = False
        self._names: dict[str, str] = {}  # key -> name of its metric
        self._taken: set[str] = set()

    def open(self, run: RunInfo) -> None:
        """Begin the run, or resume the one with this id."""
        tracking = need("mlflow.tracking", extra="mlflow", why="the MLflow sink")
        entities = need("mlflow.entities", extra="mlflow", why="the MLflow sink")
        self._metric = entities.Metric
        self._client = client = tracking.MlflowClient(tracking_uri=self._uri)
        self._folder, self._clocks = Path(run.folder), run.clocks
        self._x = self._asked_x or run.x
        self._is_final = False
        self._names, self._taken = {}, set()
        uri = self._uri or need("mlflow", extra="mlflow", why="the MLflow sink").get_tracking_uri()
        self._is_file_store = urlsplit(str(uri)).scheme in ("", "file")
        name = self._experiment or run.project
        experiment = client.get_experiment_by_name(name)
        experiment_id = experiment.experiment_id if experiment is not None else client.create_experiment(name)
        matching = client.search_runs([experiment_id], f"tags.`{ID_TAG}` = '{run.id}'", max_results=1)
        if matching:
            self._id = matching[0].info.run_id
            client.update_run(self._id, status="RUNNING")
            known = set(matching[0].data.params)
            self._taken = set(matching[0].data.metrics)
        else:
            tags = {ID_TAG: run.id, **{f"rollbook.tag.{file_name(tag)}": tag for tag in run.tags}}
            if run.group:
                tags["rollbook.group"] = run.group
            if run.notes:
                tags["mlflow.note.content"] = run.notes
            self._id = client.create_run(experiment_id, run_name=run.name or None, tags=tags).info.run_id
            known = set()
        config = {**flat_config(run.config), **({} if run.seed is None else {"seed": run.seed})}
        params = [
            entities.Param(_named(key), str(value)[:LONGEST_PARAM])
            for key, value in config.items()
            if _named(key) not in known
        ]
        for start in range(0, len(params), MOST_PARAMS):
            client.log_batch(self._id, params=params[start : start + MOST_PARAMS])

    def write(self, rows: Sequence[Row]) -> None:
        """Send these rows, up to a thousand values a request."""
        metrics: list[Any] = []
        for row in rows:
            self._is_final = self._is_final or row.mark == "final"
            metrics.extend(self._metrics(row))
        for start in range(0, len(metrics), MOST_METRICS):
            self._client.log_batch(self._id, metrics=metrics[start : start + MOST_METRICS])

    def close(self) -> None:
        """Mark the run as finished, if it is."""
        client, self._client = self._client, None
        if client is not None and self._is_final:
            client.set_terminated(self._id, "FINISHED")

    def _name(self, key: str) -> str:
        """The name of a metric. In a file store "loss" is a file, so "loss/policy" becomes "loss_/policy".

        If two keys have the same allowed letters, the second one gets a short hash at the end.
        """
        name = self._names.get(key)
        if name is None:
            name = _named(key)
            while self._is_file_store and self._clashes(name):
                first, slash, rest = name.partition("/")
                name = f"{first}_{slash}{rest}"
            if name in self._names.values():
                name = f"{name[:240]}_{zlib.crc32(key.encode(errors='backslashreplace')):08x}"
            self._names[key] = name
            self._taken.add(name)
        return name

    def _clashes(self, name: str) -> bool:
        return any(name.startswith(f"{taken}/") or taken.startswith(f"{name}/") for taken in self._taken)

    def _metrics(self, row: Row) -> Iterator[object]:
        step, _ = step_of(row, self._x, self._clocks)
        for key, value in row.values.items():
            if isinstance(value, (float, int)):
                yield self._metric(self._name(key), as_float(value), int(row.time * 1000), step)
            elif isinstance(value, str):
                self._client.log_text(self._id, value, f"text/{file_name(key)}/{step}.txt")
            elif isinstance(value, (Image, Video)):
                path = (self._folder / value.path).resolve()
                if path.is_relative_to(self._folder.resolve()) and path.is_file():
                    self._client.log_artifact(self._id, str(path), f"media/{file_name(key)}")


def _named(key: str) -> str:
    """The key as MLflow allows it: no odd characters, and no parts like ".." that a file system would resolve."""
    parts = (part for part in _STRANGE.sub("_", key).split("/") if part)
    return "/".join("_" if part in (".", "..") else part for part in parts)[:250] or "_"
