"""Turns an RL loop into rows and frames: episodes, samples, timings, checkpoints, media. Each part loads separately."""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.capture._ledger import RewardLedger as RewardLedger
    from rollbook.capture._transitions import TransitionRecorder as TransitionRecorder
    from rollbook.capture.checkpoints.restoring import Restored as Restored
    from rollbook.capture.checkpoints.saving import Checkpoint as Checkpoint
    from rollbook.capture.checkpoints.saving import Checkpoints as Checkpoints
    from rollbook.capture.episodes.agents import AgentsRecorder as AgentsRecorder
    from rollbook.capture.episodes.recorder import EpisodeRecorder as EpisodeRecorder
    from rollbook.capture.episodes.recorder import EpisodeSettings as EpisodeSettings
    from rollbook.capture.gym import RecordEpisodes as RecordEpisodes
    from rollbook.capture.gym import record_envs as record_envs
    from rollbook.capture.media.recorder import Media as Media
    from rollbook.capture.rollouts.recorder import RolloutLog as RolloutLog
    from rollbook.capture.samples.recorder import LoggedSamples as LoggedSamples
    from rollbook.capture.samples.recorder import SampleLog as SampleLog
    from rollbook.capture.store_dump import Store as Store
    from rollbook.capture.timers import Timers as Timers

__all__ = [
    "AgentsRecorder",
    "Checkpoint",
    "Checkpoints",
    "EpisodeRecorder",
    "EpisodeSettings",
    "LoggedSamples",
    "Media",
    "RecordEpisodes",
    "Restored",
    "RewardLedger",
    "RolloutLog",
    "SampleLog",
    "Store",
    "Timers",
    "TransitionRecorder",
    "record_envs",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.capture.checkpoints.restoring": ("Restored",),
        "rollbook.capture.checkpoints.saving": ("Checkpoint", "Checkpoints"),
        "rollbook.capture.episodes.agents": ("AgentsRecorder",),
        "rollbook.capture.episodes.recorder": ("EpisodeRecorder", "EpisodeSettings"),
        "rollbook.capture.gym": ("RecordEpisodes", "record_envs"),
        "rollbook.capture.media.recorder": ("Media",),
        "rollbook.capture.rollouts.recorder": ("RolloutLog",),
        "rollbook.capture.samples.recorder": ("LoggedSamples", "SampleLog"),
        "rollbook.capture.store_dump": ("Store",),
        "rollbook.capture.timers": ("Timers",),
        "rollbook.capture._ledger": ("RewardLedger",),
        "rollbook.capture._transitions": ("TransitionRecorder",),
    },
)
