"""What is wrong in the folder of a run, file by file: everything is read, and nothing is changed or executed."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.book.kept_files import bad_files, waiting_pictures
from rollbook.book.table_protocols import EpisodeTables
from rollbook.errors import Damaged, NewerFormat, RollbookError
from rollbook.journal import FrameFile, Segment, list_writers
from rollbook.schema import manifest
from rollbook.schema.problems import Problem
from rollbook.schema.run_files import (
    COLUMNS_FILE,
    LONG,
    WIDE,
    PartName,
    data_folder,
    irregular,
    parse_name,
    part_folder,
    part_folders,
)
from rollbook.schema.status import why_unsealed
from rollbook.storage import (
    Part,
    Pyramid,
    SealedSoFar,
    belonging,
    damage_of,
    losses,
    may_be_asked,
    missing_numbers,
    missing_parts,
)
from rollbook.system.files import open_regular, own_files
from rollbook.system.guard import tolerating
from rollbook.system.liveness import is_alive
from rollbook.system.texts import amount
from rollbook.values.spool.encode import SPOOL

_MOST_AT_ONCE = 2 << 30
"""A row group of at most this many bytes is read whole. The size is the footer's, which counts repeated texts in each
row."""

_PARTS_AT_ONCE = 64
"""Sealed files that are open at once."""


def inspected(folder: str, book: EpisodeTables | None, met: Collection[Problem] = ()) -> list[Problem]:
    """The problems of a run's files, sorted; empty if they are sound. A run that is being written is sound.

    Args:
      folder: of the run.
      book: of it; None if its run.json cannot be read.
      met: what readers met already.
    """
    links = [
        Problem(f"{path} is a link or not a regular file; it is neither opened nor followed", "link", path)
        for path in irregular(folder)
    ]
    sealed = [Problem(text, "unreadable", path) for path, text in broken_parts(folder)]
    sealed += [
        Problem(f"{text}; plots are read from the rows instead. `rollbook repair` removes it", "unreadable", path)
        for path, text in broken_pyramids(folder)
    ]
    damaged = [*_journal(folder), *losses(folder), *sealed, *missing_parts(folder)]
    paths = {problem.path for problem in (*links, *damaged)}
    damaged += [problem for problem in met if problem.path not in paths]
    gaps = [Problem(str(gap), "gap", gap.folder, gap.n) for gap in missing_numbers(folder, damaged)]
    why = why_unsealed(folder)
    unsealed = [why] if why else _unsealed(folder)
    waiting = [Problem(text, "unsealed") for text in (*unsealed, *_pictures_waiting(folder, book))]
    of_manifest = [Problem(text, "manifest") for text in _manifest_problems(folder)]
    found = [*of_manifest, *links, *damaged, *gaps, *waiting]
    known = {problem.path for problem in found}
    bad = [Problem(f"{path}: {text}", "file", path) for path, text in (bad_files(book) if book is not None else ())]
    return sorted({*found, *(problem for problem in bad if problem.path not in known)})


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
        for name in names_in(info.folder):
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
    writers = list(list_writers(folder))
    if any(info.closed is None and is_alive(info.about) for info in writers):
        return  # the keeper of a run that is being written seals them by its end
    for info in writers:
        unsealed = sum(parse_name(name) is not None for name in names_in(info.folder))
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
            return [f"it has rows of writer {segment.header.writer}, and belongs in another folder"]
        return list(filter(None, [damage_of(segment, 2**63 if sealed is None else sealed.get(stream, 0))]))


def _log(path: str, gone: bool) -> list[str]:
    with FrameFile(path) as file:
        for _ in file.frames():
            pass
        torn = file.torn_bytes() if gone or file.is_torn_by_damage() else 0
        problems = [text for _, text in file.problems]
    return [*problems, *([f"torn behind the last whole record: {amount(torn, 'byte')}"] if torn else [])]


def broken_parts(folder: str) -> Iterator[tuple[str, str]]:
    """(path, problem) of the sealed files that are not sound."""
    opened: list[Part] = []
    for table in names_in(data_folder(folder)):
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
                    raise Damaged(f"{path} has rows of the table {part.meta['table']}: it belongs in another folder")
            except FileNotFoundError:
                continue
            except Exception as err:  # any error of Arrow about damaged bytes
                yield path, _said_of(path, err)
            else:
                opened.append(part)
            if len(opened) == _PARTS_AT_ONCE:
                yield from _unsound(opened)
                opened.clear()
    yield from _unsound(opened)


def _unsound(parts: list[Part]) -> Iterator[tuple[str, str]]:
    """(path, problem) of those whose rows cannot all be read."""
    for part, asked in zip(parts, may_be_asked([part.footer for part in parts]), strict=True):
        try:
            if not asked:
                raise Damaged(f"{part.path}: its end contradicts itself about the sizes of its columns")
            groups = range(len(part.row_groups))
            if part.decoded_bytes() > _MOST_AT_ONCE * len(groups):  # takes fifty times as long over many texts
                part.check()
                continue
            for group in groups:
                rows = part.read(row_groups=[group])
                rows.validate(full=True)
                if "seq" in rows.column_names and rows["seq"].null_count:
                    raise Damaged(f"{part.path}: rows without a sequence number")
        except FileNotFoundError:
            continue
        except Exception as err:  # any error of Arrow about damaged bytes
            yield part.path, _said_of(part.path, err)


def _said_of(path: str, err: Exception) -> str:
    return str(err) if isinstance(err, Damaged) else f"{path}: {err}"


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


def broken_pyramids(folder: str) -> Iterator[tuple[str, str]]:
    """(path, problem) of the pyramids of large parts that are not sound."""
    pyramids = os.path.join(data_folder(folder), "pyramid")
    for name in names_in(pyramids):
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


def _pictures_waiting(folder: str, book: EpisodeTables | None) -> Iterator[str]:
    n = 0
    with tolerating(RollbookError, OSError):
        n = 0 if book is None else waiting_pictures(book)
    if n and not any(info.closed is None and is_alive(info.about) for info in list_writers(folder)):
        yield (
            f"{folder}: {n} pictures and videos wait in {SPOOL} as raw pixels, and their keeper is gone; "
            "`rollbook repair` makes files of them"
        )


def _is_young(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime < 60.0
    except OSError:
        return True


def names_in(folder: str) -> list[str]:
    """The names in a folder, sorted; none if it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
