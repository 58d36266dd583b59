"""`import_runs`: what importers read, as runs in a folder of runs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollbook.formats.importers._registry import choose, make, what
from rollbook.ground import manifest
from rollbook.ground.clocks import STANDARD
from rollbook.ground.texts import printable
from rollbook.protocols import ForeignRun, Row
from rollbook.run.arguments import check_name
from rollbook.run.resuming import find_to_resume
from rollbook.run.session import init

__all__ = ["Imported", "as_name", "import_one", "import_runs", "stamp_of"]


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one foreign run.

    Attributes:
      folder: the run's folder.
      rows: how many rows were written now; 0 where all were there.
      left_out: what was not brought over, in words -> how often.
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
    """Bring the runs that another tool wrote at `source` into a folder of runs.

    Every row keeps its own time, and so does the run: it began with its first row and ended with its last. An import
    that was killed goes on where it stopped when it is asked for again, one of a source that has grown brings what is
    new, and one of a source that is as it was does nothing.

    Args:
      source: a file or folder.
      format: the importer's name; by default the one that finds something there.
      dir: root of all runs. Default: $ROLLBOOK_DIR, or "runs".
      project: of the runs. Default: the one that the other tool has for them, else the name of the source.
      name: of the run; where there are several, what their names begin with.
      options: those of the importer, such as clock="env_step".
    Raises:
      BadInput: there is nothing that an importer reads; or what was imported before has been changed since.
      UnknownOption: no such format, or no such option of it. MissingExtra: the importer's package is not installed.
    """
    path = Path(source)
    chosen = format if format is not None else choose(path)
    importer = make(chosen, **options)
    if not path.exists():
        choose(path)  # says so
    root = os.path.abspath(os.fspath(dir) if dir is not None else os.environ.get("ROLLBOOK_DIR", "runs"))
    home = as_name(project or path.resolve().stem or "imported")
    done = []
    runs = list(importer.runs(path))
    own = project is None
    for foreign in runs:
        called = foreign.name if name is None else name if len(runs) == 1 else f"{name}-{foreign.name}"
        there = as_name(foreign.project) if own and foreign.project else home
        done.append(import_one(foreign, chosen, path, root, there, as_name(called), options))
    return done


def import_one(
    foreign: ForeignRun, chosen: str, path: Path, root: str, project: str, name: str, options: dict[str, object]
) -> Imported:
    """Bring one foreign run into a folder of runs; see `import_runs`.

    Args:
      chosen: the format; path: the source that was asked for; options: those of the importer. They are its identity.
    """
    said = f"{chosen}\0{path.resolve()}\0{foreign.name}\0{sorted(options.items())!r}"
    identity = hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    stamp = stamp_of(foreign)
    there = find_to_resume(os.path.join(root, project), name, identity)
    if there is not None and foreign.files:
        before = manifest.look(there).get("imported")
        if isinstance(before, dict) and before.get("files") == stamp:
            return Imported(Path(there), 0, {str(what): int(n) for what, n in before.get("left_out", {}).items()})
    span = _Span()
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
        resume="allow",
        run_id=identity,
        keeper="inline",
    )
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
    _tell_of_origin(run.folder, span, imported, what(chosen))
    return Imported(run.folder, rows, left_out)


class _Span:
    """The times of the first and the last row."""

    def __init__(self) -> None:
        self.first, self.last = float("inf"), float("-inf")

    def watch(self, rows: Any) -> Iterator[Any]:
        """The same rows."""
        for row in rows:
            first, last = (row.time, row.time) if type(row) is Row else (row.times_R.min(), row.times_R.max())
            self.first, self.last = min(self.first, float(first)), max(self.last, float(last))
            yield row


def _tell_of_origin(folder: Path, span: _Span, imported: dict[str, object], made_by: str) -> None:
    """In run.json: what it is and when it took place, not when it was imported; nothing of the importing program."""
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
    """Name, size and time of each file of a foreign run: while they stay, there is nothing new in it."""
    return [[file.name, *_stamp(file)] for file in foreign.files]


def _stamp(file: Path) -> tuple[int, int]:
    try:
        stat = file.stat()
    except OSError:
        return 0, 0
    return stat.st_size, stat.st_mtime_ns


def as_name(text: str) -> str:
    """`text` as the name of a run or project: what no folder name may hold becomes "-"."""
    clean = "".join("-" if c in '/\\:*?"<>|' or not c.isprintable() else c for c in printable(text)).strip(" .-")
    return check_name("name", clean[:60] or "imported")
