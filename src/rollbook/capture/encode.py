"""Raw pixels in a run's spool become PNG, GIF and MP4 files; the oldest go when there are too many.

    encode_spooled(run_folder)     # the keeper calls this now and then; standard library only until there is a film

PNG is written by the lines below. Films are MP4 (H.264, yuv420p: browsers play it; through imageio-ffmpeg or PyAV),
GIF (Pillow) or, without any of these, animated PNG. An odd width or height is made even for MP4 by repeating the last
column or row; the row of the table `media` states the size of the pixels that were logged. Transparent films are laid
on white in MP4 and GIF.
"""

from __future__ import annotations

import json
import os
import struct
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, BinaryIO

__all__ = [
    "FILM_FORMATS", "KEEP_BYTES", "KEEP_FILES", "SPOOL", "best_film_format", "encode_spooled", "locate", "read_ledger",
]  # fmt: skip

SPOOL = "media/.spool"
FILM_FORMATS = ("mp4", "gif", "apng")
KEEP_FILES, KEEP_BYTES = 2_000, 2 * 1024**3
"""How many media files, and how many bytes of them, a run keeps unless told otherwise; the oldest go first."""

_LEDGER = "ledger.json"
_LARGEST_SIDE = 2**15
_STALE_SECONDS = 3600.0  # an unfinished file that nobody has written to for so long has lost its process
_FALLBACKS = {"mp4": ("mp4", "gif", "apng"), "gif": ("gif", "apng"), "apng": ("apng",)}
_cached: dict[str, str] = {}


def best_film_format() -> str:
    """The first of MP4, GIF and APNG that this installation can write."""
    if "film" not in _cached:
        from importlib.util import find_spec

        can_mp4 = find_spec("imageio_ffmpeg") is not None or find_spec("av") is not None
        _cached["film"] = "mp4" if can_mp4 else "gif" if find_spec("PIL") is not None else "apng"
    return _cached["film"]


def encode_spooled(
    run_folder: str | os.PathLike[str],
    *,
    keep_files: int = KEEP_FILES,
    keep_bytes: int = KEEP_BYTES,
    most: int | None = None,
) -> dict[str, Any]:
    """Encode what waits in a run's spool, oldest first, then delete the oldest files beyond the bounds.

    Files appear whole, under the names their rows have (a film that cannot be written in its format gets the suffix of
    the next best one; `locate` finds it). What cannot be encoded at all is renamed to `.bad` and not tried again.
    Never raises for what it finds; two callers at once do the same work twice and no harm.

    Args:
      keep_files, keep_bytes: at most so many of the files made here stay, the newest ones.
      most: stop after so many files; None encodes all.
    Returns:
      The ledger: files, bytes, encoded, evicted, evicted_bytes, failed, errors (the last ones), waiting, keep_files,
      keep_bytes.
    Raises:
      OSError: the disk is full or read-only; what was encoded before stays.
    """
    folder = os.fspath(run_folder)
    spool = os.path.join(folder, SPOOL)
    try:
        notes = sorted((name for name in os.listdir(spool) if name.endswith(".json") and name != _LEDGER), key=_moment)
    except OSError:
        return read_ledger(folder)
    ledger = read_ledger(folder)
    done = 0
    for name in notes if most is None else notes[:most]:
        stem = os.path.join(spool, name[: -len(".json")])
        try:
            note = _read_note(f"{stem}.json")
            raw_size = note["width"] * note["height"] * note["channels"] * note["frames"]
            if os.path.getsize(f"{stem}.raw") != raw_size:
                raise ValueError(f"{os.path.getsize(f'{stem}.raw')} bytes of pixels where {raw_size} were announced")
            problem = _encode(f"{stem}.raw", os.path.join(folder, note["path"]), note)
            ledger["encoded"] += 1
            if problem:
                _complain(ledger, name, problem)
            _unlink(f"{stem}.json")
            _unlink(f"{stem}.raw")
        except FileNotFoundError as err:
            if not os.path.exists(f"{stem}.json"):
                continue  # another keeper was faster
            _set_aside(stem, ledger, err)
        except OSError:
            raise
        except Exception as err:  # a note or pixels that make no sense, an encoder's own error
            _set_aside(stem, ledger, err)
        done += 1
    _clear_stale(spool)
    _evict(folder, ledger, keep_files, keep_bytes)
    ledger["waiting"] = len(notes) - done
    ledger["keep_files"], ledger["keep_bytes"] = keep_files, keep_bytes
    _write_ledger(spool, ledger)
    return ledger


def read_ledger(run_folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What `encode_spooled` last wrote down about a run, zeros before that."""
    empty = {
        "files": 0, "bytes": 0, "encoded": 0, "evicted": 0, "evicted_bytes": 0, "failed": 0, "errors": [], "waiting": 0,
        "keep_files": KEEP_FILES, "keep_bytes": KEEP_BYTES,
    }  # fmt: skip
    try:
        with open(os.path.join(run_folder, SPOOL, _LEDGER), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return empty
    if not isinstance(found, dict):
        return empty
    return {name: found[name] if type(found.get(name)) is type(value) else value for name, value in empty.items()}


def locate(run_folder: str | os.PathLike[str], path: str) -> str | None:
    """Where the file of a media row is now: under its name, under another format's suffix, or still raw in the spool.

    Returns:
      A path below the run's folder; None if it was evicted, or if `path` points outside of `media/`.
    """
    folder = os.path.realpath(run_folder)
    wanted = os.path.realpath(os.path.join(folder, path))
    if os.path.dirname(wanted) != os.path.join(folder, "media"):  # the path comes from the run: untrusted
        return None
    stem, name = os.path.splitext(wanted)[0], os.path.basename(os.path.splitext(wanted)[0])
    for candidate in (wanted, *(f"{stem}.{kind}" for kind in FILM_FORMATS), os.path.join(folder, SPOOL, f"{name}.raw")):
        if os.path.isfile(candidate):
            return candidate
    return None


# -- the formats


def _encode(raw: str, target: str, note: dict[str, Any]) -> str:
    """Write the file of a note; returns why it is not of the format it was meant to be, "" if it is."""
    stem, suffix = os.path.splitext(target)
    wanted = suffix.lstrip(".")
    problems: list[str] = []
    for kind in _FALLBACKS.get(wanted, ("png",)):
        beside = f"{stem}.partial{os.urandom(4).hex()}.{kind}"
        try:
            with open(raw, "rb") as file:
                _WRITERS[kind](beside, file, note)
            os.replace(beside, f"{stem}.{kind}")
            return "; ".join(problems)
        except (ImportError, RuntimeError, ValueError) as err:
            problems.append(f"{kind}: {type(err).__name__}: {err}"[:300])
        except OSError as err:
            if err.errno is not None:  # the disk's; ffmpeg's failures come without a number
                raise
            problems.append(f"{kind}: {err}"[:300])
        finally:
            _unlink(beside)
    raise ValueError("; ".join(problems))


def _write_png(path: str, raw: BinaryIO, note: dict[str, Any]) -> None:
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        _chunk(file, b"IHDR", _image_header(note))
        for part in _compressed(raw, note):
            _chunk(file, b"IDAT", part)
        _chunk(file, b"IEND", b"")


def _write_apng(path: str, raw: BinaryIO, note: dict[str, Any]) -> None:
    width, height, fps = note["width"], note["height"], note["fps"]
    number = 0
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        _chunk(file, b"IHDR", _image_header(note))
        _chunk(file, b"acTL", struct.pack(">II", note["frames"], 0))
        for frame in range(note["frames"]):
            pause = struct.pack(">HH", 1000, min(65_535, max(1, round(fps * 1000)))) if fps < 65 else _pause(fps)
            _chunk(file, b"fcTL", struct.pack(">IIIII", number, width, height, 0, 0) + pause + b"\0\0")
            number += 1
            for part in _compressed(raw, note):
                if frame == 0:
                    _chunk(file, b"IDAT", part)
                else:
                    _chunk(file, b"fdAT", struct.pack(">I", number) + part)
                    number += 1
        _chunk(file, b"IEND", b"")


def _pause(fps: float) -> bytes:
    return struct.pack(">HH", 10, min(65_535, round(fps * 10)))


def _image_header(note: dict[str, Any]) -> bytes:
    colour = {1: 0, 3: 2, 4: 6}[note["channels"]]
    return struct.pack(">IIBBBBB", note["width"], note["height"], 8, colour, 0, 0, 0)


def _compressed(raw: BinaryIO, note: dict[str, Any]) -> Iterator[bytes]:
    """One picture's rows, each behind the byte that says "no filter", through zlib, in parts of about 64 KiB."""
    stride = note["width"] * note["channels"]
    squeeze = zlib.compressobj(6)
    waiting: list[bytes] = []
    size = 0
    for _ in range(note["height"]):
        row = raw.read(stride)
        if len(row) != stride:
            raise ValueError("the pixels end early")
        part = squeeze.compress(b"\0" + row)
        waiting.append(part)
        size += len(part)
        if size >= 65_536:
            yield b"".join(waiting)
            waiting, size = [], 0
    waiting.append(squeeze.flush())
    yield b"".join(waiting)


def _chunk(file: BinaryIO, kind: bytes, data: bytes) -> None:
    file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind))))


def _write_gif(path: str, raw: BinaryIO, note: dict[str, Any]) -> None:
    from PIL import Image

    def pictures() -> Iterator[Any]:
        for frame in _frames(raw, note, even=False):
            yield Image.fromarray(frame).quantize(256)

    frames = pictures()
    first = next(frames)
    milliseconds = max(20, round(100 / note["fps"]) * 10)  # players slow down what is shorter
    first.save(path, format="GIF", save_all=True, append_images=frames, duration=milliseconds, loop=0)


def _write_mp4(path: str, raw: BinaryIO, note: dict[str, Any]) -> None:
    try:
        import imageio_ffmpeg
    except ModuleNotFoundError:
        _write_mp4_by_av(path, raw, note)
        return
    size = (note["width"] + note["width"] % 2, note["height"] + note["height"] % 2)
    writer = imageio_ffmpeg.write_frames(
        path,
        size,
        fps=note["fps"],
        codec="libx264",
        pix_fmt_out="yuv420p",
        quality=None,
        macro_block_size=1,  # its own default enlarges pictures to multiples of 16
        ffmpeg_log_level="error",
        output_params=["-crf", "18", "-preset", "veryfast", "-movflags", "+faststart"],
    )
    try:
        writer.send(None)
        for frame in _frames(raw, note, even=True):
            writer.send(frame)
    finally:
        writer.close()
    if not os.path.exists(path) or not os.path.getsize(path):
        raise RuntimeError("ffmpeg wrote nothing")


def _write_mp4_by_av(path: str, raw: BinaryIO, note: dict[str, Any]) -> None:
    from fractions import Fraction

    import av  # type: ignore[import-not-found,unused-ignore]

    with av.open(path, "w", options={"movflags": "+faststart"}) as file:
        stream: Any = file.add_stream("libx264", rate=Fraction(note["fps"]).limit_denominator(65_535))
        stream.width = note["width"] + note["width"] % 2
        stream.height = note["height"] + note["height"] % 2
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": "18", "preset": "veryfast"}
        for frame in _frames(raw, note, even=True):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        file.mux(stream.encode())


def _frames(raw: BinaryIO, note: dict[str, Any], *, even: bool) -> Iterator[Any]:
    """The frames as [height, width, 3] arrays; with `even`, odd sides are made even by repeating the last line."""
    import numpy

    height, width, channels = note["height"], note["width"], note["channels"]
    for _ in range(note["frames"]):
        data = raw.read(height * width * channels)
        frame: Any = numpy.frombuffer(data, numpy.uint8).reshape(height, width, channels)
        if channels == 4:
            alpha = frame[:, :, 3:].astype(numpy.uint16)
            frame = ((frame[:, :, :3] * alpha + 255 * (255 - alpha) + 127) // 255).astype(numpy.uint8)
        elif channels == 1:
            frame = numpy.repeat(frame, 3, axis=2)
        if even and (height % 2 or width % 2):
            frame = numpy.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        yield numpy.ascontiguousarray(frame)


_WRITERS = {"png": _write_png, "apng": _write_apng, "gif": _write_gif, "mp4": _write_mp4}


# -- the folder


def _read_note(path: str) -> dict[str, Any]:
    """A note of the spool, checked: it comes from a run's folder.

    Raises:
      ValueError: it makes no sense.
    """
    with open(path, encoding="utf-8") as file:
        note = json.load(file)
    numbers = [note[name] for name in ("width", "height", "channels", "frames")]
    if any(type(number) is not int or number < 1 for number in numbers) or note["channels"] not in (1, 3, 4):
        raise ValueError(f"no picture has the size {numbers}")
    if max(note["width"], note["height"]) > _LARGEST_SIDE:
        raise ValueError(f"{note['width']} x {note['height']} pixels are more than {_LARGEST_SIDE} a side")
    if type(note["fps"]) not in (int, float) or (note["kind"] == "video" and not 0 < note["fps"] <= 1000):
        raise ValueError(f"no film has {note['fps']!r} frames per second")
    folder, _, name = str(note["path"]).partition("/")
    if folder != "media" or not name or name[0] == "." or os.path.basename(name) != name or "\\" in name:
        raise ValueError(f"{note['path']!r} is no file of media/")
    if os.path.splitext(name)[1] not in (".png", ".mp4", ".gif", ".apng"):
        raise ValueError(f"{note['path']!r} is no file that is written here")
    return dict(note)


def _moment(name: str) -> str:
    return name.rpartition("-")[2]


def _evict(folder: str, ledger: dict[str, Any], keep_files: int, keep_bytes: int) -> None:
    found = sorted(_made_here(os.path.join(folder, "media")), key=lambda made: _moment(made[0]), reverse=True)
    files = kept = 0
    for name, size in found:
        if files < keep_files and kept + size <= keep_bytes:
            files, kept = files + 1, kept + size
            continue
        keep_files = files  # everything older goes too, even if it were small enough
        _unlink(os.path.join(folder, "media", name))
        ledger["evicted"] += 1
        ledger["evicted_bytes"] += size
    ledger["files"], ledger["bytes"] = files, kept


def _made_here(media: str) -> Iterable[tuple[str, int]]:
    for entry in os.scandir(media):
        stem, suffix = os.path.splitext(entry.name)
        end = _moment(stem)
        if suffix in (".png", ".mp4", ".gif", ".apng") and len(end) == 24 and set(end) <= set("0123456789abcdef"):
            yield entry.name, entry.stat().st_size


def _clear_stale(spool: str) -> None:
    """Remove what processes that were killed in the middle have left."""
    import time

    before = time.time() - _STALE_SECONDS
    for place in (spool, os.path.dirname(spool)):
        names = set(os.listdir(place))
        for name in names:
            stem, suffix = os.path.splitext(name)
            alone = suffix == ".raw" and not {f"{stem}.json", f"{stem}.bad"} & names
            unfinished = suffix == ".tmp" or os.path.splitext(stem)[1].startswith(".partial")
            path = os.path.join(place, name)
            try:
                if (alone or unfinished) and os.stat(path).st_mtime < before:
                    os.unlink(path)
            except OSError:
                pass


def _set_aside(stem: str, ledger: dict[str, Any], err: Exception) -> None:
    ledger["failed"] += 1
    _complain(ledger, os.path.basename(stem), f"{type(err).__name__}: {err}")
    try:
        os.replace(f"{stem}.json", f"{stem}.bad")
    except OSError:
        pass
    _unlink(f"{stem}.raw")


def _complain(ledger: dict[str, Any], name: str, problem: str) -> None:
    ledger["errors"] = [*ledger["errors"], f"{name}: {problem}"[:500]][-5:]


def _write_ledger(spool: str, ledger: dict[str, Any]) -> None:
    beside = os.path.join(spool, f"{_LEDGER}.{os.urandom(4).hex()}.tmp")
    with open(beside, "w", encoding="utf-8") as file:
        json.dump(ledger, file)
    os.replace(beside, os.path.join(spool, _LEDGER))


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
