"""The end of a run, once no writer on this host lives: since when, what is sealed, how long to go on."""

from __future__ import annotations

__all__ = ["Ending"]

_DRAIN_SECONDS = 600.0
"""How long a finished run's keeper goes on offering rows to a failing sink. Its cursor stays for a later keeper."""
_SHIP_REFUSED_SECONDS = 600.0
_SHIP_AWAY_SECONDS = 6 * 3600.0
"""How long a finished run's keeper goes on shipping to a remote that refuses, and to one that does not answer."""


class Ending:
    """One end of a run. It is taken back if a writer comes after all.

    Attributes:
      is_sealed: everything was sealed for the last time, or sealing was given up.
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
        """A process waits for it (`hasten`)."""
        return self._patience is not None

    def seconds(self, now: float) -> float:
        """How long ago it began."""
        return 0.0 if self._since is None else now - self._since

    @property
    def has_begun(self) -> bool:
        """No writer on this host lived at the last step."""
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
        """A process waits: go on for at most this long when a sink fails or a remote does not answer."""
        self._patience = seconds

    def may_drain(self, now: float) -> bool:
        """Whether rows are still offered to failing sinks."""
        patience = _DRAIN_SECONDS if self._patience is None else self._patience
        return self.seconds(now) < patience

    def may_ship(self, now: float, *, is_definite: bool) -> bool:
        """Whether to go on shipping to a remote that refuses (definite) or does not answer. Call it from the first try
        on."""
        self._shipping_since = now if self._shipping_since is None else self._shipping_since
        patience = _SHIP_REFUSED_SECONDS if is_definite else _SHIP_AWAY_SECONDS
        return now - self._shipping_since < (patience if self._patience is None else self._patience)
