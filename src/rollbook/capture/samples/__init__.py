"""Samples: one row per item of a batch, and at once whether each item is new."""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.capture.samples.recorder import LoggedSamples as LoggedSamples
    from rollbook.capture.samples.recorder import SampleLog as SampleLog

__all__ = ["LoggedSamples", "SampleLog"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.capture.samples.recorder": ("LoggedSamples", "SampleLog"),
    },
)
