"""From when on a fault can be seen: when the rows of a training leave what healthy ones of its kind had.

A rule cannot name a fault before it has left a trace, and how soon it does so afterwards is what a score should say.
So the trace is looked for with what no rule has: all healthy trainings of the same algorithm and task.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from benchmarks.health.faults import FAULTS

__all__ = ["OF_EPISODES", "Healthy"]

OF_EPISODES = frozenset({"charts/episodic_return", "charts/episodic_length", "eval/episodic_return"})
"""Keys of rows that no update wrote."""

_RETURNS = ("charts/episodic_return", "reward")
_MEAN, _PARTS, _ROOM, _IN_A_ROW = 20, 20, 0.25, 3
"""Returns are looked at by means of so many; a training in so many parts; so far beyond what healthy ones had, as a
share of its width; so many values of a key in a row."""

Run = tuple[dict[str, Any], list[Any]]


class Healthy:
    """What healthy trainings had, by algorithm, task, quantity and part of the training.

    Args:
      runs: their configurations and rows (`protocols.Row`).
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        self._ranges: dict[tuple[str, str, str], list[list[float]]] = defaultdict(
            lambda: [[math.inf, -math.inf] for _ in range(_PARTS)]
        )
        self._gaps: dict[tuple[str, str, str], int] = defaultdict(int)
        for config, rows in runs:
            of = (config["algorithm"], config["task"])
            for name in {name for fault in FAULTS.values() for name in fault.shows_in}:
                for step, value in _values(name, rows):
                    part = _part(step, config)
                    for near in range(max(0, part - 1), min(_PARTS, part + 2)):
                        cell = self._ranges[(*of, name)][near]
                        cell[0], cell[1] = min(cell[0], value), max(cell[1], value)
            for name in ("updates", "episodes"):
                steps = [0, *_steps(name, rows)]
                gaps = [later - step for step, later in pairwise(steps)]
                self._gaps[(*of, name)] = max([self._gaps[(*of, name)], *gaps])

    def shows(self, config: dict[str, Any], rows: list[Any]) -> int | None:
        """The environment step from which on the fault of a training can be seen; None if it never can."""
        injected, fault = config["injected"], FAULTS[config["fault"]]
        version = getattr(fault, config["strength"])
        if version.config:
            return int(rows[0].clocks["env_step"])  # the configuration tells it
        steps = [step for name in fault.shows_in for step in self._left(name, config, rows) if step >= injected]
        return min(steps, default=None)

    def _left(self, name: str, config: dict[str, Any], rows: list[Any]) -> Iterator[int]:
        """Steps at which a trace can be seen, the first one first."""
        injected, of = config["injected"], (config["algorithm"], config["task"], name)
        if name == "update":
            yield from (row.clocks["env_step"] for row in rows if not set(row.values) <= OF_EPISODES)
        elif name == "number":
            yield from (row.clocks["env_step"] for row in rows if not all(map(math.isfinite, row.values.values())))
        elif name in ("updates", "episodes"):
            before = max((step for step in _steps(name, rows) if step <= injected), default=0)
            late = before + self._gaps[of]
            if not any(injected < step <= late for step in _steps(name, rows)):
                yield next((row.clocks["env_step"] for row in rows if row.clocks["env_step"] >= late), config["steps"])
        else:
            beyond = 0
            for step, value in _values(name, rows):
                low, high = self._ranges[of][_part(step, config)]
                room = _ROOM * (high - low) if high >= low else math.inf
                is_beyond = step >= injected and not low - room <= value <= high + room
                beyond = beyond + 1 if is_beyond else 0
                if beyond >= (1 if name == "returns" else _IN_A_ROW):
                    yield step


def _part(step: int, config: dict[str, Any]) -> int:
    return max(0, min(_PARTS - 1, _PARTS * (step - 1) // int(config["steps"])))


def _steps(name: str, rows: list[Any]) -> list[int]:
    """When updates or episodes came."""
    if name == "episodes":
        return [row.clocks["env_step"] for row in rows if any(key in row.values for key in _RETURNS)]
    return [row.clocks["env_step"] for row in rows if not set(row.values) <= OF_EPISODES]


def _values(name: str, rows: list[Any]) -> Iterator[tuple[int, float]]:
    """(environment step, value) of a key, or of means of the last returns."""
    if name != "returns":
        yield from ((row.clocks["env_step"], row.values[name]) for row in rows if name in row.values)
        return
    last: list[float] = []
    for row in rows:
        value = next((row.values[key] for key in _RETURNS if key in row.values), None)
        if value is not None:
            last = [*last[-_MEAN + 1 :], value]
            if len(last) == _MEAN:
                yield row.clocks["env_step"], sum(last) / _MEAN
