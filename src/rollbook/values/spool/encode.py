"""Encodes raw pixels in a run's spool to PNG, GIF and MP4 files; deletes the oldest files if there are too many.

    encode_spooled(run_folder)     # the keeper calls this regularly; standard library only, except for videos

`spool.picture_files` has the formats.
"""

from __future__ import annotations

import json
import os

from rollbook.errors import Damaged
from rollbook.system.files import (
    exists,
    is_file,
    is_inside,
    make_folders,
    open_inside,
    path_inside,
    read_json,
    read_regular,
    real_path,
    remove,
    write_json,
)
from rollbook.system.guard import ours, tolerating
from rollbook.values.spool.picture_files import VIDEO_FORMATS, write_picture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from rollbook.values.spool.notes import MediaLedger, PixelsNote

SPOOL = "media/.spool"
KEEP_FILES, KEEP_BYTES = 2_000, 2 * 1024**3
"""Default limits of media files and their bytes in a run; the oldest are deleted first."""

_LEDGER, _BOUNDS = "ledger.json", "keep.json"
_LARGEST_SIDE = 2**15
_STALE_SECONDS = 3600.0  # an unfinished file untouched for this long has lost its process


def encode_spooled(
    run_folder: str | os.PathLike[str],
    *,
    most: int | None = None,
) -> MediaLedger:
    """Encode the waiting pixels in a run's spool, oldest first, then delete the oldest files beyond the run's limits
    (`Media.keep`).

    Files appear complete, under the names in their rows. (A video whose format cannot be written gets the suffix of the
    next best one; `locate` finds it.) Pixels that cannot be encoded are renamed to `.bad` and not tried again. Never
    raises for bad content. Two callers at once do the same work twice, without harm.

    Args:
      most: stop after this many files; None encodes all.
    Returns:
      The ledger: files, bytes, encoded, evicted, evicted_bytes, failed, errors (the last ones), waiting, keep_files,
      keep_bytes.
    Raises:
      OSError: the disk is full or read-only; files encoded before stay.
    """
    folder = os.fspath(run_folder)
    spool = os.path.join(folder, SPOOL)
    if not is_inside(folder, spool):  # a link that leads elsewhere: nothing is made there
        return read_ledger(folder)
    with tolerating(OSError) as missed:
        notes = sorted(
            (name for name in os.listdir(spool) if name.endswith(".json") and name not in (_LEDGER, _BOUNDS)),
            key=_moment,
        )
    if missed:
        return read_ledger(folder)
    ledger = read_ledger(folder)
    bounds = read_bounds(folder)
    keep_files, keep_bytes = bounds.get("keep_files", KEEP_FILES), bounds.get("keep_bytes", KEEP_BYTES)
    done = 0
    for name in notes if most is None else notes[:most]:
        stem = os.path.join(spool, name[: -len(".json")])
        try:
            _encode(stem, folder, ledger)
        except ours(Exception) as err:  # a file is missing, or an invalid description or pixels, or an encoder's error
            is_missing = isinstance(err, FileNotFoundError)
            if is_missing and not exists(f"{stem}.json"):
                continue  # another keeper has encoded it
            if isinstance(err, OSError) and not is_missing:
                raise
            _set_aside(stem, ledger, err)
        done += 1
    _clear_stale(spool)
    _evict(folder, ledger, keep_files, keep_bytes)
    ledger["waiting"] = len(notes) - done
    ledger["keep_files"], ledger["keep_bytes"] = keep_files, keep_bytes
    write_json(os.path.join(spool, _LEDGER), ledger)
    return ledger


def _encode(stem: str, folder: str, ledger: MediaLedger) -> None:
    note = _read_note(folder, f"{stem}.json")
    raw_size = note["width"] * note["height"] * note["channels"] * note["frames"]
    pixels = path_inside(folder, f"{stem}.raw")
    if os.path.getsize(pixels) != raw_size:
        raise ValueError(f"{os.path.getsize(pixels)} bytes of pixels where {raw_size} were announced")
    problem = write_picture(pixels, os.path.join(folder, note["path"]), note)
    ledger["encoded"] += 1
    if problem:
        _complain(ledger, f"{os.path.basename(stem)}.json", problem)
    remove(f"{stem}.json")
    remove(f"{stem}.raw")


def write_bounds(run_folder: str | os.PathLike[str], bounds: Mapping[str, int]) -> None:
    """Store this run's limits of media files and bytes; the next encoding applies them."""
    spool = os.path.join(run_folder, SPOOL)
    make_folders(spool, inside=run_folder)
    write_json(os.path.join(spool, _BOUNDS), dict(bounds))


def read_bounds(run_folder: str | os.PathLike[str]) -> dict[str, int]:
    """keep_files and keep_bytes of the run; a limit that is not set is missing."""
    bounds = read_json(os.path.join(run_folder, SPOOL, _BOUNDS))
    given = {name: bounds.get(name) for name in ("keep_files", "keep_bytes")}
    return {name: value for name, value in given.items() if type(value) is int and value >= 1}


def read_ledger(run_folder: str | os.PathLike[str]) -> MediaLedger:
    """The last ledger of `encode_spooled` for a run, zeros before the first."""
    known: Any = {
        "files": 0,
        "bytes": 0,
        "encoded": 0,
        "evicted": 0,
        "evicted_bytes": 0,
        "failed": 0,
        "errors": [],
        "waiting": 0,
        "keep_files": KEEP_FILES,
        "keep_bytes": KEEP_BYTES,
    }
    ledger = read_json(os.path.join(run_folder, SPOOL, _LEDGER))
    known.update({name: ledger[name] for name, value in known.items() if type(ledger.get(name)) is type(value)})
    checked: MediaLedger = known
    return checked


def locate(run_folder: str | os.PathLike[str], path: str) -> str | None:
    """The current file of a media row: under its name, under another format's suffix, or still raw in the spool.

    Returns:
      A path below the run's folder; None if it was evicted, or if `path` points outside of `media/`.
    """
    folder = real_path(run_folder)
    wanted = real_path(os.path.join(folder, path))
    if os.path.dirname(wanted) != os.path.join(folder, "media"):  # untrusted: the path comes from the run
        return None
    stem, name = os.path.splitext(wanted)[0], os.path.basename(os.path.splitext(wanted)[0])
    for candidate in (
        wanted,
        *(f"{stem}.{kind}" for kind in VIDEO_FORMATS),
        os.path.join(folder, SPOOL, f"{name}.raw"),
    ):
        if is_file(candidate) and is_inside(folder, candidate):
            return candidate
    return None


def read_waiting(run_folder: str | os.PathLike[str], path: str) -> tuple[PixelsNote, bytes] | None:
    """The raw pixels of a media row that are still in the spool, and their description.

    Returns:
      (note, bytes of frames x height x width x channels); None if there are none: encoded, evicted, or incomplete.
    """
    name = os.path.splitext(os.path.basename(path))[0]
    stem = os.path.join(run_folder, SPOOL, name)
    with tolerating(OSError, Damaged, ValueError, KeyError, TypeError, RecursionError) as missed:
        note = _read_note(run_folder, f"{stem}.json")
        if note["path"] != path:
            return None
        pixels = read_regular(path_inside(run_folder, f"{stem}.raw"))
    if missed:
        return None
    whole = len(pixels) == note["width"] * note["height"] * note["channels"] * note["frames"]
    return (note, pixels) if whole else None


# -- the folder


def _read_note(folder: str | os.PathLike[str], path: str) -> PixelsNote:
    """A description file of the spool, checked, because it comes from a run's folder.

    Raises:
      ValueError: it is invalid. Damaged: it is no file of the run.
    """
    with open(open_inside(folder, path), encoding="utf-8") as file:
        note = json.load(file)
    numbers = [note[name] for name in ("width", "height", "channels", "frames")]
    if any(type(number) is not int or number < 1 for number in numbers) or note["channels"] not in (1, 3, 4):
        raise ValueError(f"no picture has the size {numbers}")
    if max(note["width"], note["height"]) > _LARGEST_SIDE:
        raise ValueError(f"{note['width']} x {note['height']} pixels are more than {_LARGEST_SIDE} a side")
    if type(note["fps"]) not in (int, float) or (note["kind"] == "video" and not 0 < note["fps"] <= 1000):
        raise ValueError(f"no video has {note['fps']!r} frames per second")
    folder, _, name = str(note["path"]).partition("/")
    if folder != "media" or not name or name[0] == "." or os.path.basename(name) != name or "\\" in name:
        raise ValueError(f"{note['path']!r} is not a file of media/")
    if os.path.splitext(name)[1] not in (".png", ".mp4", ".gif", ".apng"):
        raise ValueError(f"{note['path']!r} is not a file that is written here")
    checked: PixelsNote = note
    return checked


def _moment(name: str) -> str:
    return name.rpartition("-")[2]


def _evict(folder: str, ledger: MediaLedger, keep_files: int, keep_bytes: int) -> None:
    pictures = sorted(_made_here(os.path.join(folder, "media")), key=lambda made: _moment(made[0]), reverse=True)
    files = kept_bytes = 0
    for name, size in pictures:
        if files < keep_files and kept_bytes + size <= keep_bytes:
            files, kept_bytes = files + 1, kept_bytes + size
            continue
        keep_files = files  # also delete everything older, even if small enough
        remove(os.path.join(folder, "media", name))
        ledger["evicted"] += 1
        ledger["evicted_bytes"] += size
    ledger["files"], ledger["bytes"] = files, kept_bytes


def _made_here(media: str) -> Iterable[tuple[str, int]]:
    for entry in os.scandir(media):
        stem, suffix = os.path.splitext(entry.name)
        end = _moment(stem)
        if suffix in (".png", ".mp4", ".gif", ".apng") and len(end) == 24 and set(end) <= set("0123456789abcdef"):
            yield entry.name, entry.stat().st_size


def _clear_stale(spool: str) -> None:
    """Remove unfinished files of killed processes."""
    import time

    before = time.time() - _STALE_SECONDS
    for folder in (spool, os.path.dirname(spool)):
        names = set(os.listdir(folder))
        for name in names:
            stem, suffix = os.path.splitext(name)
            alone = suffix == ".raw" and not {f"{stem}.json", f"{stem}.bad"} & names
            unfinished = suffix == ".tmp" or os.path.splitext(stem)[1].startswith(".partial")
            path = os.path.join(folder, name)
            with tolerating(OSError):
                if (alone or unfinished) and os.stat(path).st_mtime < before:
                    os.unlink(path)


def _set_aside(stem: str, ledger: MediaLedger, err: Exception) -> None:
    ledger["failed"] += 1
    _complain(ledger, os.path.basename(stem), f"{type(err).__name__}: {err}")
    with tolerating(OSError):
        os.replace(f"{stem}.json", f"{stem}.bad")
    remove(f"{stem}.raw")


def _complain(ledger: MediaLedger, name: str, problem: str) -> None:
    ledger["errors"] = [*ledger["errors"], f"{name}: {problem}"[:500]][-5:]
