"""Checks a run folder for damage and repairs what can be saved. Executes nothing found in the folder."""

from __future__ import annotations

import rollbook.system.readers  # noqa: F401 - first: it explains a package that does not load

# isort: split

import os
import time
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.book.book import Book
from rollbook.book.kept_files import bad_files, waiting_pictures
from rollbook.book.repair.lost_manifest import rebuilt, recall
from rollbook.book.results import write_results
from rollbook.errors import Damaged, ForeignManifest, NewerFormat, NotARun, RollbookError, RunIsLive
from rollbook.journal import FrameFile, Segment, WriterInfo, list_writers
from rollbook.schema import finished, manifest, source
from rollbook.schema.problems import Problem
from rollbook.schema.run_files import ABANDONED_FILE as ABANDONED
from rollbook.schema.run_files import (
    COLUMNS_FILE,
    LONG,
    MANIFEST_FILE,
    WIDE,
    PartName,
    data_folder,
    irregular,
    journal_folder,
    parse_name,
    part_folder,
    part_folders,
)
from rollbook.schema.status import STALE_SECONDS, quiet_seconds, why_unsealed
from rollbook.storage import (
    Part,
    Pyramid,
    SealedSoFar,
    belonging,
    damage_of,
    keep_aside,
    losses,
    missing_numbers,
    missing_parts,
    note_files,
    note_missing,
    rescue,
)
from rollbook.system.files import open_regular, own_files
from rollbook.system.guard import tolerating
from rollbook.system.liveness import is_alive
from rollbook.system.texts import amount
from rollbook.values.spool.encode import SPOOL, encode_spooled, read_ledger


def verify(run: str | os.PathLike[str]) -> list[Problem]:
    """The problems of a run, each a sentence with its kind; empty if it is sound. Reads everything and changes nothing.

    A run that is being written is sound: an unfinished end is not damage.

    Raises:
      BadInput: the folder is the cache of a run in a remote; see `rollbook.runs.verifying.verify`.
      ForeignManifest: its run.json is another tool's.
      NotARun: the folder has no data of a run.
    """
    folder = os.fspath(run)
    source.refuse_view(folder, "verify")
    _refuse_strangers(folder, "verify")
    links = [
        Problem(f"{path} is a link or no file at all; it is neither opened nor followed", "link", path)
        for path in irregular(folder)
    ]
    sealed = [Problem(text, "unreadable", path) for path, text in _parts(folder)]
    sealed += [
        Problem(f"{text}; plots are read from the rows instead. `rollbook repair` removes it", "unreadable", path)
        for path, text in _pyramids(folder)
    ]
    damaged = [*_journal(folder), *losses(folder), *sealed, *missing_parts(folder)]
    gaps = [Problem(str(gap), "gap", gap.folder, gap.n) for gap in missing_numbers(folder, damaged)]
    waiting = [
        Problem(text, "unsealed")
        for text in (*_unsealed(folder), why_unsealed(folder), *_pictures_waiting(folder)) if text
    ]  # fmt: skip
    of_manifest = [Problem(text, "manifest") for text in _manifest_problems(folder)]
    said = [*of_manifest, *links, *damaged, *gaps, *waiting]
    known = {problem.path for problem in said}
    bad = [Problem(f"{path}: {text}", "file", path) for path, text in _bad_files(folder) if path not in known]
    return [*said, *bad]


def _manifest_problems(folder: str) -> Iterator[str]:
    try:
        about = manifest.read(folder)
    except RollbookError as err:
        yield str(err)
        return
    for problem in manifest.damage(folder):
        yield f"{folder}/run.json: {problem}; it is taken as missing"
    numbers = [entry.n for entry in about.attempts]
    for entry in about.attempts:
        if entry.parent is not None and entry.parent not in numbers:
            yield f"{folder}/run.json: attempt {entry.n} names the parent {entry.parent}, which is not there"


def _journal(folder: str) -> Iterator[Problem]:
    sealed = SealedSoFar(folder).lasts
    for info in list_writers(folder):
        gone = info.closed is not None or is_alive(info.about) is False
        if info.problem and gone:
            yield Problem(info.problem, "unreadable", info.folder)
        for name in _names(info.folder):
            path = os.path.join(info.folder, name)
            parsed = parse_name(name)
            if parsed is None:
                if gone and name.endswith(".tmp"):
                    yield Problem(f"{path} was left half-written", "unreadable", path)
                continue
            try:
                problems = _segment(path, sealed if gone else None) if parsed[0] == "seg" else _log(path, gone)
            except FileNotFoundError:
                continue
            except (Damaged, NewerFormat, OSError) as err:
                if gone or not _is_young(path):
                    yield Problem(str(err), "unreadable", path)
                continue
            yield from (Problem(f"{path}: {text}", "unreadable", path) for text in problems)


def _unsealed(folder: str) -> Iterator[str]:
    for info in list_writers(folder):
        unsealed = sum(parse_name(name) is not None for name in _names(info.folder))
        if unsealed and info.closed is None and is_alive(info.about) is False:
            yield (
                f"writer {info.id} died and {unsealed} of its files are not sealed; they can be read as they are, and "
                "`rollbook repair` seals them"
            )


def _segment(path: str, sealed: Mapping[tuple[str, str, int, str], int] | None) -> list[str]:
    """What is wrong with a segment; `sealed` is how far each stream was sealed, None while its writer lives."""
    with Segment(path) as segment:
        header = segment.header
        stream = (header.table, header.writer, header.lane, f"S{header.stream:03d}")
        if segment.header.writer != os.path.basename(os.path.dirname(path)):
            return [f"it has rows of writer {segment.header.writer}, and belongs into another folder"]
        return list(filter(None, [damage_of(segment, 2**63 if sealed is None else sealed.get(stream, 0))]))


def _log(path: str, gone: bool) -> list[str]:
    with FrameFile(path) as file:
        for _ in file.frames():
            pass
        torn = file.torn_bytes() if gone or file.is_torn_by_damage() else 0
        problems = [text for _, text in file.problems]
    return [*problems, *([f"torn behind the last whole record: {amount(torn, 'byte')}"] if torn else [])]


def _parts(folder: str) -> Iterator[tuple[str, str]]:
    """(path, problem) of the sealed files."""
    for table in _names(data_folder(folder)):
        if table in ("journal", "keeper", "pyramid", "aside") or not os.path.isdir(
            os.path.join(data_folder(folder), table)
        ):
            continue
        for path in [os.path.join(parts, name) for parts in part_folders(folder, table) for name in own_files(parts)]:
            name = os.path.basename(path)
            parsed = PartName.parse(name)
            if name == COLUMNS_FILE:
                yield from ((path, text) for text in filter(None, [_columns_file(path)]))
            if parsed is None:
                if name.endswith(".tmp") and not _is_young(path):
                    yield path, f"{path} was left half-written by an interrupted sealing; the next one removes it"
                continue
            try:
                part = belonging(Part(path, parsed), table)
                if part_folder("", part.meta["table"], part.meta["group"]) not in _homes(path, table):
                    raise Damaged(f"{path} has rows of the table {part.meta['table']}: it belongs into another folder")
                for group in range(len(part.row_groups)):
                    rows = part.read(row_groups=[group])
                    rows.validate(full=True)
                    if "seq" in rows.column_names and rows["seq"].null_count:
                        raise Damaged(f"{path}: rows without a sequence number")
            except FileNotFoundError:
                continue
            except Exception as err:  # any error of Arrow about damaged bytes
                yield path, str(err) if isinstance(err, Damaged) else f"{path}: {err}"


def _columns_file(path: str) -> str:
    """What is wrong with the file that has every column and no rows, for other programs; "" if nothing is."""
    try:
        with open(open_regular(path), "rb") as file:
            rows = pq.ParquetFile(file).metadata.num_rows
    except (OSError, Damaged, ValueError, pa.ArrowException) as err:
        return f"{path} cannot be read ({err}); `rollbook repair` makes it again"
    return f"{path} has rows of another file" if rows else ""


def _homes(path: str, table: str) -> set[str]:
    """The folders in which a part of a run without a folder of its own would be, for a part with this path."""
    form = os.path.basename(os.path.dirname(path))
    own = {part_folder("", table, "R" if form == LONG else "S")} if form in (LONG, WIDE) else set()
    return own or {part_folder("", table, "R"), part_folder("", table, "S")}


def _pyramids(folder: str) -> Iterator[tuple[str, str]]:
    """(path, problem) of the pyramids of large parts."""
    pyramids = os.path.join(data_folder(folder), "pyramid")
    for name in _names(pyramids):
        path = os.path.join(pyramids, name)
        table, _, part_name = name.removesuffix(".pyr").partition(".")
        paths = [os.path.join(parts, f"{part_name}.parquet") for parts in part_folders(folder, table)]
        part_path = next(filter(os.path.isfile, paths), paths[0])
        parsed = PartName.parse(f"{part_name}.parquet")
        if parsed is None or not name.endswith(".pyr"):
            continue
        try:
            part = Part(part_path, parsed)
            pyramid = Pyramid(path, rows=part.rows, first_seq=part.meta["first_seq"], last_seq=part.meta["last_seq"])
            pyramid.read(pyramid.axes + pyramid.keys, 0, range(len(pyramid.rows)))
        except (FileNotFoundError, Damaged):
            continue  # its part is missing or broken, which is reported there
        except (ValueError, KeyError, TypeError, OSError) as err:
            yield path, str(err)


def _pictures_waiting(folder: str) -> Iterator[str]:
    n = 0
    with tolerating(RollbookError, OSError):
        n = waiting_pictures(Book(folder))
    if n and not any(info.closed is None and is_alive(info.about) for info in list_writers(folder)):
        yield (
            f"{folder}: {n} pictures and videos wait in {SPOOL} as raw pixels, and their keeper is gone; "
            "`rollbook repair` makes files of them"
        )


def _bad_files(folder: str) -> list[tuple[str, str]]:
    with tolerating(RollbookError, OSError):  # without a run.json; it is reported
        return list(bad_files(Book(folder)))
    return []


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
                f"{asked}({folder!r}): neither a run.json nor anything else of a run lies there.",
                "List what is available with: rollbook ls",
            ) from None


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
                f"repair({folder!r}): writer {info.id} on host {info.host or 'unknown'} cannot be judged from here and "
                f"was heard of {quiet:.0f} s ago. Wait a minute, or use force if you know that it is gone"
            )


_ATTEMPTS_MADE_AGAIN = "the attempts in run.json were damaged; made anew from what the writers say"
_MADE_AGAIN = "run.json was missing or damaged; made anew from what the writers say. Name, tags and seed may be lost"


_TOLD_BY_ROWS = ("attempt", "attempts", "created", "ended", "status")
"""Fields that are made anew without loss."""


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
            yield "the run said it was running and no process writes it; its status is now crashed"


def _last_time(info: WriterInfo) -> float:
    """When a writer's last row was written, in unix seconds; 0 if unknown."""
    closed = (info.closed or {}).get("time")
    newest = float(closed) / 1e9 if isinstance(closed, (int, float)) else 0.0
    for name in _names(info.folder):
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
            f"{data} is a link, and repair writes only inside a run's folder.", "Repair the run where it lies"
        )
    aside = os.path.join(data, "aside")
    done = []
    if os.path.lexists(aside) and (os.path.islink(aside) or not os.path.isdir(aside)):
        os.replace(aside, f"{aside}.link")
    for path in irregular(folder):
        why = "a link or no file at all"
        new_path = keep_aside(folder, path, why, lost="the file that should be here" if _has_rows(path) else "")
        done.append(f"{path} is a link or no file at all; it was set aside as {os.path.basename(new_path)}")
    return done


def _set_folders_aside(folder: str) -> list[str]:
    """Move aside folders with the name of a file."""
    done = []
    folders = [os.path.join(journal_folder(folder), name) for name in _names(journal_folder(folder))]
    folders.append(os.path.join(data_folder(folder), "keeper"))
    paths = [os.path.join(own, name) for own in folders for name in _names(own) if name != "cursors"]
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
    for name in _names(info.folder):
        path = os.path.join(info.folder, name)
        if parse_name(name) is None and name.endswith(".tmp"):
            os.unlink(path)
            yield f"{path} was half-written; it is gone"


def _set_parts_aside(folder: str) -> list[str]:
    """Move aside unreadable Parquet files; merges rebuild wrong pyramids."""
    done = []
    for path, problem in [*_parts(folder), *_pyramids(folder)]:
        if path.endswith(".pyr"):
            os.unlink(path)
            done.append(f"{problem}; it is gone")
        elif path.endswith(".parquet") and os.path.isfile(path):
            keep_aside(folder, path, problem)
            done.append(f"{problem}; it was set aside")
    return done


def _is_young(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime < 60.0
    except OSError:
        return True


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
