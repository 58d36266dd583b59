"""EpisodeObserver: the episodes of an EnvironmentLoop as rows of the table `episodes`.

    loop = EnvironmentLoop(environment, agent, observers=[EpisodeObserver(run)])

Needs dm-acme 0.4: the loop of 0.2.4 accepts no observers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from rollbook.adapters.acme.base import to_numpy
from rollbook.system.bill import counted
from rollbook.values import flatten, scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import dm_env

    from rollbook.run.scope import Scope


class EpisodeObserver:
    """Writes one row per episode: return, length, seconds, and whether it was terminated or truncated.

    An episode is terminated if its last discount is 0 everywhere, and truncated otherwise (dm_env's rule). For rewards
    that are nested or arrays, each element has a column `return/<name>`, and `return` is their sum.

    Args:
      run: a run or a scope of a run: `run.scope("test")` for an evaluator.
      counts_steps: whether the episodes advance the run's `env_step`. Set it to False for an evaluator.
      clock: monotonic seconds.
    """

    def __init__(
        self, run: Scope, *, counts_steps: bool = True, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._run, self._counts_steps, self._clock = run, counts_steps, clock
        self._begun = clock()
        self._length = 0
        self._returns: dict[str, float] = {}
        self._last: Any = None

    def observe_first(self, env: object, timestep: object) -> None:
        """Begin an episode.

        Args:
          env: not used.
          timestep: the first one of the episode (`dm_env.TimeStep`).
        """
        del env
        self._begun, self._length, self._returns, self._last = self._clock(), 0, {}, timestep

    def observe(self, env: object, timestep: dm_env.TimeStep, action: object) -> None:
        """Count one step of the environment.

        Args:
          env, action: not used.
          timestep: the one after the action; its reward is added up.
        """
        del env, action
        self._length += 1
        self._last = timestep
        with counted(self._run.count, "acme_reward", "a reward could not be summed"):
            for name, reward in _elements(timestep.reward):
                self._returns[name] = self._returns.get(name, 0.0) + reward

    def get_metrics(self) -> dict[str, float]:
        """Write the row of the finished episode. Adds nothing to the loop's own record."""
        with counted(self._run.count, "acme_episode", "an episode could not be written"):
            columns = self._columns()
            clocks = {}
            if self._counts_steps:
                clocks["env_step"] = self._run.clocks_now().get("env_step", 0) + self._length
            self._run.log_episode(**columns, **clocks)
        return {}

    def _columns(self) -> dict[str, object]:
        over = bool(self._last is not None and self._last.last())
        discounts = [value for _, value in _elements(self._last.discount)] if over else []
        terminated = over and all(value == 0.0 for value in discounts)
        columns: dict[str, object] = {
            "return": sum(self._returns.values()),
            "length": self._length,
            "seconds": self._clock() - self._begun,
            "terminated": terminated,
            "truncated": over and not terminated,
        }
        if len(self._returns) > 1:
            columns.update((f"return/{name}", value) for name, value in self._returns.items())
        return columns


def _elements(value: object) -> list[tuple[str, float]]:
    """The numbers of a nested structure of scalars and arrays, each with its name."""
    elements: list[tuple[str, float]] = []
    pairs = flatten(value) if isinstance(value, Mapping) else [("", value)]
    for name, part in pairs:
        number = scalar_of(to_numpy(part))
        if number is not None:
            elements.append((name, float(number)))
        elif part is not None:
            import numpy as np

            flat = np.asarray(to_numpy(part), dtype=np.float64).ravel().tolist()
            elements.extend((f"{name}/{i}" if name else str(i), element) for i, element in enumerate(flat))
    return elements
