"""`import_runs`: reads runs with importers and writes them into a folder of runs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollbook.errors import BadInput
from rollbook.formats.importers._found import FoundRun
from rollbook.formats.importers._labels import labels_of
from rollbook.formats.importers._media import filed
from rollbook.formats.importers._metadata import FROM_NAME, complete, hydra_of
from rollbook.formats.importers._names import as_name
from rollbook.formats.importers._paths import read_path
from rollbook.formats.importers._registry import choose, make, what
from rollbook.formats.importers._registry import names as importer_names
from rollbook.formats.importers._tables import HALF, is_settled
from rollbook.formats.importers._walk import Walk, told_apart
from rollbook.protocols import ForeignRun, Row
from rollbook.run.origin.config import plain
from rollbook.run.resuming import find_to_resume
from rollbook.run.session import init
from rollbook.schema import manifest
from rollbook.schema.clocks import STANDARD
from rollbook.system.files import pasted
from rollbook.system.texts import amount


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
    left: list[str] | None = None,
    **options: object,
) -> list[Imported]:
    """Import the runs that another tool wrote at `source` into a folder of runs.

    All runs of a folder that `rollbook ls` shows are imported, of all formats unless one is named. Every row keeps its
    own time, and so does the run: it begins with its first row and ends with its last. Calling it
    again continues a killed import, adds new data of a source that has grown, and does nothing for an unchanged source.

    Args:
      source: a file or folder.
      format: the importer's name; by default it is detected from the files.
      dir: root of all runs. Default: $ROLLBOOK_DIR, or "runs".
      project: of the runs. Default: the other tool's project, else the name of the source.
      name: of the run; used as a prefix if there are several.
      left: gets a sentence for each source that cannot be read, and one for files that no importer understands.
      options: those of the importer, such as clock="env_step".
    Raises:
      BadInput: no importer finds anything; or data that was imported before has changed.
      UnknownOption: no such format, or no such option of it.
      MissingExtra: the importer's package is not installed.
    """
    path = Path(source)
    if not path.exists():
        choose(path)  # raises the error
    root = os.path.abspath(os.fspath(dir) if dir is not None else os.environ.get("ROLLBOOK_DIR") or "runs")
    default_project = as_name(project or path.resolve().stem or "imported")
    found = runs_at(path, format, options, [] if left is None else left)
    done = []
    for one in found:
        foreign = one.run
        called = foreign.name if name is None else name if len(found) == 1 else f"{name}-{foreign.name}"
        there = as_name(foreign.project) if project is None and foreign.project else default_project
        done.append(import_one(one, root, there, as_name(called), options))
    return done


def runs_at(path: Path, format: str | None, options: dict[str, object], left: list[str]) -> list[FoundRun]:
    """The runs of other tools at a file or folder: those that `rollbook ls` shows, or those of one format.

    Args:
      left: gets a sentence for what cannot be read.
    Raises:
      BadInput, UnknownOption, MissingExtra: see `import_runs`.
    """
    if format is None and path.is_dir():
        from rollbook.runs.catalog import stamped

        walk = Walk(Path(os.path.abspath(path)), stamped(os.path.abspath(path)), options)
        left += walk.problems
        if sentence := in_words(walk.strange, path):
            left.append(sentence)
        if not walk.runs:
            more = "".join(f"\n{sentence}" for sentence in left[:3])
            raise BadInput(
                f"import {path}: no importer reads what is there. There are: {', '.join(importer_names())}{more}"
            )
        return walk.runs
    chosen = format if format is not None else choose(path)
    importer = make(chosen, **options)
    try:
        return told_apart([FoundRun(run, chosen, path) for run in importer.runs(path)])
    except OSError as err:
        raise _gone(err) from None


def in_words(strange: list[tuple[Path, str]], below: Path) -> str:
    """How many files below a folder no importer understands, some of their names, and what to do; "" without any."""
    if not strange:
        return ""
    names = ", ".join(str(file) for file, _why in strange[:3])
    more = f" and {len(strange) - 3:,} more" if len(strange) > 3 else ""
    every = f". All of them, each with what to do: rollbook ls {pasted(below)} --left-out" if len(strange) > 1 else ""
    return f"{amount(len(strange), 'file')} with results that no importer reads: {names}{more}. {strange[0][1]}{every}"


def import_one(
    one: FoundRun,
    root: str,
    project: str,
    name: str,
    options: Mapping[str, object] | None = None,
    laid: Mapping[str, str] | None = None,
) -> Imported:
    """Import one foreign run into a folder of runs; see `import_runs`.

    Args:
      options: those of the importer; they belong to the identity of the import.
      laid: run id -> folder, of all runs in that project; None: look for them, which lists the project each time.
    """
    foreign, chosen = one.run, one.format_name
    identity = identity_of(one, options)
    stamp = stamp_of(foreign)
    # Imported before from files that have not changed since: nothing to do.
    there = find_to_resume(os.path.join(root, project), name, identity) if laid is None else laid.get(identity)
    if there is not None and foreign.files:
        before = manifest.look(there).imported
        if isinstance(before, dict) and before.get("files") == stamp and not _is_whole_now(before, foreign.files):
            return Imported(Path(there), 0, {str(what): int(n) for what, n in before.get("left_out", {}).items()})
    origin = read_details(one)
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
    # Until all rows are there the import counts as crashed; the next one continues it.
    span = _Passing(run.folder, stamp)
    status = "crashed"
    try:
        foreign.left_out.clear()
        rows = 0
        for table in foreign.tables:
            chosen_rows = (row for row in span.watch(foreign.rows()) if row.table == table)
            rows += run.write_rows(chosen_rows, table=table, source=f"{chosen}:{table}")
        parts: Mapping[str, Callable[[], Iterable[Any]]] = foreign.parts or {"": foreign.columns or foreign.rows}
        for part, rows_of in ({} if foreign.tables else parts).items():
            source = f"{chosen}:{part}" if part else chosen
            rows += run.write_rows(span.watch(rows_of()), source=source)
        status = foreign.status
    finally:
        # What the importer left out, and what the run refused.
        left_out = dict(foreign.left_out)
        for cause in ("bad_row", "odd_clock", "unloggable"):
            if cause in run.bill()["drops"]:
                left_out[cause] = run.bill()["drops"][cause]
        run.finish(status)
    imported: dict[str, object] = {
        "format": chosen,
        "from": _origin_of(one),
        "files": stamp,
        "left_out": left_out,
        "half": is_half(left_out, foreign.files),
        "sources": foreign.sources,
        "place": os.path.abspath(one.labelled),
    }
    _write_origin(run.folder, span, imported, foreign, {**origin, "made_by": foreign.made_by or what(chosen)})
    return Imported(run.folder, rows, left_out)


def identity_of(one: FoundRun, options: Mapping[str, object] | None = None) -> str:
    """The id of the run that `import_one` makes of it."""
    identifying = f"{os.path.realpath(one.found_in)}\0{one.identity}\0{sorted((options or {}).items())!r}"
    if one.run.folder is not None:
        identifying = f"{one.identity}\0{sorted((options or {}).items())!r}"
    return hashlib.sha256(identifying.encode("utf-8", "backslashreplace")).hexdigest()[:8]


EARLY = (
    "id",
    "name",
    "project",
    "seed",
    "group",
    "job_type",
    "tags",
    "notes",
    "config",
    "algo",
    "env",
    "folder",
    "from_path",
)
"""The fields of a run that are known before its rows are read."""


def early_fields(one: FoundRun, identity: str, project: str) -> dict[str, object]:
    """Those fields, as they will be in the listing of the run that is made of it; the others are None."""
    origin, foreign = read_details(one), one.run
    return manifest.listed(
        manifest.RunJson(
            id=identity,
            name=as_name(foreign.name),
            project=project,
            seed=foreign.seed,
            group=foreign.group,
            job_type=foreign.job_type,
            tags=list(foreign.tags),
            notes=foreign.notes or "",
            config=plain(dict(foreign.config))[0],
            **origin,
        )
    )


def read_details(one: FoundRun) -> dict[str, Any]:
    """Complete what is known of a run before its rows are read; further calls change nothing.

    Returns:
      Fields of run.json: algo, env, folder and from_path, those that are known.
    """
    foreign = one.run
    foreign.read_details()
    if foreign.files:
        folder = foreign.files[0].parent
        if hydra := hydra_of(folder):
            foreign.sources.setdefault("config", f"{folder}, .hydra/config.yaml")
        foreign.config = {**hydra, **foreign.config}
    complete(foreign)
    return _with_path(one)


def _with_path(one: FoundRun) -> dict[str, Any]:
    """Fields that only the path has, not the tool or its files. Labels, which people wrote, override all of these."""
    foreign = one.run
    known = manifest.listed(manifest.RunJson(config=dict(foreign.config)))
    from_files = (("algo", foreign.algo), ("env", foreign.env))
    fields: dict[str, Any] = {name: text for name, text in from_files if text and not known[name]}
    from_path = [] if foreign.folder is None else _filled_from_path(one, foreign.folder, fields, known)
    labels = labels_of(one.labelled)
    for name, (value, file) in labels.items():
        foreign.sources[name] = file
        if name in ("seed", "group"):
            setattr(foreign, name, value)
        elif name in ("algo", "env"):
            fields[name] = str(value)
        elif name != "x":
            foreign.config = {**foreign.config, name.removeprefix("config."): value}
    fields["from_path"] = [name for name in from_path if name not in labels]
    return fields


def _filled_from_path(one: FoundRun, folder: Path, fields: dict[str, Any], known: Mapping[str, object]) -> list[str]:
    """Fill what is unknown about a run from its path, and describe the path itself in `fields["folder"]`.

    Args:
      folder: of the run.
      fields: fields of run.json that the files have; changed.
      known: fields that the configuration has.
    Returns:
      The names of what was filled.
    """
    foreign, from_path = one.run, []
    folder = Path(os.path.abspath(folder))
    # A seed or group that was itself read from the run's name is worth no more than one from its path.
    facts = one.path_facts or read_path([*(one.parts or (folder.name,)), *filter(None, [foreign.part])])
    for name, value in facts.settings.items():
        if name not in foreign.config:
            foreign.config = {**foreign.config, name: value}
            from_path.append(f"config.{name}")
    if foreign.seed is None or foreign.sources.get("seed") == FROM_NAME:
        foreign.seed = facts.seed if facts.seed is not None else foreign.seed
        if foreign.seed is not None:
            from_path.append("seed")
    if foreign.group is None or foreign.sources.get("group") == FROM_NAME:
        foreign.group = facts.group or foreign.group or (folder.parent.name if one.parts else None)
        from_path.append("group")
    for name, text in (("algo", facts.algo), ("env", facts.env)):
        by_files = fields.get(name) or known[name]
        if text and (not by_files or (name == "algo" and str(by_files).lower() == facts.plain_algo.lower())):
            fields[name] = text
            from_path.append(name)
    # Otherwise a variant that is part of the algorithm's name would be in the run's name twice.
    by_files = str(fields.get("algo") or known["algo"] or facts.algo).lower()
    other = [facts.variant if by_files not in (facts.algo.lower(), facts.variant.lower()) else "", facts.other]
    more = {"date": facts.date, "other": "/".join(filter(None, other)), "repeated": facts.repeated}
    fields["folder"] = {f"level{n + 1}": part for n, part in enumerate(one.parts)}
    fields["folder"] |= {name: text for name, text in more.items() if text}
    return from_path


def _origin_of(one: FoundRun) -> str:
    files = one.run.files
    return str(files[0] if len(files) == 1 else one.run.folder or one.found_in)


class _Passing:
    """Passes rows on into a run: notes the times of the first and the last, and stores files.

    Args:
      folder: the run's folder.
      stamps: of its files: a row at the time when one of them was changed has no time of its own.
    """

    def __init__(self, folder: Path, stamps: list[list[Any]]) -> None:
        self._folder = folder
        # In microseconds, to one more or less: a float of today's seconds is not exact to the last of them.
        self._written = {round(stamp[2] / 1e3) + more for stamp in stamps for more in (-1, 0, 1)}
        self.first, self.last = float("inf"), float("-inf")

    def watch(self, rows: Any) -> Iterator[Any]:
        """The rows; those with a picture or video have its path instead of its bytes."""
        rows = iter(rows)
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except OSError as err:
                raise _gone(err) from None
            first, last = (row.time, row.time) if type(row) is Row else (row.times_R.min(), row.times_R.max())
            if round(float(first) * 1e6) not in self._written:
                self.first, self.last = min(self.first, float(first)), max(self.last, float(last))
            has_file = type(row) is Row and row.table == "media" and "content" in row.values
            yield filed(row, self._folder) if has_file else row


def _gone(err: OSError) -> BadInput:
    return BadInput(
        f"import {err.filename or 'of files'}: {err.strerror or err}. The files went away, or became unreadable, while "
        "they were read. What was read before is kept: repeat the import once they are there"
    )


def _write_origin(
    folder: Path, span: _Passing, imported: dict[str, object], foreign: ForeignRun, origin: dict[str, Any]
) -> None:
    """Write the run's own facts to run.json, its times and its end, instead of those of the importing process."""
    with manifest.ManifestLock(str(folder)):
        about = manifest.read(folder)
        about.forget(*(name for name in manifest.ORIGIN if name not in ("config", "seed")))
        first, last = foreign.started, foreign.ended
        if span.first <= span.last:
            first, last = min(span.first, first or span.first), max(span.last, last or span.last)
        about.created, about.ended = first, last
        if about.attempts:
            about.attempts[0].started, about.attempts[-1].ended = first, last
            for attempt in about.attempts:  # what stopped the reading is not what ended the training
                attempt.forget("failure")
            if foreign.status in ("crashed", "killed"):
                words = foreign.failure or f"{foreign.status}, says {origin['made_by']}"
                about.attempts[-1].failure = {"type": words, "message": "", "traceback": "", "stderr": ""}
        about.set(**origin, imported=imported, boards=foreign.boards or None)
        manifest.write(folder, about)


def is_half(left_out: Mapping[str, int], files: Sequence[Path]) -> bool:
    """Whether a last line was left out because somebody may still be writing it."""
    return HALF in left_out and not is_settled(files)


def _is_whole_now(imported: Mapping[str, Any], files: Sequence[Path]) -> bool:
    """Whether a last line that was left out as half written counts now, though the file is the same."""
    return bool(imported.get("half")) and is_settled(files)


def stamp_of(foreign: ForeignRun) -> list[list[Any]]:
    """Name, size and time of each file of a foreign run; if they are unchanged, there is no new data."""
    return [[file.name, *_stamp(file)] for file in foreign.files]


def _stamp(file: Path) -> tuple[int, int]:
    try:
        stat = file.stat()
    except OSError:
        return 0, 0
    return stat.st_size, stat.st_mtime_ns
