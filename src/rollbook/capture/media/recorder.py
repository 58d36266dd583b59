"""Images and videos: the training process writes raw pixels to a spool, the keeper encodes PNG, GIF and MP4.

    media = Media(folder, count)
    media.log_image(recorder, "train/frame", pixels, env_step=5000)
    media.log_video(recorder, "train/episode", frames, fps=30)

A row of the table `media` has the final name of the file. Until the keeper has encoded it, its pixels are in
`media/.spool/`, under the name in the row's column `spool`. `values.spool.encode` does the encoding; its `locate` finds
whichever file exists.
"""

from __future__ import annotations

import json
import os
import time

from rollbook.errors import BadInput
from rollbook.system.bill import counted
from rollbook.system.files import make_folders, remove, replacing
from rollbook.system.guard import handled_by, tolerating
from rollbook.values.spool import encode, picture_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from io import RawIOBase
    from typing import Any

    from rollbook.protocols import Recorder
    from rollbook.values.array_types import NDArray

MOST_SPOOLED = 1024**3
"""Bytes of raw pixels that may wait for the keeper; more are refused and counted."""


class Media:
    """The images and videos of one run.

    Args:
      folder: the run's folder.
      count: `Recorder.count`.
      most_spooled: bytes of raw pixels that may wait for the keeper, for all processes of the run together.
    Attributes:
      bytes_kept: bytes of raw pixels that this process has written.

    Threads may log at once. A call costs one conversion to uint8 and one write; it encodes nothing. Values that are not
    images are counted as `media_refused`, failed writes as `media_failed`; both leave nothing behind.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        count: Callable[..., object],
        most_spooled: int = MOST_SPOOLED,
    ) -> None:
        self._folder = os.fspath(folder)
        self._count = count
        self._most_spooled = most_spooled
        self._room = (0, float("-inf"))  # free bytes in the spool, and the time of the count
        self.bytes_kept = 0

    def log_image(
        self,
        recorder: Recorder,
        key: str,
        image: object,
        *,
        channels_first: bool = False,
        episode_id: str | None = None,
        **clocks: object,
    ) -> str | None:
        """Store an image as PNG.

        Args:
          recorder: the run or the scope that gets the row.
          key: its full name, scope included.
          image: see `capture.media.pixels`.
          channels_first: `image` is [channels, height, width].
          episode_id: the episode of the image.
        Returns:
          The path of the later file, relative to the run's folder; None if it was refused.
        """
        from rollbook.capture.media.pixels import picture_of

        def pictures() -> Iterable[NDArray]:
            yield picture_of(image, channels_first=channels_first)

        return self._keep(recorder, key, "image", "png", pictures, 0.0, episode_id, clocks)

    def log_video(
        self,
        recorder: Recorder,
        key: str,
        frames: object,
        fps: float = 30.0,
        *,
        format: str | None = None,
        channels_first: bool = False,
        episode_id: str | None = None,
        **clocks: object,
    ) -> str | None:
        """Store a video of one frame or more.

        Args:
          recorder: the run or the scope that gets the row.
          key: its full name, scope included.
          frames: [time, height, width(, channels)], or an iterable of images, each written as it arrives.
          fps: frames per second.
          format: "mp4", "gif" or "apng"; None takes the first of these that this installation can write.
          channels_first: the frames are [channels, height, width].
          episode_id: the episode of the video.
        Returns:
          As `log_image`.
        """
        from rollbook.capture.media.pixels import frames_of

        kind = format or picture_files.best_video_format()
        if kind not in picture_files.VIDEO_FORMATS:
            self._refuse(key, f"format={format!r} must be one of {', '.join(picture_files.VIDEO_FORMATS)}")
            return None
        rate = 0.0
        with tolerating(TypeError, ValueError):
            rate = float(fps)
        if not 0.0 < rate <= 1000.0:
            self._refuse(key, f"fps={fps!r} must be a number of frames per second, above 0 and up to 1000")
            return None

        def pictures() -> Iterable[NDArray]:
            return frames_of(frames, channels_first=channels_first)

        return self._keep(recorder, key, "video", kind, pictures, rate, episode_id, clocks)

    def log_figure(
        self, recorder: Recorder, key: str, figure: object, *, episode_id: str | None = None, **clocks: object
    ) -> str | None:
        """Store a matplotlib figure as PNG, drawn now (tens of milliseconds) at its own size. It stays open.

        Args:
          recorder: the run or the scope that gets the row.
          key: its full name, scope included.
          figure: the figure.
          episode_id: the episode of the figure.
        """
        from rollbook.capture.media.pixels import figure_pixels

        def pictures() -> Iterable[NDArray]:
            yield figure_pixels(figure)

        return self._keep(recorder, key, "figure", "png", pictures, 0.0, episode_id, clocks)

    def bill(self) -> dict[str, object]:
        """Bytes written by this process; files and bytes kept, evicted and failed so far; the limits."""
        return {
            "spooled_bytes": self.bytes_kept,
            **encode.read_ledger(self._folder),
            **encode.read_bounds(self._folder),
        }

    def keep(self, files: int | None = None, bytes: int | None = None) -> None:
        """Limit how many media files, and how many bytes of them, the run keeps. Beyond a limit the oldest are deleted.

        Applies to all processes and attempts of the run, from the next file on. None leaves a limit unchanged. A value
        that is not a whole number from 1 on is counted and ignored.

        Args:
          files: at most this many.
          bytes: at most this many, all files together.
        """
        bounds = encode.read_bounds(self._folder)
        for name, value in (("files", files), ("bytes", bytes)):
            if value is None:
                continue
            if type(value) is not int or value < 1:
                self._count(
                    "media_bound",
                    1,
                    f"run.media.keep({name}={value!r}): a bound is a whole number from 1; the present one stays. Leave "
                    "it out to keep that",
                )
                continue
            bounds[f"keep_{name}"] = value
        with counted(self._count, "media_failed", "run.media.keep(): the bounds could not be written", kinds=OSError):
            encode.write_bounds(self._folder, bounds)

    def _keep(
        self,
        recorder: Recorder,
        key: str,
        kind: str,
        suffix: str,
        pictures: Callable[[], Iterable[NDArray]],
        fps: float,
        episode_id: str | None,
        clocks: dict[str, Any],
    ) -> str | None:
        facts: dict[str, Any] | None = None
        with handled_by(self._failed, key):  # from the disk, or from an iterator, image or figure of the user
            # Names sort by time; the random end keeps processes and threads apart.
            end = f"{time.time_ns():x}{os.urandom(4).hex()}"
            facts = self._spool(f"{_safe(key)}-{end}", kind, suffix, pictures(), fps)
        if facts is None:
            return None
        row = {"key": key, "kind": kind, **facts}
        if episode_id is not None:
            row["episode_id"] = episode_id
        recorder.record("media", row, **clocks)
        path: str = facts["path"]
        return path

    def _failed(self, key: str, err: Exception) -> None:
        if isinstance(err, BadInput):
            self._refuse(key, str(err))
            return
        message = f"{key!r} could not be kept: {type(err).__name__}: {err}"[:400]
        if isinstance(err, ModuleNotFoundError) and err.name == "numpy":
            message = f"{key!r} was not kept: pictures and videos need numpy, which is not here: pip install numpy"
        self._count("media_failed", 1, message, key)

    def _spool(self, name: str, kind: str, suffix: str, pictures: Iterable[NDArray], fps: float) -> dict[str, Any]:
        """Write raw pixels and, last, the file that announces them to the keeper."""
        spool = os.path.join(self._folder, encode.SPOOL)
        make_folders(spool, inside=self._folder)
        room = self._free(spool)
        raw = os.path.join(spool, f"{name}.raw")
        frames, size, shape = 0, 0, (0, 0, 0)
        try:
            with open(raw, "wb", buffering=0) as file:
                for picture in pictures:
                    if size + picture.nbytes > room:
                        room = self._free(spool, again=True) + size
                    if size + picture.nbytes > room:
                        raise BadInput(
                            f"{self._most_spooled} bytes of pictures wait for the keeper, which does not keep up or "
                            "does not run. Log fewer, or look into data/keeper/log"
                        )
                    _write_all(file, picture)
                    frames, size, shape = frames + 1, size + picture.nbytes, picture.shape
            if not frames:
                raise BadInput("a video has at least one frame; found none. Pass frames")
            height, width, channels = shape
            note = {
                "format": 1,
                "kind": kind,
                "path": f"media/{name}.{suffix}",
                "width": width,
                "height": height,
                "channels": channels,
                "frames": frames,
                "fps": fps,
            }
            text = json.dumps(note).encode()
            _write_whole(os.path.join(spool, f"{name}.json"), text)
        except BaseException:
            remove(raw)
            raise
        self.bytes_kept += size
        free, counted = self._room
        self._room = free - size - len(text), counted
        spooled = f"{encode.SPOOL}/{name}.raw"
        fields = ("path", "width", "height", "channels", "frames", "fps")
        return {**{field: note[field] for field in fields}, "spool": spooled}

    def _free(self, spool: str, again: bool = False) -> int:
        """Bytes that may still be spooled; recounted at most once a second, unless space is short."""
        now = time.monotonic()
        if again or now - self._room[1] > 1.0:
            self._room = self._most_spooled - _bytes_in(spool), now
        return self._room[0]

    def _refuse(self, key: str, why: str) -> None:
        self._count("media_refused", 1, f"{key!r} was not kept: {why}", key)


def _bytes_in(folder: str) -> int:
    size = 0
    for entry in os.scandir(folder):
        with tolerating(OSError):  # the keeper has just processed it
            size += entry.stat().st_size
    return size


def _safe(key: str) -> str:
    """A key as part of a file name: ASCII letters, digits, dots and dashes, at most 80."""
    letters = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in key)
    return letters.lstrip(".-")[:80] or "media"


def _write_all(file: RawIOBase, picture: object) -> None:
    import numpy

    view = numpy.ascontiguousarray(picture).data.cast("B")
    while view:
        view = view[file.write(view) :]


def _write_whole(path: str, data: bytes) -> None:
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(data)
