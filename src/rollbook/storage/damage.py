"""What was damaged in a run, and what of it is lost for good: data/damage.jsonl, so that no reader ever forgets it.

Each line is a JSON object about one file that was set aside: `file`, its name in data/aside; `path`, where it was in
the run; `problem`, why it could not be used; `lost`, what could not be saved from it: null until `rollbook repair` has
searched it, "" if nothing is lost. The last line about a file counts. Lines are only ever added.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rollbook.errors import Damaged
from rollbook.schema.problems import Problem
from rollbook.schema.run_files import RunFile, data_folder
from rollbook.system.files import open_regular, own_files, read_regular
from rollbook.system.guard import tolerating
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SEARCHED = ".searched"
"""The end of the name of a file in data/aside from which all that is whole was taken."""


_HEAD = "head:"
"""The begin of the `file` of an entry about a segment that was read as a whole, although its head was wrong."""


class MissingNumbers(NamedTuple):
    """Sequence numbers of a lane that no file has. `folder` is that of the writer's journal."""

    writer: str
    lane: int
    n: int
    first: int
    last: int
    folder: str

    def __str__(self) -> str:
        return (
            f"{self.folder}: {amount(self.n, 'record')} of lane {self.lane}, between number {self.first} and "
            f"{self.last}, {'is' if self.n == 1 else 'are'} in no file"
        )


def note(run: str, file: str, path: str, problem: str, lost: str | None = None) -> None:
    """Add a line about a file that is set aside.

    Args:
      run: the run's folder.
      file: its name in data/aside.
      path: where it was, in the run's folder.
      problem: why it could not be used.
      lost: what could not be saved from it; None before the first `repair`.
    Raises:
      OSError: the disk is full, or the folder cannot be written.
    """
    where = os.path.relpath(path, run).replace(os.sep, "/")
    about = {"file": file, "path": where, "problem": _without(problem, path), "lost": lost}
    _append(run, about)


def note_head(run: str, path: str, problem: str) -> None:
    """Report until a `repair` that the head of a journal segment was wrong, although all of its rows were read."""
    file = f"{_HEAD}{os.path.relpath(path, run)}"
    if file not in _entries(run):
        note(run, file, path, problem)


def settle(run: str, file: str, lost: str) -> None:
    """Add what could not be saved from a file that was set aside; "" if nothing is lost.

    Called before what was saved is written: what a repair that was interrupted called lost stays lost.
    """
    known = _entries(run).get(file)
    if known is None:  # it was set aside before there was a record
        folder, _, name = file.partition(".")
        known = {"file": file, "path": f"data/{folder}/{name}".rstrip("~"), "problem": "damaged"}
    _append(run, {**known, "lost": " ".join(lost.split()) or known.get("lost") or ""})


def note_missing(run: str, gaps: Iterable[MissingNumbers]) -> Iterator[str]:
    """Add that records are in no file; a sentence for each gap that was not known yet."""
    known = _entries(run)
    for gap in gaps:
        file = f"{gap.writer}.L{gap.lane:02d}.{gap.first}"
        if file not in known:
            lost = f"{amount(gap.n, 'record')}, between number {gap.first} and {gap.last}"
            about = {"file": file, "path": f"data/journal/{gap.writer}", "lost": lost}
            _append(run, {**about, "problem": f"records of lane {gap.lane} are in no file"})
            yield f"{gap}; lost for good, unless their file is found"


def note_files(run: str, files: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Add that files that rows name are gone or damaged; a sentence for each that was not known yet."""
    known = _entries(run)
    for path, problem in files:
        file = f"named:{os.path.relpath(path, run)}"
        if file not in known:
            note(run, file, path, problem, lost="its content")
            yield f"{path}: {problem}"


def join_damage(part: str, run: str) -> None:
    """Add what was damaged in a part of a run that is joined."""
    known = _entries(run)
    for file, about in _entries(part).items():
        if known.get(file) != about:
            _append(run, about)


def unsettled(run: str) -> list[str]:
    """The files that were set aside, are not in data/aside any more, and were never searched."""
    here = own_files(os.path.join(data_folder(run), "aside"))
    return [file for file, about in _entries(run).items() if about["lost"] is None and file not in here]


def is_back(run: str, file: str) -> bool:
    """Whether nothing of a file is lost: it is where it was, as moving it was interrupted, or all rows were read."""
    about = _entries(run).get(file)
    if file.startswith(_HEAD):
        return True
    return about is not None and os.path.lexists(os.path.join(run, *about["path"].split("/")))


def losses(run: str) -> Iterator[Problem]:
    """A problem for each damaged file of which something is lost, or that `repair` has not searched yet."""
    entries = _entries(run)
    for about in entries.values():
        path = os.path.join(run, *about["path"].split("/"))
        if about["lost"] is None and about["file"].startswith(_HEAD):
            yield Problem(f"{path}: {about['problem']}", "unreadable", path)
        elif about["lost"] is None:
            words = (
                f"{path}: {about['problem']}; the file was set aside, and the rows that could not be read are not in "
                "the book. `rollbook repair` looks for what is whole in it"
            )
            yield Problem(words, "missing", path)
        elif about["lost"]:
            yield Problem(f"{path}: {about['problem']}; lost for good: {about['lost']}", "missing", path)
    folder = os.path.join(data_folder(run), "aside")
    for name in own_files(folder):
        if name not in entries and name.rstrip("~").endswith((".log", ".seg")):
            path = os.path.join(folder, name)
            words = (
                f"{path} was damaged when it was sealed: the rows that could not be read are not in the book. "
                "`rollbook repair` looks for what is whole in it"
            )
            yield Problem(words, "missing", path)


def files_set_aside(run: str) -> set[str]:
    """The names of all files that were ever set aside, even if data/aside was emptied since."""
    names = own_files(os.path.join(data_folder(run), "aside"))
    return {*(name.removesuffix(SEARCHED) for name in names), *_entries(run)}


def _entries(run: str) -> dict[str, dict[str, Any]]:
    """What is known of each file, by its name in data/aside. Lines that make no sense are passed over."""
    data = b""
    with tolerating(OSError):
        data = read_regular(_path(run))
    entries: dict[str, dict[str, Any]] = {}
    for line in data.splitlines():
        about = None
        with tolerating(ValueError, RecursionError):
            about = json.loads(line)
        if not isinstance(about, dict) or not isinstance(about.get("file"), str):
            continue
        if all(isinstance(about.get(name), str) for name in ("path", "problem")):
            lost = about.get("lost")
            entries[about["file"]] = {**about, "lost": lost if lost is None else str(lost)}
    return entries


def _append(run: str, about: dict[str, Any]) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    try:
        fd = open_regular(_path(run), flags)
    except Damaged as err:
        raise OSError(f"{err}. `rollbook repair` sets it aside") from None
    try:
        # The first line break ends a line that was torn by a full disk.
        os.write(fd, b"\n" + json.dumps(about, separators=(",", ":")).encode() + b"\n")
        os.fsync(fd)
    finally:
        os.close(fd)


def _path(run: str) -> str:
    return os.path.join(data_folder(run), RunFile.DAMAGE)


def _without(problem: str, path: str) -> str:
    """The problem without the file's path: its sentence begins with it, and the folder may move."""
    for begin in (f"{path}: ", f"{path} "):
        problem = problem.removeprefix(begin)
    return " ".join(problem.replace(path, os.path.basename(path)).split())
