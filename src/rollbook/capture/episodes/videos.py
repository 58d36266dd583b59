"""The frames of an episode in bounded memory: at the limit, every second frame is dropped and the video runs faster.

A video of any length keeps its beginning, its end and an even spacing between frames.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.capture.episodes.settings import EpisodeSettings, Finished
    from rollbook.protocols import Recorder


class FrameBuffer:
    """Frames of one key, height x width x 3 uint8 arrays.

    Args:
      most_bytes: memory limit for the frames.
    """

    __slots__ = ("_bytes", "_every", "_seen", "frames", "most_bytes")

    def __init__(self, most_bytes: int = 64 * 1024 * 1024) -> None:
        self.most_bytes = most_bytes
        self.frames: list[Any] = []
        self._bytes = self._seen = 0
        self._every = 1

    def __len__(self) -> int:
        return len(self.frames)

    def add(self, frame: Any) -> None:
        """Store a copy of one frame (or skip it, if the video is already thinned)."""
        index, self._seen = self._seen, self._seen + 1
        if index % self._every:
            return
        self.frames.append(frame.copy())
        self._bytes += frame.nbytes
        while self._bytes > self.most_bytes and len(self.frames) > 2:
            self.frames = self.frames[::2]
            self._every *= 2
            self._bytes = sum(frame.nbytes for frame in self.frames)

    def log(self, recorder: Recorder, key: str, fps: float, **columns: object) -> None:
        """Log the frames: a video of all frames with the first one's shape, or an image if there is only one."""
        if not self.frames:
            return
        shape = self.frames[0].shape
        same = [frame for frame in self.frames if frame.shape == shape]
        verb = getattr(recorder, "log_video" if len(same) > 1 else "log_image", None)
        if verb is None:
            recorder.count("no_media", 1, f"{key!r} was rendered, but its recorder takes no images; it was not kept")
        elif len(same) > 1:
            import numpy

            verb(key, numpy.stack(same), fps=max(1.0, fps / self._every), **columns)
        else:
            verb(key, same[0], **columns)


class EpisodeVideos:
    """The videos of one episode, then of the next: rendered frames, and images from its infos.

    Args:
      settings: those of the recorder.
    Attributes:
      rendered: where a wrapper adds the frames it renders; None if the episode is not recorded as a video.
      fps: frames per second of rendered videos; wrappers take it from the environment.
    """

    def __init__(self, settings: EpisodeSettings) -> None:
        self._settings = settings
        self.fps = 30.0
        self.reset()

    def reset(self) -> None:
        """Reset: no episode is running."""
        self.rendered: FrameBuffer | None = None
        self._is_chosen = False
        self._by_name: dict[str, FrameBuffer] = {}

    def begin(self, number: int) -> None:
        """An episode begins, the `number`-th from 0."""
        self.reset()
        if not self._settings.may_record_video:
            return
        schedule = self._settings.video
        self._is_chosen = schedule.from_start(number)
        if self._is_chosen or schedule.in_hindsight:
            self.rendered = FrameBuffer(self._settings.held_bytes)

    @property
    def has_frames(self) -> bool:
        """Whether the episode may have a video."""
        return self.rendered is not None or bool(self._by_name)

    def add(self, name: str, pixels: object) -> None:
        """Add an image from an info under `name`: height x width (x 1, 3 or 4), uint8."""
        frames = self._by_name.get(name)
        if frames is None:
            frames = self._by_name[name] = FrameBuffer(self._settings.held_bytes)
        frames.add(pixels)

    def finish(self, finished: Finished, is_marked: bool, clocks: Mapping[str, int]) -> None:
        """The episode is over: log its videos, the rendered one if it is wanted."""
        settings = self._settings
        by_name, self._by_name = self._by_name, {}
        rendered, self.rendered = self.rendered, None
        for name, frames in by_name.items():
            frames.log(settings.recorder, f"media/{name}", 30.0, episode_id=finished.episode_id, **clocks)
        if rendered is not None and (self._is_chosen or settings.chosen(settings.video, finished, is_marked)):
            rendered.log(settings.recorder, "video", self.fps, episode_id=finished.episode_id, **clocks)
