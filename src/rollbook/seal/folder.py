"""Turn the journal of a run into Parquet, as far as its writers have left it.

    python -m rollbook.seal.folder RUN [--final]

Sealing is safe to interrupt at any point and harmless to repeat: names are deterministic, a part appears whole or not
at all, and a journal file is given up only when its rows are on the disk as Parquet. Live writers are never disturbed:
of theirs only segments they have left are touched. Writers of another host or pid namespace are left alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rollbook import manifest
from rollbook.errors import Damaged
from rollbook.files import read_json, write_json
from rollbook.journal.files import names_in
from rollbook.journal.liveness import is_alive, same_place
from rollbook.journal.writers import list_writers
from rollbook.seal.frames import FrameSealing
from rollbook.seal.one_pass import SealPass, SealReport, unlink
from rollbook.seal.segments import SegmentSealing
from rollbook.storage.layout import data_folder, irregular, own_files, part_folders

__all__ = ["SealReport", "main", "seal"]

_LOCK_SECONDS = 60.0


def seal(run: str | os.PathLike[str], *, final: bool = False, take_over: bool = False) -> SealReport:
    """Seal what can be sealed.

    Args:
      run: the run's folder.
      final: the run is over: also merge the parts of each stream, and all small groups.
      take_over: also seal writers that cannot be judged from here (another host). Only if they are known to be gone.
    Raises:
      OSError: the disk is full, or the folder cannot be written. What was sealed before that stays sealed.
    """
    folder = os.fspath(run)
    report = SealReport()
    links = [path for path in irregular(folder) if os.path.isdir(path)]
    if links:
        report.problems.append(
            f"{links[0]} is a link, and nothing is written through it, so nothing was sealed. `rollbook repair` sets "
            "it aside"
        )
        return report
    with _only_one(folder, wait=_LOCK_SECONDS if final else 0.0) as mine:
        if not mine:
            report.problems.append("another process is sealing this run")
            return report
        _seal_writers(folder, report, take_over)
        from rollbook.seal.abandoned import write_abandoned
        from rollbook.seal.columns_files import write_columns_files
        from rollbook.seal.merge import merge

        _raise_format(folder)
        report.merged = merge(folder, final=final, problems=report.problems)
        try:
            write_abandoned(folder)
            write_columns_files(folder)
        except (Damaged, IsADirectoryError) as err:
            report.problems.append(str(err))
        if final:
            _remove_empty_writers(folder)
    return report


def _raise_format(folder: str) -> None:
    """The manifest of a run that an older rollbook began says that newer files lie in it now."""
    if manifest.look(folder).get("format") == manifest.FORMAT:
        return
    with manifest.ManifestLock(folder):
        about = manifest.look(folder)
        if about and about["format"] < manifest.FORMAT:
            manifest.write(folder, {**about, "format": manifest.FORMAT}, durable=True)


def _seal_writers(run: str, report: SealReport, take_over: bool) -> None:
    """Of each writer segments first: once the late values are in their rows, the frames that brought them may go."""
    _sweep(run)
    at_hand = SealPass(run, report)
    segments, frames = SegmentSealing(at_hand), FrameSealing(at_hand)
    for info in list_writers(run):
        if take_over or same_place(info.about) or is_alive(info.about) is False:
            gone = take_over or info.closed is not None or is_alive(info.about) is False
            names = names_in(info.folder)
            segments.seal(info, names, gone)
            frames.seal(info, names, gone)
    at_hand.sealed.remember()


def _sweep(run: str) -> None:
    """Remove what interrupted sealings left half-written. The lock is held, so nobody is writing them."""
    for table in names_in(data_folder(run)):
        if table in ("journal", "keeper"):
            continue
        for folder in part_folders(run, table):
            for name in own_files(folder):
                if name.endswith(".tmp"):
                    unlink(os.path.join(folder, name))


def _remove_empty_writers(run: str) -> None:
    """Keep the pages of writers that have closed and are sealed in one file instead of a folder each."""
    path = os.path.join(data_folder(run), "writers.json")
    known = read_json(path)
    empty = [
        info
        for info in list_writers(run)
        if info.closed is not None and info.about and not set(names_in(info.folder)) - {"writer.json", "closed.json"}
    ]
    if not empty:
        return
    write_json(path, {**known, **{info.id: {**info.about, "closed": info.closed} for info in empty}}, durable=True)
    for info in empty:
        for name in ("closed.json", "writer.json"):
            unlink(os.path.join(info.folder, name))
        try:
            os.rmdir(info.folder)
        except OSError:
            continue


@contextmanager
def _only_one(run: str, wait: float) -> Iterator[bool]:
    """Whether this process may seal the run now: one at a time, per host."""
    folder = os.path.join(data_folder(run), "keeper")
    os.makedirs(folder, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows: names are deterministic and parts appear whole, so two sealers do no harm
        yield True
        return
    fd = os.open(os.path.join(folder, "seal-lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        end = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= end:
                    yield False
                    return
                time.sleep(0.05)
        yield True
    finally:
        os.close(fd)


def main(arguments: list[str] | None = None) -> int:
    """`python -m rollbook.seal.folder RUN [--final]`."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m rollbook.seal.folder", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("run", help="the run's folder")
    parser.add_argument("--final", action="store_true", help="the run is over: also merge its parts")
    options = parser.parse_args(arguments)
    try:
        report = seal(options.run, final=options.final)
    except OSError as err:
        sys.stderr.write(f"rollbook: sealing {options.run} stopped: {err}\n")
        return 1
    for problem in report.problems:
        sys.stderr.write(f"rollbook: {problem}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
