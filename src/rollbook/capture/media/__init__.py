"""Images and videos: the training process writes raw pixels to a spool, the keeper encodes them to files."""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.capture.media.recorder import MOST_SPOOLED as MOST_SPOOLED
    from rollbook.capture.media.recorder import Media as Media

__all__ = ["MOST_SPOOLED", "Media"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.capture.media.recorder": ("MOST_SPOOLED", "Media"),
    },
)
