"""`import_runs`: reads runs with importers and writes them into a folder of runs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollbook.errors import BadInput
from rollbook.formats.importers._beside import complete, hydra_of
from rollbook.formats.importers._media import filed
from rollbook.formats.importers._registry import choose, make, what
from rollbook.protocols import ForeignRun, Row
from rollbook.run.arguments import check_name
from rollbook.run.origin.config import plain
from rollbook.run.resuming import find_to_resume
from rollbook.run.session import init
from rollbook.schema import manifest
from rollbook.schema.clocks import STANDARD
from rollbook.system.texts import printable


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of importing one foreign run.

    Attributes:
      folder: the run's folder.
      rows: how many rows were written now; 0 if all were there.
      left_out: description of what was not imported -> how often.
    """

    folder: Path
    rows: int
    left_out: dict[str, int] = field(default_factory=dict)


def import_runs(
    source: str | os.PathLike[str],
    format: str | None = None,
    *,
    dir: str | os.PathLike[str] | None = None,
    project: str | None = None,
    name: str | None = None,
    **options: object,
) -> list[Imported]:
    """Import the runs that another tool wrote at `source` into a folder of runs.

    Every row keeps its own time, and so does the run: it begins with its first row and ends with its last. Calling it
    again continues a killed import, adds new data of a source that has grown, and does nothing for an unchanged source.

    Args:
      source: a file or folder.
      format: the importer's name; by default it is detected from the files.
      dir: root of all runs. Default: $ROLLBOOK_DIR, or "runs".
      project: of the runs. Default: the other tool's project, else the name of the source.
      name: of the run; used as a prefix if there are several.
      options: those of the importer, such as clock="env_step".
    Raises:
      BadInput: no importer finds anything; or data that was imported before has changed.
      UnknownOption: no such format, or no such option of it.
      MissingExtra: the importer's package is not installed.
    """
    path = Path(source)
    chosen = format if format is not None else choose(path)
    importer = make(chosen, **options)
    if not path.exists():
        choose(path)  # raises the error
    root = os.path.abspath(os.fspath(dir) if dir is not None else os.environ.get("ROLLBOOK_DIR") or "runs")
    home = as_name(project or path.resolve().stem or "imported")
    done = []
    try:
        runs = list(importer.runs(path))
    except OSError as err:
        raise _gone(err) from None
    own = project is None
    for foreign in runs:
        called = foreign.name if name is None else name if len(runs) == 1 else f"{name}-{foreign.name}"
        there = as_name(foreign.project) if own and foreign.project else home
        done.append(import_one(foreign, chosen, path, root, there, as_name(called), options))
    return done


def import_one(
    foreign: ForeignRun, chosen: str, path: Path, root: str, project: str, name: str, options: dict[str, object],
    laid: Mapping[str, str] | None = None,
) -> Imported:  # fmt: skip
    """Import one foreign run into a folder of runs; see `import_runs`.

    Args:
      chosen: the format.
      path: the given source.
      options: those of the importer. These three are the identity of the import.
      laid: run id -> folder of all runs that lie in that project; None: they are looked for, at a listing each.
    """
    identity = identity_of(foreign, chosen, path, options)
    stamp = stamp_of(foreign)
    there = find_to_resume(os.path.join(root, project), name, identity) if laid is None else laid.get(identity)
    if there is not None and foreign.files:
        before = manifest.look(there).get("imported")
        if isinstance(before, dict) and before.get("files") == stamp:
            return Imported(Path(there), 0, {str(what): int(n) for what, n in before.get("left_out", {}).items()})
    _look_beside(foreign)
    run = init(
        project,
        name,
        seed=foreign.seed,
        config=dict(foreign.config) or None,
        group=foreign.group,
        job_type=foreign.job_type,
        tags=tuple(foreign.tags),
        notes=foreign.notes,
        clocks=[clock for clock in dict.fromkeys(foreign.clocks) if clock not in STANDARD],
        dir=root,
        sinks=(),
        rules=(),
        resume="allow" if there is not None else "never",
        run_id=identity,
        keeper="import",
    )
    span = _Passing(run.folder)
    status = "crashed"
    try:
        foreign.left_out.clear()
        rows = 0
        for table in foreign.tables:
            chosen_rows = (row for row in span.watch(foreign.rows()) if row.table == table)
            rows += run.write_rows(chosen_rows, table=table, source=f"{chosen}:{foreign.name}:{table}")
        parts: Mapping[str, Callable[[], Iterable[Any]]] = foreign.parts or {"": foreign.columns or foreign.rows}
        for part, rows_of in ({} if foreign.tables else parts).items():
            source = f"{chosen}:{foreign.name}:{part}" if part else f"{chosen}:{foreign.name}"
            rows += run.write_rows(span.watch(rows_of()), source=source)
        status = foreign.status
    finally:
        left_out = dict(foreign.left_out)
        for cause in ("bad_row", "odd_clock", "unloggable"):
            if cause in run.bill()["drops"]:
                left_out[cause] = run.bill()["drops"][cause]
        run.finish(status)
    imported: dict[str, object] = {"format": chosen, "from": str(path), "files": stamp, "left_out": left_out}
    _write_origin(run.folder, span, imported, foreign.made_by or what(chosen))
    return Imported(run.folder, rows, left_out)


def identity_of(foreign: ForeignRun, chosen: str, path: Path, options: Mapping[str, object] | None = None) -> str:
    """The id of the run that `import_one` makes of those."""
    identifying = f"{chosen}\0{path.resolve()}\0{foreign.name}\0{sorted((options or {}).items())!r}"
    return hashlib.sha256(identifying.encode("utf-8", "backslashreplace")).hexdigest()[:8]


EARLY = ("id", "name", "project", "seed", "group", "job_type", "tags", "notes", "config")
"""The fields of a run that are known before its rows are read."""


def early_fields(foreign: ForeignRun, identity: str, project: str) -> dict[str, object]:
    """Those fields, as they will be in the listing of the run that is made of it; the others are None."""
    _look_beside(foreign)
    return manifest.listed(
        {
            "id": identity,
            "name": as_name(foreign.name),
            "project": project,
            "seed": foreign.seed,
            "group": foreign.group,
            "job_type": foreign.job_type,
            "tags": list(foreign.tags),
            "notes": foreign.notes or None,
            "config": plain(dict(foreign.config))[0],
        }
    )


def _look_beside(foreign: ForeignRun) -> None:
    """Complete what is known of a run before its rows are read; further calls change nothing."""
    foreign.look_beside()
    if foreign.files:
        foreign.config = {**hydra_of(foreign.files[0].parent), **foreign.config}
    complete(foreign)


class _Passing:
    """What rows pass on their way into a run: the times of the first and the last are noted, and files are stored.

    Args:
      folder: the run's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.first, self.last = float("inf"), float("-inf")

    def watch(self, rows: Any) -> Iterator[Any]:
        """The rows; those with a picture or film have its path instead of its bytes."""
        rows = iter(rows)
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except OSError as err:
                raise _gone(err) from None
            first, last = (row.time, row.time) if type(row) is Row else (row.times_R.min(), row.times_R.max())
            self.first, self.last = min(self.first, float(first)), max(self.last, float(last))
            has_file = type(row) is Row and row.table == "media" and "content" in row.values
            yield filed(row, self._folder) if has_file else row


def _gone(err: OSError) -> BadInput:
    return BadInput(
        f"import {err.filename or 'of files'}: {err.strerror or err}. The files went away, or became unreadable, while "
        "they were read. What was read before is kept: repeat the import once they are there"
    )


def _write_origin(folder: Path, span: _Passing, imported: dict[str, object], made_by: str) -> None:
    """Write to run.json what the run is and when it took place, not facts of the importing process."""
    with manifest.ManifestLock(str(folder)):
        fields: Any = manifest.read(folder)
        for name in manifest.ORIGIN:
            if name not in ("config", "seed"):
                fields.pop(name, None)
        if span.first <= span.last:
            fields["created"], fields["ended"] = span.first, span.last
            if fields["attempts"]:
                fields["attempts"][0]["started"] = span.first
                fields["attempts"][-1]["ended"] = span.last
        fields["imported"], fields["made_by"] = imported, made_by
        manifest.write(folder, fields)


def stamp_of(foreign: ForeignRun) -> list[list[Any]]:
    """Name, size and time of each file of a foreign run; if they are unchanged, there is no new data."""
    return [[file.name, *_stamp(file)] for file in foreign.files]


def _stamp(file: Path) -> tuple[int, int]:
    try:
        stat = file.stat()
    except OSError:
        return 0, 0
    return stat.st_size, stat.st_mtime_ns


def as_name(text: str) -> str:
    """`text` as the name of a run or project: characters that are not allowed in folder names become "-"."""
    clean = "".join("-" if c in '/\\:*?"<>|' or not c.isprintable() else c for c in printable(text)).strip(" .-")
    return check_name("name", clean[:60] or "imported")
