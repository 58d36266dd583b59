"""The names of files in a run folder. Standard library only.

    data/<table>/<writer>.L00.S003.<first seq>.parquet     rows of stream 3 of lane 0, in order
    data/<table>/<writer>.L00.F.<first seq>.parquet        rows from chunk frames of lane 0
    data/<table>/merged.<number>.parquet                   small groups of all writers, merged when the run was finished
    data/metrics/wide/<writer>.L00.S003.<first seq>.parquet    metrics with one column per key
    data/metrics/long/<writer>.L00.R.<first seq>.parquet       metrics of rare rows and small groups, one line per value
    data/abandoned.parquet                                 (writer, lane, seq) of all rows abandoned by rewinds
    data/writers.parquet                                   the run of each writer
    data/pyramid/<table>.<part>.pyr                        levels of a large part
    data/fills/…                                           device values that arrived after their row
    data/marks/…                                           dump marks and the like
    data/aside/…                                           doubtful rows after a power loss, and damaged files
    data/damage.jsonl                                      what was damaged and what of it is lost (storage/damage.py)

Every part describes its content in its Parquet metadata, under "rollbook" (see `storage.parts`).

Only rollbook reads these:

    log/console.log                 what the program printed (run/console.py); other programs may read it, too
    total_config.attempt_<n>.py     the configuration of attempt n, if a later one differs
    data/page.lock                  held for milliseconds while run.json changes (`manifest.ManifestLock`)
    data/seen/<attempt>-<random>.bin    content hashes of one process's samples, by batch (capture/samples/seen_file.py)
    data/items/*                    sample items too long for the table
    data/keeper/plan.json           the keeper's task for this run (sinks, host metrics); written by init
    data/keeper/lock-<host>.<pid ns>.<machine>  held (flock) by that keeper; two containers on a host have one each
    data/keeper/state-<host>.<pid ns>.<machine>.json   identity of that keeper, its phase, writers whose rows are all
        sealed
    data/keeper/heartbeat           touched each second while rows arrive (each 15 s while a writer lives and is
        silent);
        holds {writer: {lane: seq}} as JSON: current where keepers elsewhere read it, else
        up to a minute old
    data/keeper/durable.json        {"boot_id":…, "marks": {writer: {lane: seq}}} after each fdatasync
    data/keeper/cursors/<sink>.json cursor, position and state of one sink (atomic replace)
    data/keeper/troubles.json       {sink: {"words": why, "failures": tries in a row}}: sinks that get nothing; a
        thread of
        the run reads it into the bill
    data/keeper/alerts.jsonl        alerts of the health rules, for the training process (`run.on_alert`)
    data/keeper/rules.json          how far the health rules have read, their alerts and their memory; while the run
        goes on, later rows are not sealed (`--up-to`)
    data/keeper/log                 the keeper's stderr
    data/keeper/ship.json           {"origin", "url", "home"}: this folder is shipped; written by init (`remote`)
    data/keeper/shipped.json        progress of shipping: what waits, since when, why; its memory is in shipped-
        names.json,
        checksums.json and pulled.json (`copy` there: the run's home is elsewhere); the child
        that ships holds ship.lock
    data/keeper/summary/<writer>.json    summary values set by other writers: {key: [unix ns, value]}, [unix ns] for a
        key
        that was removed; the main writer merges them into run.json, the newer value wins
    data/keeper/finished.json       what is left of the writers and the keeper when all is sealed: `schema/finished.py`;
        then plan.json, rules.json, state-…, heartbeat and durable.json go
    data/writers.json, data/keeper/sealed.json    of earlier rollbooks and of runs from a remote: its entries
    data/keeper/ballast             4 MiB, given up when the disk is full
"""

from __future__ import annotations

import json
import os
import re
import struct

from rollbook.errors import Damaged
from rollbook.system.files import is_link, open_regular
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HIDDEN_TABLES = frozenset({"journal", "keeper", "pyramid", "fills", "marks", "aside", "seen", "items"})
"""Folders of data/ that are not tables for readers."""

_OWN = (
    *[f"data/{name}/" for name in sorted(HIDDEN_TABLES - {"aside"})],
    *("data/page.lock", "data/writers.json", "media/.spool/", "ckpt/.index.json"),
)
"""Folders and files that only rollbook reads. What is set aside there was damaged, and is for people."""

RESERVED = ("time", "scope", "at", "attempt", "writer", "lane", "seq", "index")
"""Columns that every table may have in addition to the clocks; a value with such a name is stored as value/<name>."""

METADATA_KEY = "rollbook"
"""Under which a part says what it holds, as JSON."""
METADATA_CRC_KEY = "rollbook.crc32"
"""Under which it has the CRC-32 of that text in UTF-8, in decimal digits: Parquet has no checksum for it."""

MANIFEST_FILE = "run.json"
ABANDONED_FILE = "abandoned.parquet"
COLUMNS_FILE = "0.columns.parquet"


WIDE, LONG = "wide", "long"
"""The two forms of metrics, and their folders: one column per key, and one line per value."""

CONSTANTS = ("scope", "at", "attempt", "writer", "lane")
"""Columns that are equal in all rows of most parts. Files contain them for other programs; rollbook reads them from the
description."""

_NAME = re.compile(r"(?P<writer>[^/]+)\.L(?P<lane>\d{2,})\.(?P<kind>S\d{3,}|F|R)\.(?P<first>\d+)\.parquet")
_TABLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_MERGED = re.compile(r"merged\.(?P<first>\d+)\.parquet")


class RunFile:
    """Names of files that several modules use; the list above describes them.

    WRITER and CLOSED are in the folder of a writer: what it is, and, once it has closed, its last rows. WRITERS and
    DAMAGE are in data, the others are in KEEPER, a folder.
    """

    KEEPER = os.path.join("data", "keeper")
    WRITER = "writer.json"
    CLOSED = "closed.json"
    WRITERS = "writers.json"
    DAMAGE = "damage.jsonl"

    ALERTS = "alerts.jsonl"
    CHECKSUMS = "checksums.json"
    DURABLE = "durable.json"
    FINISHED = "finished.json"
    PLAN = "plan.json"
    PULLED = "pulled.json"
    RULES = "rules.json"
    SEALED = "sealed.json"
    SHIPPED = "shipped.json"
    SHIPPED_NAMES = "shipped-names.json"
    SUMMARY = "summary"
    TROUBLES = "troubles.json"


class PartName:
    """The parts of a sealed file's name.

    Attributes:
      writer, lane: the owner of the rows; "" and -1 for a merged file.
      kind: "S003", "F", "R" or "merged".
      first: the first sequence number, or the number of a merged file.
    """

    __slots__ = ("first", "kind", "lane", "writer")

    def __init__(self, writer: str, lane: int, kind: str, first: int) -> None:
        self.writer, self.lane, self.kind, self.first = writer, lane, kind, first

    def __str__(self) -> str:
        if self.kind == "merged":
            return f"merged.{self.first:03d}.parquet"
        return f"{self.writer}.L{self.lane:02d}.{self.kind}.{self.first}.parquet"

    @classmethod
    def parse(cls, name: str) -> PartName | None:
        """The parts of `name`, or None for other files (such as temporary ones)."""
        match = _NAME.fullmatch(name)
        if match:
            return cls(match["writer"], int(match["lane"]), match["kind"], int(match["first"]))
        match = _MERGED.fullmatch(name)
        return cls("", -1, "merged", int(match["first"])) if match else None


def data_folder(run: str | os.PathLike[str]) -> str:
    """The folder of the run's data."""
    return os.path.join(run, "data")


def heartbeat_path(run: str | os.PathLike[str]) -> str:
    """The file that the run's keeper touches while it lives."""
    return os.path.join(data_folder(run), "keeper", "heartbeat")


def journal_folder(run: str | os.PathLike[str]) -> str:
    """The folder with the writers' folders."""
    return os.path.join(run, "data", "journal")


def table_folder(run: str | os.PathLike[str], table: str) -> str:
    """The folder of a table's sealed parts. Table names come from frames, so only plain names are accepted."""
    if not _TABLE.fullmatch(table) or table in ("journal", "keeper", "pyramid"):
        table = "other"
    return os.path.join(run, "data", table)


def part_folder(run: str | os.PathLike[str], table: str, group: str) -> str:
    """The folder for a new part. The two forms of metrics are separate, so that one glob reads all files of a form."""
    folder = table_folder(run, table)
    if table != "metrics":
        return folder
    return os.path.join(folder, LONG if group[:1] == "R" else WIDE)


def part_folders(run: str | os.PathLike[str], table: str) -> list[str]:
    """All folders with sealed parts of a table; format 1 had both forms of metrics in one."""
    folder = table_folder(run, table)
    return [folder] if table != "metrics" else [folder, os.path.join(folder, WIDE), os.path.join(folder, LONG)]


def pyramid_path(run: str, table: str, part_name: str) -> str:
    """The file with the levels of a part."""
    return os.path.join(data_folder(run), "pyramid", f"{table}.{part_name.removesuffix('.parquet')}.pyr")


def irregular(run: str | os.PathLike[str]) -> list[str]:
    """Entries below data/ that are neither files nor folders: links, pipes, devices. They are never opened."""
    data = data_folder(run)
    if is_link(data):
        return [data]
    words: list[str] = []
    folders = [data]
    while folders:
        with tolerating(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "aside":  # repair moves such entries there
                        folders.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    words.append(entry.path)
    return sorted(words)


def table_names(run: str | os.PathLike[str]) -> list[str]:
    """The tables with a folder of sealed parts."""
    with tolerating(OSError), os.scandir(data_folder(run)) as entries:
        names = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
        return sorted(name for name in names if name not in HIDDEN_TABLES and "." not in name)
    return []


def is_own(path: str) -> bool:
    """Whether a file is one that only rollbook reads, so that a list of a run's files leaves it out.

    Args:
      path: inside the run, with slashes.
    """
    return path.startswith(_OWN)


def sound_key(key: str) -> str:
    """The key in a form that files can store: a lone surrogate (for example from `os.fsdecode`) is escaped."""
    return key if key.isascii() else key.encode("utf-8", "backslashreplace").decode("utf-8")


def read_metadata(path: str) -> dict[str, Any] | None:
    """The description of a sealed part, without pyarrow: the JSON under "rollbook" in the file's footer.

    None if the file is not a Parquet file of rollbook. Light enough for a process that never loads pyarrow.
    """
    with tolerating(OSError, Damaged) as missed, open(open_regular(path), "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 8))
        tail = file.read(8)
        if len(tail) < 8 or tail[4:] != b"PAR1":
            return None
        length = min(int(struct.unpack("<I", tail[:4])[0]), size - 8)
        file.seek(size - 8 - length)
        footer = file.read(length)
    if missed:
        return None
    marker = (
        METADATA_KEY.encode() + b"\x18"
    )  # in the footer: key, type of the next field (string), its length, the text
    at = footer.find(marker)
    while at >= 0:
        metadata = _json_after(footer, at + len(marker))
        if metadata is not None:
            return metadata
        at = footer.find(marker, at + 1)
    return None


def _json_after(footer: bytes, at: int) -> dict[str, object] | None:
    length = shift = 0
    while at < len(footer) and shift < 63:  # a varint
        byte = footer[at]
        length |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            break
    with tolerating(ValueError, RecursionError) as missed:
        metadata = json.loads(footer[at : at + length])
    if missed:
        return None
    return metadata if isinstance(metadata, dict) else None


def value_name(key: str, clocks: tuple[str, ...]) -> str:
    """The column of a value: its key, or value/<key> if that is the name of another column.

    Two keys never share a column: the key `value/time` becomes `value/value/time`, because the key `time` uses
    `value/time`.
    """
    plain = key
    while plain.startswith("value/"):
        plain = plain[6:]
    return f"value/{key}" if plain in RESERVED or plain in clocks else key


def parse_name(name: str) -> tuple[str, int, int, int] | None:
    """("seg", lane, stream, slot) or ("log", lane, 0, number) of a journal file's name; None for other files."""
    parts = name.split(".")
    with tolerating(ValueError):
        if len(parts) == 4 and parts[3] == "seg" and parts[0][:1] == "L" and parts[1][:1] == "S":
            return "seg", int(parts[0][1:]), int(parts[1][1:]), int(parts[2])
        if len(parts) == 4 and parts[3] == "log" and parts[0][:1] == "L" and parts[1] == "frames":
            return "log", int(parts[0][1:]), 0, int(parts[2])
    return None
