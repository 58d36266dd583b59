"""`wandb.errors`."""

from __future__ import annotations

from rollbook.adapters.wandb._current import CommError, Error, UsageError

__all__ = ["CommError", "Error", "UsageError"]
