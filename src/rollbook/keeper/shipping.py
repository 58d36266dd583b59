"""The child that ships. It starts when there may be something new, so that the keeper never loads the store clients.
Nothing waits for it, and what it could not ship stays in the folder."""

from __future__ import annotations

import os

from rollbook.keeper.child import Child
from rollbook.keeper.own_files import keeper_folder
from rollbook.schema.addresses import origin_of
from rollbook.schema.run_files import RunFile
from rollbook.system.files import read_json
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHIP_SECONDS = 20.0
"""How often a live run is shipped. If the host vanishes, this much is lost (plus what was in transit)."""

IDLE_SECONDS, LONGEST_IDLE_SECONDS = 40.0, 320.0
"""The interval when no row has come since, and its limit when none comes for long; it doubles in between. A hundred
idle runs of one host then start a child every three seconds. Each manifest states when the next one is due; readers
call a run stale when it is a minute overdue."""

_LOOK_SECONDS = 5.0
_SLOW_SECONDS = 600.0
"""A child that takes longer hangs: it is killed, and another one is started later."""


class Shipping(Child):
    """Runs `python -m rollbook.remote.push RUN [--final]` when it is due, for a run that has a remote.

    Args:
      run_folder, clock, report, command: see `Child`.
    """

    module, cause, work = "rollbook.remote.push", "ship", "shipping"
    longest_pause = 60.0

    def __init__(
        self,
        run_folder: str,
        clock: Callable[[], float],
        report: Callable[[str, str], None],
        command: Sequence[str] | None = None,
    ) -> None:
        super().__init__(run_folder, clock, report, command)
        self._wanted = False
        self._idle_seconds = IDLE_SECONDS
        self._looked_at = self._shipped_at = -1e9
        self._due_since: float | None = None
        self._waited = 0.0
        self._is_home = self._was_definite = False

    @property
    def wanted(self) -> bool:
        """Whether the run has a remote. Checked now and then: a run may get one later."""
        if not self._wanted and self._clock() - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = self._clock()
            self._wanted = origin_of(self._run_folder) is not None
        return self._wanted

    def due_at(self, changed_at: float) -> float:
        """When `step` starts the next child, if none fails; `changed_at` is when the last row came."""
        if not self.wanted:
            return float("inf")
        return self._shipped_at + (SHIP_SECONDS if changed_at >= self.started_at else self._idle_seconds)

    def is_home(self) -> bool:
        """The last child was asked for everything, and everything is in the remote."""
        return self._is_home or not self.wanted

    def trouble(self) -> dict[str, object] | None:
        """Why nothing arrives there, and how many tries in a row failed; None if all is well."""
        if not self.failures:
            return None
        shipped = read_json(os.path.join(keeper_folder(self._run_folder), RunFile.SHIPPED))
        words = str(shipped.get("words") or self.reason)
        files, size = shipped.get("waiting_files") or 0, shipped.get("waiting_bytes") or 0
        later = "once that is mended" if self._was_definite else "later"
        return {
            "words": f"{words}. To be shipped {later}: {amount(files, 'file')} ({size:,} bytes)",
            "failures": self.failures,
            "is_definite": self._was_definite,
        }

    def step(self, changed_at: float = float("inf")) -> None:
        """While a writer on this host lives: collect the child if it has ended; start one if it is time.

        Args:
          changed_at: when the last row came, by the clock.
        """
        self.poll()
        self._is_home = False
        is_time = self.wanted and (self.failures > 0 or self._clock() >= self.due_at(changed_at))
        if not is_time or self.busy:
            self._due_since = None
        elif self._due_since is None:
            self._due_since = self._clock()
        if is_time and self.may_start():
            # It waited for a slot that other runs took; the next one may have to wait as long.
            self._waited = self._clock() - (self._due_since or self._clock()) if not self.failures else 0.0
            is_idle = changed_at < self.started_at and not self.failures
            self._idle_seconds = min(LONGEST_IDLE_SECONDS, 2 * self._idle_seconds) if is_idle else IDLE_SECONDS
            self._start(final=False)

    def begin(self, *, final: bool) -> bool:
        """Start a child now; False if it may not start (`may_start`), or the run has no remote."""
        return self.wanted and super().begin(final=final)

    def poll(self) -> bool | None:
        """None: no child has ended since the last call; otherwise whether it succeeded. One that hangs is killed."""
        if self._process is not None and self._clock() - self.started_at > _SLOW_SECONDS:
            self._process.kill()
        return super().poll()

    def _start(self, *, final: bool) -> None:
        self._is_home = False
        self.options = (f"--every={self._idle_seconds + self._waited:g}",)
        super()._start(final=final)

    def _ended(self, status: int) -> bool:
        self._shipped_at = self._clock()
        if status == 0:
            self._is_home = self.was_final
            return True
        self._was_definite = status == 1
        words = read_json(os.path.join(keeper_folder(self._run_folder), RunFile.SHIPPED)).get("words")
        self._failed(f"shipping failed: {words or self._why(status)}. It is tried again")
        return False
