"""MLflow runs: the file store `mlruns/<experiment>/<run>` and the database `mlflow.db`.

The layout is that of mlflow/store/tracking/file_store.py and sqlalchemy_store.py, MLflow 2 and 3. MLflow itself
refuses the file store since 3.13 (mlflow#18534).
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from rollbook.formats.importers._database import UNREADABLE, damaged, has_tables, is_unlisted, opened, with_log
from rollbook.formats.importers._plain import plain
from rollbook.formats.importers._points import rows_of
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.seeds import named_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_STATUS = {"1": "crashed", "2": "crashed", "3": "finished", "4": "crashed", "5": "killed"}
_WORDS = {"RUNNING": "crashed", "SCHEDULED": "crashed", "FINISHED": "finished", "FAILED": "crashed", "KILLED": "killed"}
"""Nothing in the store shows whether a RUNNING run is still writing."""

_INFINITE = 1.7976931348623157e308
"""The value of an infinity in MLflow's database."""

_LONGEST_TEXT = 1_000_000


class MLflow:
    """MLflow's file store (`mlruns`) and database (`mlflow.db`): metrics, steps, times, parameters, tags, status.

    Metrics logged at one moment and step are one row. Parameters are the configuration; MLflow stores them as texts,
    and numbers among them are converted. Deleted runs and artifacts are left out.

    Args:
      clock: the clock that MLflow's steps count.
    """

    name = "mlflow"
    what = "MLflow run"
    files = ("meta.yaml", "mlflow.db")
    gathers = True

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether there is a run of a file store, or an MLflow database."""
        return next(_stores(path), None) is not None

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """The runs of all stores, with their run names, and the id if two runs of an experiment have the same name."""
        made = []
        for store in sorted(_stores(path)):
            made += list(self._of_database(store) if store.is_file() else self._of_folder(store))
        taken: dict[tuple[str | None, str], int] = {}
        for _id, run in made:
            taken[run.project, run.name] = taken.get((run.project, run.name), 0) + 1
        for run_id, run in made:
            run.key = run_id
            if taken[run.project, run.name] > 1:
                run.name = f"{run.name}-{run_id}"
        return [run for _id, run in made]

    # -- the file store

    def _of_folder(self, folder: Path) -> Iterator[tuple[str, ForeignRun]]:
        about = _flat_yaml(folder / "meta.yaml")
        if about.get("lifecycle_stage") == "deleted":
            return
        run_id = about.get("run_id") or about.get("run_uuid") or folder.name
        texts = {part: dict(_texts(folder / part)) for part in ("params", "tags")}
        project = _flat_yaml(folder.parent / "meta.yaml").get("name") or None
        tags = texts["tags"]
        run = _described(run_id, about.get("run_name") or tags.get("mlflow.runName"), project, texts["params"], tags)
        metrics = [path for path in sorted((folder / "metrics").rglob("*")) if path.is_file()]
        run.files = [folder / "meta.yaml", *metrics]
        run.clocks = (self._clock,)
        status = _STATUS.get(about.get("status", ""), _WORDS.get(about.get("status", ""), "finished"))

        run.started, run.ended = _seconds(about.get("start_time")), _seconds(about.get("end_time"))

        def rows() -> Iterator[Row]:
            run.left_out.clear()
            run.status, run.failure = status, _failure(about.get("status", ""))
            return self._rows(_points(metrics, folder / "metrics", run))

        run.rows = rows
        yield run_id, run

    # -- the database

    def _of_database(self, file: Path) -> Iterator[tuple[str, ForeignRun]]:
        try:
            with contextlib.closing(opened(file)) as database:
                experiments = dict(database.execute("select experiment_id, name from experiments"))
                found = database.execute(
                    "select run_uuid, name, status, experiment_id, start_time, end_time from runs "
                    "where lifecycle_stage = 'active' order by start_time, run_uuid"
                ).fetchall()
                texts = {
                    table: _by_run(database.execute(f"select run_uuid, key, value from {table}"))
                    for table in ("params", "tags")
                }
        except UNREADABLE:
            yield file.stem, damaged(file)
            return
        for run_id, name, status, experiment, started, ended in found:
            params, tags = texts["params"].get(run_id, {}), texts["tags"].get(run_id, {})
            run = _described(run_id, name or tags.get("mlflow.runName"), experiments.get(experiment), params, tags)
            run.files = with_log(file)
            run.clocks = (self._clock,)
            run.started, run.ended = _seconds(started), _seconds(ended)
            run.rows = lambda run=run, run_id=run_id, status=status: self._of_run(file, run, run_id, status)  # type: ignore[misc]
            yield run_id, run

    def _of_run(self, file: Path, run: ForeignRun, run_id: str, status: str) -> Iterator[Row]:
        run.left_out.clear()
        run.status, run.failure = _WORDS.get(status, "finished"), _failure(status)
        points: list[tuple[int, int, str, float]] = []
        try:
            with contextlib.closing(opened(file)) as database:
                rows = database.execute(
                    "select timestamp, step, key, value, is_nan from metrics where run_uuid = ?", (run_id,)
                )
                for stamp, step, key, value, is_nan in rows:
                    try:
                        number = float("nan") if is_nan else float(value)
                        if abs(number) >= _INFINITE:
                            number = float("inf") if number > 0 else float("-inf")
                        points.append((int(stamp), int(step), str(key), number))
                    except (TypeError, ValueError):
                        run.lose("points without a time, a step or a number")
        except UNREADABLE:
            run.lose("rows of a damaged database")
        yield from self._rows(points)

    def _rows(self, points: list[tuple[int, int, str, float]]) -> Iterator[Row]:
        points.sort(key=lambda point: point[:3])
        return rows_of((stamp / 1000, {self._clock: step}, key, number) for stamp, step, key, number in points)


_SAID = {"1": "RUNNING", "2": "SCHEDULED", "4": "FAILED", "5": "KILLED"}


def _failure(status: str) -> str:
    """How a run ended, in MLflow's words; "" if it went well."""
    word = _SAID.get(status, status)
    if word in ("RUNNING", "SCHEDULED"):
        return f"MLflow says {word}: it was killed, or it still runs"
    return f"{word}, says MLflow" if word in ("FAILED", "KILLED") else ""


def _seconds(milliseconds: object) -> float | None:
    try:
        return float(str(milliseconds)) / 1000 or None
    except ValueError:
        return None


def _stores(path: Path) -> Iterator[Path]:
    """Folders of runs in file stores, and databases."""
    if path.is_file():
        if path.suffix == ".db" and _is_database(path):
            yield path
        return
    if not path.is_dir():
        return
    for found in path.rglob("meta.yaml"):
        folder = found.parent
        is_run = (folder / "metrics").is_dir() or (folder / "params").is_dir()
        if is_run and ".trash" not in folder.parts:
            yield folder
    yield from (file for file in path.rglob("mlflow.db") if _is_database(file))


def _is_database(file: Path) -> bool:
    return has_tables(file, {"experiments", "runs", "metrics", "params", "tags"}) or is_unlisted(file)


def _by_run(rows: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    texts: dict[str, dict[str, str]] = {}
    for run_id, key, value in rows:
        texts.setdefault(run_id, {})[key] = value
    return texts


def _described(
    run_id: str, name: str | None, project: str | None, params: dict[str, str], tags: dict[str, str]
) -> ForeignRun:
    config = {key: plain(value) for key, value in params.items()}
    return ForeignRun(
        name or run_id,
        config=config,
        seed=named_seed(config),
        project=project,
        notes=tags.get("mlflow.note.content", ""),
        tags=tuple(f"{key}={value}" for key, value in sorted(tags.items()) if not key.startswith("mlflow.")),
    )


def _points(metrics: list[Path], base: Path, run: ForeignRun) -> list[tuple[int, int, str, float]]:
    """(milliseconds, step, key, number) of all lines "time value [step …]"."""
    points = []
    for path in metrics:
        key = path.relative_to(base).as_posix()
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            run.lose("metrics that cannot be read")
            continue
        if lines.pop():  # MLflow ends each line; without its end, the step may be cut short
            run.leave_out("lines that are half written")
        for line in lines:
            words = line.split(" ")
            try:
                points.append((int(words[0]), int(words[2]) if len(words) > 2 else 0, key, float(words[1])))
            except (ValueError, IndexError):
                if line.strip():
                    run.lose("lines that are no time, value and step")
    return points


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    """The files of params or tags: name -> content."""
    if not folder.is_dir():
        return
    for path in sorted(folder.rglob("*")):
        try:
            if path.is_file() and path.stat().st_size <= _LONGEST_TEXT:
                yield path.relative_to(folder).as_posix(), path.read_text(encoding="utf-8", errors="backslashreplace")
        except OSError:
            continue


def _flat_yaml(path: Path) -> dict[str, str]:
    """The lines "key: value" of a meta.yaml, which has no other lines; values as texts."""
    try:
        text = path.read_text(encoding="utf-8", errors="backslashreplace")
    except OSError:
        return {}
    about = {}
    for line in text.splitlines():
        key, colon, value = line.partition(": ")
        if colon and not key.startswith((" ", "-", "#")):
            value = value.strip()
            quoted = len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""
            about[key] = value[1:-1].replace("''", "'") if quoted else value
    return about
