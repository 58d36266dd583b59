"""The frames of an episode in bounded memory: at the bound every second one goes and the film runs faster.

A film of any length keeps its beginning, its end and an even spacing between frames.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.protocols import Recorder

__all__ = ["Film"]


class Film:
    """Frames of one key, height x width x 3 uint8 arrays.

    Args:
      most_bytes: how much memory the frames may take.
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
        """Take a copy of one frame (or pass over it, if the film is thinned already)."""
        index, self._seen = self._seen, self._seen + 1
        if index % self._every:
            return
        self.frames.append(frame.copy())
        self._bytes += frame.nbytes
        while self._bytes > self.most_bytes and len(self.frames) > 2:
            self.frames = self.frames[::2]
            self._every *= 2
            self._bytes = sum(kept.nbytes for kept in self.frames)

    def log(self, recorder: Recorder, key: str, fps: float, **columns: Any) -> None:
        """Hand the film to the run: a video of all frames of the first one's shape, or a picture if there is one."""
        if not self.frames:
            return
        shape = self.frames[0].shape
        same = [frame for frame in self.frames if frame.shape == shape]
        verb = getattr(recorder, "log_video" if len(same) > 1 else "log_image", None)
        if verb is None:
            recorder.count(
                "no_media", 1, f"{key!r} was rendered, and what records it takes no pictures; it was not kept"
            )
        elif len(same) > 1:
            import numpy

            verb(key, numpy.stack(same), fps=max(1.0, fps / self._every), **columns)
        else:
            verb(key, same[0], **columns)
