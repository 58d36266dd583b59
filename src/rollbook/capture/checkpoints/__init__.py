"""Checkpoints: saved atomically with their exact position in the run, and restored."""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.capture.checkpoints.saving import Checkpoint as Checkpoint
    from rollbook.capture.checkpoints.saving import Checkpoints as Checkpoints
    from rollbook.capture.checkpoints.saving import load as load

__all__ = ["Checkpoint", "Checkpoints", "load"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.capture.checkpoints.saving": ("Checkpoint", "Checkpoints", "load"),
    },
)
