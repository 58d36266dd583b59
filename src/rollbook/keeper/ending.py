"""The end of a run, once no writer on this host lives: since when, what is sealed, how long to go on.

Also what run.json gets when a writer can no longer write its own status.
"""

from __future__ import annotations

import time

from rollbook.schema import manifest

_DRAIN_SECONDS = 600.0
"""How long a finished run's keeper goes on offering rows to a failing sink. Its cursor stays for a later keeper."""
_SHIP_REFUSED_SECONDS = 600.0
_SHIP_AWAY_SECONDS = 6 * 3600.0
"""How long a finished run's keeper goes on shipping to a remote that refuses, and to one that does not answer."""


class Ending:
    """One end of a run. It is taken back if a writer comes after all.

    Attributes:
      is_sealed: everything was sealed for the last time, or sealing was given up.
      sealed_alerts: how many alerts there were when that sealing began; -1 if it left what the rules had not seen.
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


def mark_crashed(run_folder: str, writer: str) -> bool:
    """Write `crashed` into run.json, if `writer` is still the main writer of the newest attempt and wrote no status.

    Returns:
      True if it was written.
    Raises:
      OSError: run.json cannot be replaced.
    """
    with manifest.ManifestLock(run_folder):
        about = manifest.look(run_folder)
        newest = manifest.newest(about)
        if (about.format or 0) > manifest.FORMAT:  # of a later rollbook: do not clean its fields
            return False
        if about.status != "running" or newest.writer != writer:
            return False
        now = max(time.time(), newest.started or 0.0)  # the clock may have gone back
        newest.status, newest.ended = "crashed", now
        about.status, about.ended = "crashed", now
        manifest.write(run_folder, about, durable=True)
    return True


def report_the_dead(run_folder: str, host: str, n: int) -> None:
    """Note in run.json that `n` side writers of this host ended without closing, for `ls` and `show`.

    Raises:
      OSError: run.json cannot be replaced.
    """
    with manifest.ManifestLock(run_folder):
        about = manifest.look(run_folder)
        if about.is_empty or (about.format or 0) > manifest.FORMAT:
            return
        counted = about.writers_died or {}
        if counted.get(host, 0) != n:
            about.writers_died = {**counted, host: n}
            manifest.write(run_folder, about, durable=True)
