"""The `ckpt/` folder of a run: complete files under unused names, the best one, and which may be deleted.

A file is written under a hidden temporary name, flushed to disk together with its folder, and then renamed to a name
that does not exist yet. `.index.json` stores names and scores across resumes and processes. Its loss does no harm: the
book has the data, and older files are only no longer deleted.
"""

from __future__ import annotations

import json
import os
import time

from rollbook.system.files import (
    is_file,
    is_folder,
    is_link,
    lexists,
    make_folders,
    names_in,
    sync_folder,
    write_json,
)
from rollbook.system.guard import ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rollbook.schema.shapes import CheckpointEntry

_INDEX = ".index.json"
_PARTIAL = ".partial-"
_STALE_SECONDS = 3600.0  # an unfinished file untouched for this long has lost its process


class CkptFolder:
    """The checkpoints that rollbook wrote for a run.

    Attributes:
      path: the folder; created by the first `put`.
      entries: one dict per kept checkpoint, oldest first: id, name (None: registered, written by others), score,
        higher_is_better, format, clocks.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[CheckpointEntry] = []
        self._seen: tuple[int, ...] = ()
        self.refresh()

    def refresh(self) -> None:
        """Load the changes that another process made to the index since it was last read or written."""
        version = self._version()
        if version == self._seen:
            return
        self._seen = version
        with tolerating(OSError, ValueError) as missed, open(self.path / _INDEX, encoding="utf-8") as file:
            entries = json.load(file)
        if missed:
            return
        if isinstance(entries, list):
            self.entries = [entry for entry in entries if _is_entry(entry)]

    def put(self, stem: str, suffix: str, write: Callable[[Path], object]) -> Path:
        """A new file `<stem><suffix>`, written by `write(path)`; `<stem>_2<suffix>` and so on if that name is used.

        Raises:
          OSError, or any exception of `write`: nothing is left behind, and existing files are unchanged.
        """
        partial = self._partial()
        try:
            write(partial)
            flush(partial)
            return self._name(partial, stem, suffix)
        finally:
            _remove(partial)

    def put_own(self, stem: str, write: Callable[[Path], object]) -> Path:
        """The same for a function that chooses its own suffix or creates a folder. It gets a path with the name `stem`.

        A single file or folder whose name begins with `stem` becomes the checkpoint; several are kept together in a
        folder.

        Raises:
          FileNotFoundError: the function wrote nothing there.
        """
        partial = self._partial()
        partial.mkdir()
        try:
            write(partial / stem)
            made = sorted(partial.iterdir())
            if not made:
                raise FileNotFoundError(f"the function given as write= returned and left nothing at {partial / stem}*")
            flush(partial)
            if len(made) == 1 and made[0].name.startswith(stem):
                return self._name(made[0], stem, made[0].name[len(stem) :])
            return self._name(partial, stem, "")
        finally:
            _remove(partial)

    def set_best(self, source: Path, suffix: str, *, ours: bool = True) -> Path | None:
        """Atomically make `ckpt_best<suffix>` this checkpoint, and remove any other `ckpt_best`.

        Args:
          ours: a file that rollbook wrote gets a hard link. A folder, or a file that others wrote (and may overwrite),
            gets a symbolic link.
        Returns:
          The name; None if the system cannot make such links.
        """
        target = self.path / f"ckpt_best{suffix}"
        partial = self._partial()
        made = True
        try:
            if source.absolute() != target.absolute():  # a framework may use this name for its best
                made = _second_name(source, partial) if ours and is_file(source) else self._point(partial, source)
                if made:
                    os.replace(partial, target)
            for older in self._named("ckpt_best"):  # an older best of another form
                if older != target or not made:
                    older.unlink()
            sync_folder(self.path)
        finally:
            _remove(partial)
        return target if made else None

    def _point(self, link: Path, source: Path) -> bool:
        inside = source.absolute().is_relative_to(self.path.parent.absolute())
        there = os.path.relpath(source, self.path) if inside else os.path.abspath(source)
        with tolerating(OSError, NotImplementedError) as missed:  # Windows requires a privilege
            os.symlink(there, link, target_is_directory=is_folder(source))
        return not missed

    def surplus(self, keep: int) -> list[CheckpointEntry]:
        """The entries that are neither among the `keep` newest nor the best, oldest first."""
        best = self.best()
        own = [entry for entry in self.entries if entry["name"] is not None]
        return [entry for entry in own[: -max(1, keep)] if entry is not best]

    def best(self) -> CheckpointEntry | None:
        """The entry with the best score; the earlier one if two are equal."""
        best: CheckpointEntry | None = None
        for entry in self.entries:
            if entry["score"] is not None and (
                best is None or is_better(entry["score"], best, entry["higher_is_better"])
            ):
                best = entry
        return best

    def add(self, entry: CheckpointEntry) -> None:
        """Remember a checkpoint."""
        self.entries.append(entry)
        self._write_index()

    def delete(self, entry: CheckpointEntry) -> None:
        """Delete an entry's file. `ckpt_best` keeps the data as long as it is the same file.

        Raises:
          OSError: it could not be deleted; the entry stays.
        """
        path = self.path / str(entry["name"])
        if is_folder(path) and not is_link(path):
            import shutil

            shutil.rmtree(path)
        else:
            _unlink(path)
        self.forget(entry)

    def forget(self, entry: CheckpointEntry) -> None:
        """Remove an entry from the list; its file stays."""
        self.entries.remove(entry)
        self._write_index()

    def _partial(self) -> Path:
        if not is_folder(self.path):
            make_folders(self.path)
            sync_folder(self.path.parent)
        self._clear_stale()
        return self.path / f"{_PARTIAL}{os.getpid()}-{os.urandom(4).hex()}"

    def _clear_stale(self) -> None:
        before = time.time() - _STALE_SECONDS
        for left in self._named(_PARTIAL):
            with tolerating(OSError):
                inside = [os.path.join(folder, name) for folder, _, names in os.walk(left) for name in names]
                if max(os.lstat(path).st_mtime for path in (str(left), *inside)) < before:
                    _remove(left)

    def _named(self, beginning: str) -> list[Path]:
        return [self.path / name for name in names_in(self.path) if name.startswith(beginning)]

    def _name(self, made: Path, stem: str, suffix: str) -> Path:
        number = 1
        while True:
            target = self.path / f"{stem}{suffix}" if number == 1 else self.path / f"{stem}_{number}{suffix}"
            number += 1
            if lexists(target):
                continue
            with tolerating(FileExistsError) as missed:
                _give_name(made, target)
            if missed:
                continue
            sync_folder(self.path)
            return target

    def _version(self) -> tuple[int, ...]:
        with tolerating(OSError) as missed:
            stat = os.stat(self.path / _INDEX)
        if missed:
            return ()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns

    def _write_index(self) -> None:
        make_folders(self.path)
        write_json(self.path / _INDEX, self.entries)
        self._seen = self._version()


def _second_name(source: Path, target: Path) -> bool:
    with tolerating(OSError) as missed:  # no hard links here
        os.link(source, target)
    if missed:
        import shutil

        shutil.copyfile(source, target)
        flush(target)
    return True


def _unlink(path: Path) -> None:
    with tolerating(FileNotFoundError):
        os.unlink(path)


def flush(path: Path) -> None:
    """Flush a file, or a folder with all its content, to disk.

    Raises:
      OSError: the disk fails.
    """
    if is_folder(path):
        for inner in path.iterdir():
            flush(inner)
        sync_folder(path)
        return
    with open(path, "rb+") as file:  # Windows flushes only files open for writing
        os.fsync(file.fileno())


def _give_name(made: Path, target: Path) -> None:
    """Rename without ever replacing a file.

    Raises:
      FileExistsError: another process was faster.
    """
    if is_folder(made):
        os.rename(made, target)
        return
    try:
        os.link(made, target)
    except FileExistsError:
        raise
    except ours(OSError):  # no hard links here: an empty file reserves the name
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(made, target)


def _remove(path: Path) -> None:
    with tolerating(OSError):  # the removal often fails too then; the file is removed later
        if is_folder(path) and not is_link(path):
            import shutil

            shutil.rmtree(path, ignore_errors=True)
        else:
            _unlink(path)


def _is_entry(entry: object) -> bool:
    """Whether an entry of the index is valid; above all, its name must be inside the folder."""
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str) or "name" not in entry:
        return False
    name, score, clocks = entry["name"], entry.get("score"), entry.get("clocks")
    if name is not None and (
        not isinstance(name, str) or not name or name[0] == "." or os.path.basename(name) != name or "\\" in name
    ):
        return False
    if not isinstance(entry.get("higher_is_better"), bool) or not isinstance(entry.get("format"), str):
        return False
    if not isinstance(clocks, dict) or not all(type(reading) is int for reading in clocks.values()):
        return False
    return score is None or (type(score) in (int, float) and score == score)


def is_better(score: float, than: CheckpointEntry, higher_is_better: bool) -> bool:
    """Whether a score is better than that of an entry. Any score is better than none."""
    known = than["score"]
    return known is None or (score > known if higher_is_better else score < known)
