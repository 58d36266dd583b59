"""Writes images and videos: PNG, MP4, GIF and animated PNG.

PNG is written here, with the standard library. Videos are MP4 (H.264, yuv420p, which browsers play; through
imageio-ffmpeg or PyAV), GIF (Pillow) or, without any of these, animated PNG. For MP4, an odd width or height is made
even by repeating the last column or row; the row in the table `media` has the size of the logged pixels. In MP4 and
GIF, transparent pixels get a white background.
"""

from __future__ import annotations

import os
import struct
import zlib

from rollbook.system.files import exists
from rollbook.system.guard import ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from rollbook.values.array_types import NDArray
    from rollbook.values.spool.notes import PixelsNote

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"

VIDEO_FORMATS = ("mp4", "gif", "apng")

_FALLBACKS = {"mp4": ("mp4", "gif", "apng"), "gif": ("gif", "apng"), "apng": ("apng",)}
_cached: dict[str, str] = {}


def best_video_format() -> str:
    """The first of MP4, GIF and APNG that this installation can write."""
    if "video" not in _cached:
        from importlib.util import find_spec

        can_mp4 = find_spec("imageio_ffmpeg") is not None or find_spec("av") is not None
        _cached["video"] = "mp4" if can_mp4 else "gif" if find_spec("PIL") is not None else "apng"
    return _cached["video"]


def write_picture(raw: str, target: str, note: PixelsNote) -> str:
    """Create a file from raw pixels, atomically.

    Args:
      raw: a file of frames x height x width x channels bytes.
      target: the file; its suffix gives the format. A video whose format cannot be written gets the next one's suffix.
      note: width, height, channels (1, 3 or 4), frames and, for videos, fps.
    Returns:
      Why it has another format than intended, "" if it does not.
    Raises:
      ValueError: no encoder could do it. OSError: the disk fails.
    """
    stem, suffix = os.path.splitext(target)
    wanted = suffix.lstrip(".")
    problems: list[str] = []
    for kind in _FALLBACKS.get(wanted, ("png",)):
        temporary = f"{stem}.partial{os.urandom(4).hex()}.{kind}"
        try:
            with open(raw, "rb") as file:
                _WRITERS[kind](temporary, file, note)
            os.replace(temporary, f"{stem}.{kind}")
            return "; ".join(problems)
        except ours(ImportError, RuntimeError, ValueError) as err:
            problems.append(f"{kind}: {type(err).__name__}: {err}"[:300])
        except ours(OSError) as err:
            if err.errno is not None:  # from the disk; ffmpeg's failures have no errno
                raise
            problems.append(f"{kind}: {err}"[:300])
        finally:
            with tolerating(OSError):  # already renamed, or never created
                os.unlink(temporary)
    raise ValueError("; ".join(problems))


def _write_png(path: str, raw: BinaryIO, note: PixelsNote) -> None:
    with open(path, "wb") as file:
        file.write(PNG_SIGNATURE)
        file.write(png_chunk(b"IHDR", _image_header(note)))
        for part in _compressed(raw, note):
            file.write(png_chunk(b"IDAT", part))
        file.write(png_chunk(b"IEND", b""))


def _write_apng(path: str, raw: BinaryIO, note: PixelsNote) -> None:
    width, height, fps = note["width"], note["height"], note["fps"]
    number = 0
    with open(path, "wb") as file:
        file.write(PNG_SIGNATURE)
        file.write(png_chunk(b"IHDR", _image_header(note)))
        file.write(png_chunk(b"acTL", struct.pack(">II", note["frames"], 0)))
        for frame in range(note["frames"]):
            pause = struct.pack(">HH", 1000, min(65_535, max(1, round(fps * 1000)))) if fps < 65 else _pause(fps)
            file.write(png_chunk(b"fcTL", struct.pack(">IIIII", number, width, height, 0, 0) + pause + b"\0\0"))
            number += 1
            for part in _compressed(raw, note):
                if frame == 0:
                    file.write(png_chunk(b"IDAT", part))
                else:
                    file.write(png_chunk(b"fdAT", struct.pack(">I", number) + part))
                    number += 1
        file.write(png_chunk(b"IEND", b""))


def _pause(fps: float) -> bytes:
    return struct.pack(">HH", 10, min(65_535, round(fps * 10)))


def _image_header(note: PixelsNote) -> bytes:
    colour = {1: 0, 3: 2, 4: 6}[note["channels"]]
    return struct.pack(">IIBBBBB", note["width"], note["height"], 8, colour, 0, 0, 0)


def _compressed(raw: BinaryIO, note: PixelsNote) -> Iterator[bytes]:
    """The rows of one image, each after the byte for "no filter", compressed by zlib, in parts of about 64 KiB."""
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


def png_chunk(kind: bytes, data: bytes) -> bytes:
    """A chunk of a PNG with its length and checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))


def _write_gif(path: str, raw: BinaryIO, note: PixelsNote) -> None:
    from PIL import Image

    def pictures() -> Iterator[Image.Image]:
        for frame in _frames(raw, note, even=False):
            yield Image.fromarray(frame).quantize(256)

    frames = pictures()
    first = next(frames)
    milliseconds = max(20, round(100 / note["fps"]) * 10)  # players slow down shorter frames
    first.save(path, format="GIF", save_all=True, append_images=frames, duration=milliseconds, loop=0)


def _write_mp4(path: str, raw: BinaryIO, note: PixelsNote) -> None:
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
        macro_block_size=1,  # the default enlarges frames to multiples of 16
        ffmpeg_log_level="error",
        output_params=["-crf", "18", "-preset", "veryfast", "-movflags", "+faststart"],
    )
    try:
        writer.send(None)
        for frame in _frames(raw, note, even=True):
            writer.send(frame)
    finally:
        writer.close()
    if not exists(path) or not os.path.getsize(path):
        raise RuntimeError("ffmpeg wrote nothing")


def _write_mp4_by_av(path: str, raw: BinaryIO, note: PixelsNote) -> None:
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


def _frames(raw: BinaryIO, note: PixelsNote, *, even: bool) -> Iterator[NDArray]:
    """The frames as [height, width, 3] arrays; with `even`, odd sides are made even by repeating the last line."""
    import numpy

    height, width, channels = note["height"], note["width"], note["channels"]
    for _ in range(note["frames"]):
        data = raw.read(height * width * channels)
        frame: NDArray = numpy.frombuffer(data, numpy.uint8).reshape(height, width, channels)
        if channels == 4:
            alpha = frame[:, :, 3:].astype(numpy.uint16)
            frame = ((frame[:, :, :3] * alpha + 255 * (255 - alpha) + 127) // 255).astype(numpy.uint8)
        elif channels == 1:
            frame = numpy.repeat(frame, 3, axis=2)
        if even and (height % 2 or width % 2):
            frame = numpy.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        yield numpy.ascontiguousarray(frame)


_WRITERS = {"png": _write_png, "apng": _write_apng, "gif": _write_gif, "mp4": _write_mp4}
