"""Rollouts of language models and agents: turns, rewards, versions and tokens, and later the fate of each."""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.capture.rollouts.recorder import RolloutLog as RolloutLog
    from rollbook.capture.rollouts.rollout import OpenRollout as OpenRollout

__all__ = ["OpenRollout", "RolloutLog"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.capture.rollouts.recorder": ("RolloutLog",),
        "rollbook.capture.rollouts.rollout": ("OpenRollout",),
    },
)
