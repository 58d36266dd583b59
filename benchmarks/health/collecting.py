"""What all trainings of the set share: collecting steps with faults in them, and the rows of what is logged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.health.environments import TASKS

__all__ = ["Broken", "Collector", "Rows", "draw", "stale"]

Array = np.ndarray[Any, np.dtype[Any]]
Broken = Callable[[int], dict[str, Any]]
"""An environment step -> what is broken then, by name; {} where nothing is."""


class Rows:
    """What each of some trainings logs: (env_step, update, values), in order."""

    def __init__(self, seeds: int) -> None:
        self.of: list[list[tuple[int, int, dict[str, float]]]] = [[] for _ in range(seeds)]

    def add(self, env_step: int, update: int, **values: Any) -> None:
        """A row of each training; `a__b` is the key a/b, a value one number for all or one a seed."""
        names = [name.replace("__", "/") for name in values]
        table = np.broadcast_arrays(*[np.asarray(value, float) for value in values.values()], np.zeros(len(self.of)))
        for seed, rows in enumerate(self.of):
            rows.append(
                (env_step, update, {name: float(cells[seed]) for name, cells in zip(names, table, strict=False)})
            )


class Collector:
    """Steps copies of a task for each seed; what is broken in the task is broken here.

    Args:
      task: its name.
      shape: (seeds, copies).
      units: what is seen is multiplied by the first and shifted by the second.
    """

    def __init__(
        self,
        task: str,
        shape: tuple[int, int],
        rng: np.random.Generator,
        broken: Broken,
        rows: Rows | None,
        units: tuple[float, float] = (1.0, 0.0),
    ) -> None:
        self.task, self.rows, self._broken, self._units = TASKS[task](shape, rng), rows, broken, units
        self.returns, self.lengths = np.zeros(shape), np.zeros(shape, int)
        self.finished: list[list[float]] = [[] for _ in range(shape[0])]
        self.steps = self.updates = 0

    def look(self) -> Array:
        """What is seen now."""
        return self._seen(self.task.observe())

    def _seen(self, x: Array) -> Array:
        x = x * self._units[0] + self._units[1]
        broken = self._broken(self.steps)
        return np.clip(x * broken.get("observation_times", 1.0), -1e12, 1e12)

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, Array]:
        """As `Task.step`; episodes that end are logged."""
        broken = self._broken(self.steps)
        self.task.endless = bool(broken.get("endless"))
        now, last, reward, terminated, truncated = self.task.step(actions)
        reward = broken.get("reward_is", reward * broken.get("reward_times", 1.0)) + np.zeros_like(reward)
        if "reward_nan" in broken:
            reward = np.where(self.task.rng.random(reward.shape) < broken["reward_nan"], np.nan, reward)
        self.steps += reward.shape[1]
        self.returns += reward
        self.lengths += 1
        ended = terminated | truncated
        for seed, copy in zip(*np.nonzero(ended), strict=True):
            gained, length = float(self.returns[seed, copy]), int(self.lengths[seed, copy])
            self.finished[seed].append(gained)
            if self.rows is not None:
                values = {"charts/episodic_return": gained, "charts/episodic_length": float(length)}
                self.rows.of[seed].append((self.steps, self.updates, values))
        self.returns[ended], self.lengths[ended] = 0.0, 0
        return self._seen(now), self._seen(last), reward, terminated, truncated


def draw(p: Array, rng: np.random.Generator) -> Array:
    """An index along the last axis, by probability."""
    below = p.cumsum(-1) < rng.random((*p.shape[:-1], 1))
    return np.minimum(below.sum(-1), p.shape[-1] - 1)


def stale(told: dict[str, Any], before: dict[str, Any], wrong: dict[str, Any]) -> dict[str, Any]:
    """What is logged of an update; where that stands still, some of it is what was logged before it did."""
    words = wrong.get("log_stale", "").split()
    kept = {name: value for name, value in before.items() if "loss" in name and any(word in name for word in words)}
    return {**told, **kept}
