"""Aim's repositories: `.aim/run_metadata.sqlite`, and one RocksDB of attributes and one of points for each run.

Keys of these databases are paths whose parts end with byte 0xFE: texts in UTF-8, or 0xFE and a number of 8 bytes. The
first byte of a value is its type (aim/storage/encoding of Aim 3.29). Aim's own reader lists only runs that its server
has put into an index; this one needs no index.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import struct
import tempfile
from pathlib import Path

from rollbook.errors import MissingExtra
from rollbook.formats.importers._database import UNREADABLE, damaged, has_tables, opened, with_log
from rollbook.formats.importers._metadata import with_own_names
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.counters import clocks_of
from rollbook.schema.seeds import named_seed
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    _Path = tuple[str | int, ...]

_END = 0xFE
_ARRAY, _OBJECT = object(), object()
_NUMBERS = (bool, int, float)
_SYSTEM = "__system__"
_OF_DATABASE = (".sst", ".log")
_TRIES = 3


class Aim:
    """Aim's repositories (`.aim`): metrics, parameters, name, experiment as group, tags, notes, how the run ended.

    A metric of the context {"subset": "train"} is called `train/<name>`, one of other contexts `<name>/<key>=<value>`,
    and system metrics `system/<name>`. Each value is a row with its own time. Needs aimrocks, a part of Aim.

    Args:
      clock: the clock that Aim's steps count.
    """

    name = "aim"
    what = "Aim run"
    files = (".aim/run_metadata.sqlite",)

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether there is such a repository."""
        repository = _repository(path)
        return repository is not None and has_tables(
            repository / "run_metadata.sqlite", {"run", "experiment", "tag", "run_tag"}
        )

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each that the repository lists; with its name, and its hash if two have the same name.

        Raises:
          MissingExtra: aimrocks is not installed.
        """
        repository = _repository(path)
        if repository is None:
            return []
        _rocks(repository)
        try:
            made = list(self._listed(repository))
        except UNREADABLE:
            return [damaged(repository / "run_metadata.sqlite")]
        return with_own_names(made)

    def _listed(self, repository: Path) -> Iterator[tuple[ForeignRun, str]]:
        file = repository / "run_metadata.sqlite"
        with contextlib.closing(opened(file)) as database:
            tags: dict[object, list[str]] = {}
            for run_id, tag in database.execute("select run_id, name from run_tag join tag on tag.id = tag_id"):
                tags.setdefault(run_id, []).append(str(tag))
            found = database.execute(
                "select run.id, hash, run.name, run.description, experiment.name from run "
                "left join experiment on experiment.id = experiment_id order by run.id"
            ).fetchall()
        for run_id, code, name, notes, experiment in found:
            # Aim calls a run without a name "Run: " and its hash, and its experiment without one "default".
            run = ForeignRun(str(name or code).removeprefix("Run: "), notes=str(notes or ""))
            run.group = str(experiment) if experiment not in (None, "", "default") else None
            run.tags, run.project, run.clocks = (
                tuple(sorted(tags.get(run_id, []))),
                repository.parent.name,
                (self._clock,),
            )
            databases = [repository / part / "chunks" / str(code) for part in ("meta", "seqs")]
            files = [_files(database) for database in databases]
            try:
                meta = _attributes(databases[0], tuple((path.name, path.stat().st_mtime_ns) for path in files[0]))
            except (_Unreadable, OSError):
                run.rows = functools.partial(_lost, run)
            else:
                run.config = _config(meta.get("attrs"))
                run.seed = named_seed(run.config)
                run.status = "finished" if meta.get("end_time") else "crashed"
                run.rows = functools.partial(self._rows, run, databases[1], meta.get("contexts", {}))
            run.files = [*with_log(file), *files[0], *files[1]]
            yield run, str(code)

    def _rows(self, run: ForeignRun, database: Path, contexts: dict[Any, Any]) -> Iterator[Row]:
        run.left_out.clear()
        series: dict[tuple[Any, ...], dict[Any, dict[Any, Any]]] = {}
        try:
            for path, value in _items(database):
                # seqs, v2 (not for objects), chunks, the run, context, name, column, the step or its hash
                if path[0] != "seqs":
                    continue  # the bytes of objects
                path = path[3:] if path[1:2] == ("v2",) else path[2:]
                if len(path) == 5:
                    series.setdefault(path[1:3], {}).setdefault(path[3], {})[path[4]] = value
                elif len(path) > 5:
                    series.setdefault(path[1:3], {}).setdefault("parts", {})[path[4]] = None
        except _Unreadable:
            run.lose("points of a damaged database")
        points = sorted(
            (
                point
                for (context, name), columns in series.items()
                for point in _points(columns, _key(str(name), contexts.get(context)), run)
            ),
            key=lambda point: point[:3],
        )
        for moment, step, key, value, epoch in points:
            clocks = {**clocks_of({key: value}), self._clock: step}
            if type(epoch) is int:
                clocks["epoch"] = epoch
            yield Row(moment, clocks, {key: value})


def _points(
    columns: dict[Any, dict[Any, Any]], key: str, run: ForeignRun
) -> Iterator[tuple[float, int, str, Any, object]]:
    """(time, step, key, value, epoch) of the numbers of one metric."""
    steps, epochs, times = (columns.get(column, {}) for column in ("step", "epoch", "time"))
    values = columns.get("val", {})
    others = columns.get("parts", {}).keys() | {at for at, value in values.items() if type(value) not in _NUMBERS}
    if others:
        run.leave_out("pictures, videos, sounds, texts, figures and distributions", len(others))
    for at, value in values.items():
        moment, step = times.get(at), steps.get(at, at)
        if at in others:
            continue
        if type(moment) is float and type(step) is int:
            yield moment, step, key, value, epochs.get(at)
        else:
            run.lose("points without a time or a step")


class _Unreadable(Exception):
    """A RocksDB is damaged, or files of it went away at each attempt to read it."""


def _lost(run: ForeignRun) -> tuple[()]:
    run.left_out.clear()
    run.lose("databases that cannot be read")
    return ()


def _key(name: str, context: object) -> str:
    if name.startswith(_SYSTEM):
        name = f"system/{name.removeprefix(_SYSTEM)}"
    entries = _plain(context)
    entries = dict(entries) if isinstance(entries, dict) else {}
    subset = entries.pop("subset", None)
    return "/".join(
        [*([str(subset)] if subset else []), name, *(f"{key}={entries[key]}" for key in sorted(entries, key=str))]
    )


def _config(attributes: object) -> dict[str, Any]:
    """The attributes of a run; `run["hparams"] = {…}` is Aim's usage for the configuration."""
    entries = _plain(attributes)
    config = dict(entries) if isinstance(entries, dict) else {}
    config = {str(key): value for key, value in config.items() if not str(key).startswith("__")}
    inner = config.pop("hparams", None)
    return {**config, **inner} if isinstance(inner, dict) else config if inner is None else {**config, "hparams": inner}


def _plain(value: Any) -> Any:
    """A tree as plain data: arrays become lists."""
    if not isinstance(value, dict):
        return None if value is _ARRAY or value is _OBJECT else value
    kind = value.get(None)
    inner = {key: _plain(child) for key, child in value.items() if key is not None}
    return [child for _key, child in sorted(inner.items())] if kind is _ARRAY and _is_counted(inner) else inner


def _is_counted(inner: dict[Any, Any]) -> bool:
    return all(isinstance(key, int) for key in inner)


@functools.lru_cache(maxsize=10_000)
def _attributes(database: Path, _stamps: object) -> dict[Any, Any]:
    """The attributes of a run in its first RocksDB, as nested dictionaries; None -> an inner value's kind."""
    tree: dict[Any, Any] = {}
    for path, value in _items(database):
        if len(path) < 4 or path[:2] != ("meta", "chunks"):
            continue  # the same once more, for searches over all runs
        at = tree
        for part in path[3:-1]:
            inner = at.get(part)
            if not isinstance(inner, dict):
                inner = at[part] = {}
            at = inner
        if value is _ARRAY or value is _OBJECT:
            at.setdefault(path[-1], {})[None] = value
        else:
            at[path[-1]] = value
    return tree


def _items(database: Path) -> Iterator[tuple[_Path, Any]]:
    """All (path, value) of a RocksDB, decoded.

    Opening writes a log file and takes a lock; so the files are opened by links from a temporary folder, and no file of
    Aim's changes.

    Raises:
      _Unreadable: see there.
    """
    found: list[tuple[bytes, bytes]] | None = None
    for _attempt in range(_TRIES):
        with tolerating(Exception), tempfile.TemporaryDirectory(prefix="rollbook-") as folder:
            # aimrocks has a class of its own for each of RocksDB's errors
            for name in os.listdir(database):
                if name.endswith(_OF_DATABASE) or name.startswith(("CURRENT", "MANIFEST", "IDENTITY")):
                    _link(os.path.abspath(database / name), os.path.join(folder, name))
            found = _all_of(folder)
            break
    if found is None:
        raise _Unreadable
    for key, value in found:
        try:
            yield _path(key), _value(value)
        except (ValueError, struct.error):
            raise _Unreadable from None


def _all_of(folder: str) -> list[tuple[bytes, bytes]]:
    import aimrocks  # type: ignore[import-not-found,import-untyped,unused-ignore]

    items = aimrocks.DB(folder, aimrocks.Options(create_if_missing=False), read_only=True).iteritems()
    items.seek_to_first()
    return list(items)


def _link(file: str, to: str) -> None:
    try:
        os.symlink(file, to)
    except (OSError, NotImplementedError):  # Windows asks for a privilege
        shutil.copyfile(file, to)


def _path(key: bytes) -> _Path:
    parts: list[str | int] = []
    at = 0
    while at < len(key):
        if key[at] == _END:
            parts.append(struct.unpack_from(">q", key, at + 1)[0])
            at += 10
        else:
            end = key.index(_END, at)
            parts.append(key[at:end].decode())
            at = end + 1
    return tuple(parts)


def _value(data: bytes) -> Any:
    kind, rest = data[:1], data[1:]
    if kind == b"\1":
        return rest != b"\0"
    if kind == b"\2":
        return struct.unpack("<q", rest)[0]
    if kind == b"\3":
        return struct.unpack("<d", rest)[0]
    if kind == b"\4":
        return rest.decode()
    return _ARRAY if kind == b"\6" else _OBJECT if kind == b"\7" else None


def _repository(path: Path) -> Path | None:
    """The folder `.aim` of a repository, given itself, the folder above it, or its SQLite file."""
    for repository in (path, path / ".aim", path.parent):
        if repository.name == ".aim" and (repository / "run_metadata.sqlite").is_file():
            return repository
    return None


def _files(database: Path) -> list[Path]:
    """The files of a RocksDB that hold data."""
    try:
        return sorted(database / name for name in os.listdir(database) if name.endswith(_OF_DATABASE))
    except OSError:
        return []


def _rocks(repository: Path) -> None:
    try:
        import aimrocks  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra(
            f"{repository} is read with aimrocks, a part of Aim: pip install aimrocks (Python 3.12 or older)"
        ) from None
