"""`wandb.errors`."""

from __future__ import annotations

from rollbook.adapters.wandb._current import AuthenticationError, CommError, Error, UnsupportedError, UsageError

__all__ = ["AuthenticationError", "CommError", "Error", "UnsupportedError", "UsageError"]
