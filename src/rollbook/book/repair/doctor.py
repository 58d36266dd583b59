"""Checks a run folder for damage and repairs what can be saved. Executes nothing found in the folder."""

from __future__ import annotations

import rollbook.system.readers  # noqa: F401 - first: it explains a package that does not load

# isort: split

import os
import time
from collections.abc import Iterator

from rollbook.book.book import Book
from rollbook.book.inspection import broken_parts, broken_pyramids, inspected, names_in
from rollbook.book.kept_files import bad_files
from rollbook.book.repair.lost_manifest import rebuilt, recall
from rollbook.book.results import write_results
from rollbook.errors import Damaged, ForeignManifest, NewerFormat, NotARun, RollbookError, RunIsLive
from rollbook.journal import FrameFile, Segment, WriterInfo, list_writers
from rollbook.schema import finished, manifest, source
from rollbook.schema.problems import Problem
from rollbook.schema.run_files import ABANDONED_FILE as ABANDONED
from rollbook.schema.run_files import (
    MANIFEST_FILE,
    PartName,
    data_folder,
    irregular,
    journal_folder,
    parse_name,
)
from rollbook.schema.status import STALE_SECONDS, quiet_seconds
from rollbook.storage import (
    keep_aside,
    losses,
    missing_numbers,
    missing_parts,
    note_files,
    note_missing,
    rescue,
)
from rollbook.system.guard import tolerating
from rollbook.system.liveness import is_alive
from rollbook.values.spool.encode import SPOOL, encode_spooled, read_ledger


def verify(run: str | os.PathLike[str]) -> list[Problem]:
    """The problems of a run, each a sentence with its kind; empty if it is sound. Reads everything and changes nothing.

    A run that is being written is sound: an unfinished end is not damage.

    Raises:
      BadInput: the folder is the cache of a run in a remote; see `rollbook.runs.verifying`.
      ForeignManifest: its run.json is another tool's.
      NotARun: the folder has no data of a run.
    """
    folder = os.fspath(run)
    source.refuse_view(folder, "verify")
    _refuse_strangers(folder, "verify")
    with tolerating(RollbookError, OSError):  # without a run.json, which is then one of the problems
        return Book(folder).problems()
    return inspected(folder, None)


def repair(run: str | os.PathLike[str], *, force: bool = False) -> list[str]:
    """Repair a run: seal unsealed data, and recover the readable part of damaged files.

    Nothing is deleted: unusable files are moved to data/aside. Safe to repeat.

    Args:
      run: the run's folder.
      force: also repair if a writer on another host cannot be judged dead or alive, even if it was active a moment ago.
    Returns:
      The actions taken, one sentence each.
    Raises:
      BadInput: the folder is the cache of a run in a remote.
      RunIsLive: a writer of the run lives.
      OSError: the folder cannot be written.
      ForeignManifest, NotARun: its run.json is another tool's, or there is no data of a run. Nothing is changed then.
    """
    from rollbook.storage import most_processes, seal

    folder = os.fspath(run)
    source.refuse_view(folder, "repair")
    _refuse_strangers(folder, "repair")
    writers = list_writers(folder)
    _refuse_if_live(folder, writers, force)
    done = _set_links_aside(folder)
    done += _repair_manifest(folder, writers)
    is_new = _MADE_AGAIN in done or _ATTEMPTS_MADE_AGAIN in done
    done += _set_folders_aside(folder)
    if damaged := finished.damage(folder):
        keep_aside(folder, finished.finished_path(folder), damaged, lost="which files were moved away before")
        done.append(f"{damaged}; it was set aside")
    for info in writers:
        done += _remove_unfinished(info)
    done += _set_parts_aside(folder)
    report = seal(folder, take_over=True, processes=most_processes())
    if report.segments or report.frame_files:
        done.append(str(report))
    else:
        done += report.problems
    done += rescue(folder)
    seal(folder, final=True, take_over=True)
    done += note_missing(folder, missing_numbers(folder, [*losses(folder), *missing_parts(folder)]))
    done += _make_pictures(folder)
    done += note_files(folder, _bad_files(folder))
    if is_new:
        done += recall(folder)
    if manifest.look(folder).status != "running":
        write_results(Book(folder))
    return done or ["nothing had to be done"]


def _refuse_strangers(folder: str, asked: str) -> None:
    if manifest.holds_a_run(folder):
        return
    try:
        manifest.read(folder)
    except ForeignManifest:
        raise
    except RollbookError:
        if not os.path.lexists(manifest.path_of(folder)):
            raise NotARun(
                f"{asked}({folder!r}): neither a run.json nor anything else of a run is there.",
                "List what is available with: rollbook ls",
            ) from None


def _bad_files(folder: str) -> list[tuple[str, str]]:
    with tolerating(RollbookError, OSError):  # without a run.json; it is reported
        return list(bad_files(Book(folder)))
    return []


def _make_pictures(folder: str) -> Iterator[str]:
    """Encode the pixels that wait: the process that should have done it is dead."""
    if not os.path.isdir(os.path.join(folder, SPOOL)):
        return
    before = read_ledger(folder)
    after = encode_spooled(folder)
    made, failed = after["encoded"] - before["encoded"], after["failed"] - before["failed"]
    if made:
        yield f"pictures and videos made of their pixels: {made:,}"
    if failed:
        yield f"pictures and videos that could not be made: {failed:,}: {after['errors'][-1]}"


def _refuse_if_live(folder: str, writers: list[WriterInfo], force: bool) -> None:
    for info in writers:
        if info.closed is not None:
            continue
        alive = is_alive(info.about)
        if alive:
            raise RunIsLive(
                f"repair({folder!r}): process {info.pid} on this host writes it (writer {info.id}). Let it finish, or "
                "end it first"
            )
        quiet = quiet_seconds(folder, manifest.RunJson())
        if alive is None and not force and quiet <= STALE_SECONDS:
            raise RunIsLive(
                f"repair({folder!r}): writer {info.id} on host {info.host or 'unknown'} may still run: "
                f"its process cannot be seen from here, and it wrote {quiet:.0f} s ago. Wait a minute, or use force if "
                "it has ended"
            )


_ATTEMPTS_MADE_AGAIN = "the attempts in run.json were damaged; rebuilt from the writers' records"
_MADE_AGAIN = "run.json was missing or damaged; rebuilt from the writers' records. Name, tags and seed may be lost"


_TOLD_BY_ROWS = ("attempt", "attempts", "created", "ended", "status")
"""Fields that can be made again without loss."""


def _repair_manifest(folder: str, writers: list[WriterInfo]) -> Iterator[str]:
    """Ensure a readable run.json with a correct status."""
    with manifest.ManifestLock(folder):
        yield from list(_repair_locked_manifest(folder, writers))


def _repair_locked_manifest(folder: str, writers: list[WriterInfo]) -> Iterator[str]:
    path, is_new = os.path.join(folder, MANIFEST_FILE), False
    try:
        about = manifest.read(folder)
        wrong = manifest.damage(folder)
    except NewerFormat:
        raise
    except NotARun:
        if os.path.exists(path):
            keep_aside(folder, path, "it could not be read", lost="")
        about = rebuilt(folder, writers)
        manifest.write(folder, about, durable=True)
        yield _MADE_AGAIN
        is_new, wrong = True, []
    if wrong:
        gone = [problem for problem in wrong if problem.kind not in _TOLD_BY_ROWS]
        keep_aside(folder, path, ", ".join(wrong), lost=", ".join(gone))
        if any(problem.kind in ("attempt", "attempts") for problem in wrong):
            about.attempts = rebuilt(folder, writers).attempts
            yield _ATTEMPTS_MADE_AGAIN
            is_new = True
        manifest.write(folder, about, durable=True)
        yield f"run.json had fields that could not be used, and now is without them: {', '.join(wrong)}"
    if about.status == "running":
        ended = max((_last_time(info) for info in writers), default=0.0) or time.time()
        if about.attempts and about.attempts[-1].status == "running":
            about.attempts[-1].set(status="crashed", ended=ended)
        about.set(status="crashed", ended=ended)
        manifest.write(folder, about, durable=True)
        if not is_new:  # else its rows tell how it ended
            yield "run.json had the status running, but no process writes the run; its status is now crashed"


def _last_time(info: WriterInfo) -> float:
    """When a writer's last row was written, in unix seconds; 0 if unknown."""
    closed = (info.closed or {}).get("time")
    newest = float(closed) / 1e9 if isinstance(closed, (int, float)) else 0.0
    for name in names_in(info.folder):
        path = os.path.join(info.folder, name)
        parsed = parse_name(name)
        try:
            if parsed is not None and parsed[0] == "seg":
                with Segment(path) as segment:
                    newest = max([newest, *(row[1] / 1e9 for row in segment.committed())])
            elif parsed is not None:
                with FrameFile(path, info.time_offset) as file:
                    newest = max([newest, *(frame[1] / 1e9 for frame in file.scan())])
        except (OSError, Damaged, NewerFormat):
            continue
    return newest


def _set_links_aside(folder: str) -> list[str]:
    """Move aside what is neither a file nor a folder: nothing is ever read or written through links.

    Raises:
      Damaged: data/ itself is a link.
    """
    data = data_folder(folder)
    if os.path.islink(data):
        raise Damaged(
            f"{data} is a link, and repair writes only inside a run's folder.", "Repair the folder to which it points"
        )
    aside = os.path.join(data, "aside")
    done = []
    if os.path.lexists(aside) and (os.path.islink(aside) or not os.path.isdir(aside)):
        os.replace(aside, f"{aside}.link")
    for path in irregular(folder):
        why = "a link or not a regular file"
        new_path = keep_aside(folder, path, why, lost="the file that should be here" if _has_rows(path) else "")
        done.append(f"{path} is a link or not a regular file; it was set aside as {os.path.basename(new_path)}")
    return done


def _set_folders_aside(folder: str) -> list[str]:
    """Move aside folders with the name of a file."""
    done = []
    folders = [os.path.join(journal_folder(folder), name) for name in names_in(journal_folder(folder))]
    folders.append(os.path.join(data_folder(folder), "keeper"))
    paths = [os.path.join(parent, name) for parent in folders for name in names_in(parent) if name != "cursors"]
    for path in [*paths, os.path.join(data_folder(folder), ABANDONED)]:
        if os.path.isdir(path):
            lost = "the file that should be here" if _has_rows(path) else ""
            keep_aside(folder, path, "a folder where a file should be", lost=lost)
            done.append(f"{path} is a folder where a file should be; it was set aside")
    return done


def _has_rows(path: str) -> bool:
    """Whether a path has the name of a file with rows."""
    name = os.path.basename(path)
    return parse_name(name) is not None or PartName.parse(name) is not None


def _remove_unfinished(info: WriterInfo) -> Iterator[str]:
    for name in names_in(info.folder):
        path = os.path.join(info.folder, name)
        if parse_name(name) is None and name.endswith(".tmp"):
            os.unlink(path)
            yield f"{path} was half-written; it is gone"


def _set_parts_aside(folder: str) -> list[str]:
    """Move aside unreadable Parquet files; merges rebuild wrong pyramids."""
    done = []
    for path, problem in [*broken_parts(folder), *broken_pyramids(folder)]:
        if path.endswith(".pyr"):
            os.unlink(path)
            done.append(f"{problem}; it is gone")
        elif path.endswith(".parquet") and os.path.isfile(path):
            keep_aside(folder, path, problem)
            done.append(f"{problem}; it was set aside")
    return done
