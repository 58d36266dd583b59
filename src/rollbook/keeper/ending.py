"""How far the end of a run is, once no writer of this place lives: since when, what is sealed, how long to go on."""

from __future__ import annotations

__all__ = ["Ending"]

_DRAIN_SECONDS = 600.0
"""How long a finished run's keeper goes on offering rows to a sink that fails. Its cursor stays for a later one."""
_SHIP_REFUSED_SECONDS = 600.0
_SHIP_AWAY_SECONDS = 6 * 3600.0
"""How long a finished run's keeper goes on shipping to a place that refuses, and to one that gives no answer."""


class Ending:
    """One end of a run, which is taken back when a writer comes after all.

    Attributes:
      is_sealed: what there is was sealed for the last time, or it was given up.
      sealed_alerts: how many alerts there were when that sealing began.
      vanished: the main writer ended without closing.
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._shipping_since: float | None = None
        self._patience: float | None = None
        self.is_sealed = self.vanished = False
        self.sealed_alerts = 0

    @property
    def is_hurried(self) -> bool:
        """Somebody waits for it (`hasten`)."""
        return self._patience is not None

    def seconds(self, now: float) -> float:
        """How long ago it began."""
        return 0.0 if self._since is None else now - self._since

    @property
    def has_begun(self) -> bool:
        """No writer of this place lived at the last step."""
        return self._since is not None

    def begin(self, now: float) -> bool:
        """No writer lives. Returns whether that is new."""
        is_new = self._since is None
        self._since = now if self._since is None else self._since
        return is_new

    def take_back(self) -> None:
        """A writer lives."""
        self._since = self._shipping_since = None
        self.is_sealed = self.vanished = False

    def hasten(self, seconds: float) -> None:
        """Somebody waits: go on for at most so long where a sink fails or a place gives no answer."""
        self._patience = seconds

    def may_drain(self, now: float) -> bool:
        """Whether rows are still offered to sinks that fail."""
        patience = _DRAIN_SECONDS if self._patience is None else self._patience
        return self.seconds(now) < patience

    def may_ship(self, now: float, *, is_definite: bool) -> bool:
        """Whether to go on shipping to a place that refuses (definite) or gives no answer. To be asked from the
        first try on."""
        self._shipping_since = now if self._shipping_since is None else self._shipping_since
        patience = _SHIP_REFUSED_SECONDS if is_definite else _SHIP_AWAY_SECONDS
        return now - self._shipping_since < (patience if self._patience is None else self._patience)
