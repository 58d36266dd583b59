"""A wrapper that hands each reward of an environment to a ledger, at the stage where it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium

__all__ = ["LedgerStage"]


class LedgerStage(gymnasium.Wrapper):
    """Enters each reward into a ledger under a stage, and passes everything on unchanged. See `RewardLedger.stage`.

    Args:
      env: the environment.
      enter: takes the stage and the reward of a step.
      name: the stage.
    """

    def __init__(self, env: Any, enter: Callable[[str, Any], None], name: str) -> None:
        super().__init__(env)
        self._enter, self._name = enter, name

    def step(self, action: object) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment and enter the reward."""
        result = self.env.step(action)
        self._enter(self._name, result[1])
        return result
