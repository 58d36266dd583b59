"""What turns an RL loop into rows and frames: episodes, samples, timings, checkpoints, media; each part loads alone."""

from __future__ import annotations

from rollbook.ground.lazy import attach

__getattr__, __dir__ = attach(__name__, {})
