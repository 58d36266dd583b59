"""Convert the journal of a run to Parquet, except for the files that its writers still use.

Sealing can be interrupted at any point and repeated: names are deterministic, a part appears whole or not at all, and
a journal file is removed only when its rows are on disk as Parquet. Live writers are not disturbed: only segments that
they no longer use are sealed. Writers of another host or pid namespace are left alone.
"""

from __future__ import annotations

import rollbook.system.readers  # noqa: F401 - first: it explains a package that does not load
from rollbook.schema.run_files import RunFile

# isort: split

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rollbook.errors import Damaged
from rollbook.journal import list_writers
from rollbook.schema import finished, manifest, source
from rollbook.schema.run_files import data_folder, irregular, part_folders
from rollbook.storage.parts import OpenParts
from rollbook.storage.sealing.helpers import seal_by_helpers
from rollbook.storage.sealing.merge import SIZES, Sizes, merge
from rollbook.storage.sealing.one_pass import SealReport, unlink
from rollbook.storage.sealing.writers import seal_writers
from rollbook.system.files import is_same_file, make_folders, names_in, own_files, remove, unlock

__all__ = ["SealReport", "only_one", "seal"]

_LOCK_SECONDS = 60.0


def seal(
    run: str | os.PathLike[str],
    *,
    final: bool = False,
    take_over: bool = False,
    processes: int = 1,
    up_to: str = "",
    sizes: Sizes = SIZES,
) -> SealReport:
    """Seal what can be sealed.

    Args:
      run: the run's folder.
      final: the run is over: also merge the parts of each stream, and all small groups.
      take_over: also seal writers whose state is unknown here (another host). Only if they are known to be gone.
      processes: maximum number of sealing processes if many writers have left much; each seals some of the writers.
      up_to: a JSON file whose `cursor` is {writer: {lane: seq}}: later rows stay in the journal; "" for none.
      sizes: when to merge parts, and when to start other processes.
    Raises:
      BadInput: the folder is the cache of a run in a remote.
      OSError: the disk is full, or the folder cannot be written. What was sealed before stays sealed.
    """
    folder = os.fspath(run)
    source.refuse_view(folder, "seal")
    report = SealReport()
    links = [path for path in irregular(folder) if os.path.isdir(path)]
    if links:
        report.problems.append(
            f"{links[0]} is a link, and nothing is written through it, so nothing was sealed. `rollbook repair` sets "
            "it aside"
        )
        return report
    with only_one(folder, wait=_LOCK_SECONDS if final else 0.0) as lock:
        if lock is None:
            report.problems.append("another process is sealing this run")
            return report
        _sweep(folder)
        done, reached = seal_by_helpers(
            folder, lock, processes, report, take_over=take_over, final=final, up_to=up_to, each=sizes.helper_bytes
        )
        sealed = seal_writers(folder, report, take_over=take_over, but=done, up_to=up_to)
        sealed.remember(reached)
        from rollbook.storage.sealing.abandoned import write_abandoned
        from rollbook.storage.sealing.columns_files import write_columns_files
        from rollbook.storage.sealing.writers_file import write_writers_file

        about = _in_our_format(folder)
        open_parts = OpenParts(folder)
        report.merged += merge(folder, final=final, problems=report.problems, sizes=sizes, open_parts=open_parts)
        try:
            write_abandoned(folder, about, open_parts)
            write_columns_files(folder, about, open_parts)
            write_writers_file(folder, about)
        except (Damaged, IsADirectoryError) as err:
            report.problems.append(str(err))
        _remove_empty_writers(folder, least=1 if final else sizes.many_writers)
    return report


def _in_our_format(folder: str) -> manifest.RunJson:
    """run.json. The format version of a run begun by an older rollbook is raised: it now contains newer files."""
    about = manifest.look(folder)
    if about.format == manifest.FORMAT:
        return about
    with manifest.ManifestLock(folder):
        about = manifest.look(folder)
        if not about.is_empty and (about.format or 0) < manifest.FORMAT:
            about.format = manifest.FORMAT
            manifest.write(folder, about, durable=True)
    return about


def _sweep(run: str) -> None:
    """Remove half-written files of interrupted sealings. The lock is held, so no process is writing them."""
    for table in names_in(data_folder(run)):
        if table in ("journal", "keeper"):
            continue
        for folder in part_folders(run, table):
            for name in own_files(folder):
                if name.endswith(".tmp"):
                    unlink(os.path.join(folder, name))


def _remove_empty_writers(run: str, least: int) -> None:
    """Replace the folders of closed, sealed writers by one file with their info.

    Args:
      least: only if there are at least this many.
    """
    empty = [
        info
        for info in list_writers(run)
        if info.closed is not None and info.about and not set(names_in(info.folder)) - {RunFile.WRITER, RunFile.CLOSED}
    ]
    if len(empty) < least:
        return
    finished.add(run, "writers", {info.id: {**info.about, "closed": info.closed} for info in empty})
    for info in empty:
        for name in (RunFile.CLOSED, RunFile.WRITER):
            unlink(os.path.join(info.folder, name))
        try:
            os.rmdir(info.folder)
        except OSError:
            continue


@contextmanager
def only_one(run: str, wait: float) -> Iterator[int | None]:
    """The descriptor that holds the run's lock: one process at a time, per host. None if another process has it, -1 on
    systems without such locks."""
    folder = os.path.join(data_folder(run), "keeper")
    make_folders(folder, inside=run)
    try:
        import fcntl
    except ImportError:  # Windows: names are deterministic and parts appear whole, so two sealers do no harm
        yield -1
        return
    path = os.path.join(folder, "seal-lock")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        end = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if is_same_file(fd, path):
                    break
                os.close(fd)  # its last holder removed it meanwhile
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except BlockingIOError:
                if time.monotonic() >= end:
                    yield None
                    return
                time.sleep(0.05)
        yield fd
        remove(path)
        unlock(fd)  # not after an exception: helpers that still work hold the lock, too
    finally:
        os.close(fd)
