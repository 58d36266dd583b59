"""A wrapper that passes each reward of an environment to a ledger, under the wrapper's stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium


class LedgerStage(gymnasium.Wrapper):
    """Adds each reward to a ledger under a stage, and changes nothing. See `RewardLedger.stage`.

    Arguments as in `gymnasium.Wrapper` for `step`.

    Args:
      env: the environment.
      enter: called with the stage and the reward of each step.
      name: the stage.
    """

    def __init__(self, env: Any, enter: Callable[[str, Any], None], name: str) -> None:
        super().__init__(env)
        self._enter, self._name = enter, name

    def step(self, action: object) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment and add the reward to the ledger."""
        result = self.env.step(action)
        self._enter(self._name, result[1])
        return result
