"""Episodes: returns, lengths, running and final data, trajectories, videos, and checks against other reports."""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.capture.episodes.recorder import EpisodeRecorder as EpisodeRecorder
    from rollbook.capture.episodes.recorder import EpisodeSettings as EpisodeSettings

__all__ = ["EpisodeRecorder", "EpisodeSettings"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.capture.episodes.recorder": ("EpisodeRecorder", "EpisodeSettings"),
    },
)
