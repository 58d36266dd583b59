"""Shared by rules about single keys: which keys they check, and how a message states the position in training."""

from __future__ import annotations

import sys
from array import array
from collections import defaultdict
from typing import Any, Generic, TypeVar

import msgspec

from rollbook.health._memory import Memory, remembered
from rollbook.schema import aliases
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rollbook.schema.columns import Column, Columns

ASIDE = ("host/", "rollbook/", "system/", "eval", "test/", "val/", "val_", "valid")
"""Keys with these beginnings are about the machine, or evaluations, which may come late."""

OF_RL = frozenset(
    {
        *("train/return", "train/reward", "test/return", "update/q_value"),
        *("update/loss/policy", "update/loss/value", "update/loss/q", "update/loss/q1"),
    }
)
"""What a supervised training does not log."""

KeyMemory = TypeVar("KeyMemory", bound=Memory)


class KeyedRule(Generic[KeyMemory]):
    """A rule that checks the values of some keys. Subclasses define `take`, for each key separately, or `look`.

    Args:
      keys: further keys to check, in addition to those of `meanings`.
    Attributes:
      memory: what is remembered of each key; `memory[key]` makes it at the first time.
    """

    remembers: type[KeyMemory]
    """The class of the memory of a key."""

    name = ""
    source = ""
    tables: frozenset[str] = frozenset({"metrics"})
    meanings: frozenset[str] = frozenset()
    """Canonical names (`rollbook.schema.aliases`); any framework's key with one of these meanings is checked."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._keys = {keys} if isinstance(keys, str) else set(keys)
        self._chosen: dict[str, bool] = {}
        self._spellings = Spellings()
        self._keys_before: tuple[str, ...] = ()
        self._watched: list[str] = []
        self.memory: defaultdict[str, KeyMemory] = defaultdict(self.remembers)

    def open(self, run: RunInfo) -> None:
        """A run begins, or continues after a rewind."""
        self.run = run
        self.memory = defaultdict(self.remembers)
        self._chosen, self._spellings, self._keys_before = {}, Spellings(), ()

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        watched = self.watched(columns)
        if not watched:
            return ()
        alerts: list[tuple[float, Alert]] = []
        for key in watched:
            alerts += self.take(key, columns.column(key))
        return in_order(alerts)

    def watched(self, columns: Columns) -> Sequence[str]:
        """The checked keys that have new numbers. Rows mostly have the same keys as the rows before."""
        keys = tuple(columns.keys("metrics"))
        if keys != self._keys_before:
            self._keys_before, self._watched = keys, [key for key in keys if self.watches(key)]
        return self._watched

    def watches(self, key: str) -> bool:
        """Whether a key is checked."""
        chosen = self._chosen.get(key)
        if chosen is None:
            chosen = key in self._keys or (meaning(key) in self.meanings and self._spellings.takes(key))
            self._chosen[key] = chosen
        return chosen

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`."""
        return {"memory": msgspec.to_builtins(self.memory), "spellings": self._spellings.taken}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        self.memory.clear()
        self.memory.update({key: remembered(self.remembers, plain) for key, plain in state["memory"].items()})
        self._chosen, self._spellings = {}, Spellings(state.get("spellings"))
        self._keys_before = ()

    def take(self, key: str, column: Column) -> Iterable[tuple[float, Alert]]:
        """The new values of a checked key. A rule that judges several keys together defines `look` instead.

        Returns:
          What is wrong, each with the time of its row.
        """
        return ()


class Spellings:
    """Decides which spelling of a quantity is checked if a run logs it under a framework's name and the canonical one:
    the first, so that there is one alert. Several framework keys are several quantities (learners, critics).

    Args:
      taken: canonical name -> the checked keys; plain JSON data.
    """

    __slots__ = ("taken",)

    def __init__(self, taken: Mapping[str, list[str]] | None = None) -> None:
        self.taken: dict[str, list[str]] = dict(taken or {})

    def takes(self, key: str) -> bool:
        """Whether a key is checked."""
        name = meaning(key)
        if aliases.describe(name) is None:
            return True
        taken = self.taken.setdefault(name, [])
        if key not in taken:
            own = aliases.without_prefix(key)  # `kl` and `train/kl` are one number, as the callback and W&B have it
            if taken and (key == name or name in taken or own in map(aliases.without_prefix, taken)):
                return False
            taken.append(key)
        return True


def in_order(alerts: list[tuple[float, Alert]]) -> list[Alert]:
    """Alerts of several keys in the order of their rows."""
    alerts.sort(key=lambda timed: timed[0])
    return [alert for _time, alert in alerts]


def meaning(key: str) -> str:
    """The canonical name of a key, or the key itself."""
    return aliases.canonical(key) or key


def at_clock(clocks: Mapping[str, int]) -> str:
    """The position in training, in words: " at env_step 2,048"; "" where no clock is known."""
    for clock, reading in clocks.items():
        return f" at {clock} {reading:,}"
    return ""


def are_known(readings: Sequence[int]) -> bool:
    """Whether no reading of a clock is below 0, as UNKNOWN is. In an array such a number ends in a byte that is no
    ASCII."""
    if isinstance(readings, array) and sys.byteorder == "little":
        return readings.tobytes()[7::8].isascii()
    return min(readings, default=0) >= 0


def median(values: Sequence[float]) -> float:
    """The upper median."""
    return sorted(values)[len(values) // 2]
