"""Counter: counts of steps and episodes, shared by the parts of an agent.

    parent = Counter()
    actor = Counter(parent, "actor", time_delta=0.0)
    actor.increment(steps=200, episodes=1)      # {"actor_steps": 200, "actor_episodes": 1, and its siblings' counts}

Acme's loops accept it in place of `acme.utils.counting.Counter`.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Counter", "Number"]

Number = int | float


class _Local:
    """Counts that a counter has not sent to its parent yet."""

    def __init__(self, parent: Any, prefix: str) -> None:
        self.parent, self.prefix = parent, prefix
        self.lock = threading.RLock()
        self.counts: dict[str, Number] = {}
        self.cache: dict[str, Number] = {}

    def sync(self) -> None:
        """Send the counts to the parent, and read all of its counts."""
        with self.lock:
            if self.parent is not None:
                self.cache = dict(self.parent.increment(**_prefixed(self.counts, self.prefix)))
                self.counts = {}

    def last_sync(self) -> None:
        if self.counts:
            self.sync()


class Counter:
    """Counts, and shares the counts with `parent` every `time_delta` seconds.

    Nothing is lost at the end: remaining counts go to the parent at `close()`, or when the counter is collected or the
    program ends. Any number of threads may count.

    Args:
      parent: a Counter that holds the counts of all its children; None for none.
      prefix: counts are named `<prefix>_<name>` in the results of this counter and in the parent. Prefixes nest.
      time_delta: seconds between exchanges with the parent.
      return_only_prefixed: return only this counter's own counts, without the prefix.
      clock: monotonic seconds.
    """

    def __init__(
        self,
        parent: Counter | None = None,
        prefix: str = "",
        time_delta: float = 1.0,
        return_only_prefixed: bool = False,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._local = _Local(parent, prefix)
        self._prefix, self._time_delta, self._clock = prefix, time_delta, clock
        self._return_only_prefixed = return_only_prefixed
        above = "" if parent is None or getattr(parent, "_return_only_prefixed", False) else _front_of(parent)
        self._front = f"{above}{prefix}_" if prefix else above
        self._last_sync: float | None = None
        weakref.finalize(self, self._local.last_sync)

    def increment(self, **counts: Number) -> dict[str, Number]:
        """Add to the counts; returns the same as `get_counts`.

        Raises:
          TypeError: a value is not a number.
        """
        local = self._local
        with local.lock:
            for name, value in counts.items():
                if isinstance(value, str) or not hasattr(value, "__add__"):
                    raise TypeError(f"increment({name}={value!r}): counts are numbers")
                local.counts[name] = local.counts.get(name, 0) + value
            return self.get_counts()

    def get_counts(self) -> dict[str, Number]:
        """All counts: this counter's, and those of its parent at the last exchange."""
        local = self._local
        with local.lock:
            now = self._clock()
            if local.parent is not None and (self._last_sync is None or now - self._last_sync > self._time_delta):
                local.sync()
                self._last_sync = now
            counts = {f"{self._front}{name}": value for name, value in local.counts.items()}
            for name, value in local.cache.items():
                counts[name] = counts.get(name, 0) + value
        if self._prefix and self._return_only_prefixed:
            start = len(self._front)
            counts = {name[start:]: value for name, value in counts.items() if name.startswith(self._front)}
        return counts

    def get_steps_key(self) -> str:
        """The name of this counter's steps in `get_counts`."""
        return "steps" if self._return_only_prefixed else f"{self._front}steps"

    def flush(self) -> None:
        """Send everything to the parent now."""
        self._local.sync()

    def close(self) -> None:
        """Send everything to the parent. The counter can still be used."""
        self._local.sync()

    def save(self) -> dict[str, dict[str, Number]]:
        """A copy of the counts as plain data."""
        with self._local.lock:
            return {"counts": dict(self._local.counts), "cache": dict(self._local.cache)}

    def restore(self, state: Mapping[str, Mapping[str, Number]]) -> None:
        """Continue from the result of `save`; the next read exchanges with the parent.

        Args:
          state: an earlier result of `save`.
        """
        with self._local.lock:
            self._last_sync = None
            self._local.counts, self._local.cache = dict(state["counts"]), dict(state["cache"])


def _front_of(counter: object) -> str:
    """The prefix of a counter's own names in its results; Acme's counters do not expose it."""
    prefix = getattr(counter, "_prefix", "")
    return str(getattr(counter, "_front", f"{prefix}_" if prefix else ""))


def _prefixed(counts: Mapping[str, Number], prefix: str) -> dict[str, Number]:
    return {f"{prefix}_{name}": value for name, value in counts.items()} if prefix else dict(counts)
