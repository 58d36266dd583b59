"""The child that ships: started when there may be something new, one at a time, so that the keeper itself never loads
what speaks to stores. Nothing waits for it, and what it could not ship stays where it is."""

from __future__ import annotations

import os
import sys

from rollbook.files import read_json
from rollbook.keeper.places import keeper_folder
from rollbook.remote import origin_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["SHIP_SECONDS", "Shipping"]

SHIP_SECONDS = 20.0
"""How often a live run is shipped: what a host that vanishes takes with it is at most so old (and what was not
away)."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_LOOK_SECONDS = 5.0
_SLOW_SECONDS = 600.0
"""A child that takes longer hangs: it is ended, and another one is started later."""

_CHILD = (
    "import os, runpy, sys; "
    "sys.path += [p for p in os.environ.get('ROLLBOOK_KEEPER_PATH', '').split(os.pathsep) if p and p not in sys.path]; "
    "runpy.run_module('rollbook.ship.folder', run_name='__main__', alter_sys=True)"
)


class Shipping:
    """Runs `python -m rollbook.ship.folder RUN [--final]` when it is due, for a run that has a place.

    Args:
      run_folder: the run's folder.
      clock: seconds, monotonic.
      say: (cause, words) writes a line into data/keeper/log, once a cause.
      command: what to run instead of the module, for a keeper inside the training process and for tests.
    Attributes:
      failures: how many children in a row have failed.
      was_final: whether the last child was asked for everything.
    """

    def __init__(
        self,
        run_folder: str,
        clock: Callable[[], float],
        say: Callable[[str, str], None],
        command: Sequence[str] | None = None,
    ) -> None:
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        start = _CHILD.replace("import os,", f"import sys; sys.path.append({package!r}); import os,", 1)
        self._command = list(command) if command is not None else [sys.executable, "-c", start]
        self._run_folder, self._clock, self._say = run_folder, clock, say
        self._child: Any = None
        self._wanted = False
        self._looked_at = self._not_before = self._shipped_at = self._started_at = -1e9
        self._is_home = self._was_definite = False
        self.was_final = False
        self.failures = 0

    @property
    def wanted(self) -> bool:
        """The run has a place. Looked at now and then: a run may get one later."""
        if not self._wanted and self._clock() - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = self._clock()
            self._wanted = origin_of(self._run_folder) is not None
        return self._wanted

    @property
    def busy(self) -> bool:
        """A child is at work."""
        return self._child is not None

    def is_home(self) -> bool:
        """The last child was asked for everything, and everything is in the place."""
        return self._is_home or not self.wanted

    def trouble(self) -> dict[str, Any] | None:
        """Why nothing gets there, and how many tries in a row; None if it does."""
        if not self.failures:
            return None
        told = read_json(os.path.join(keeper_folder(self._run_folder), "shipped.json"))
        words = str(told.get("words") or "the shipping process ended badly")
        files, size = told.get("waiting_files") or 0, told.get("waiting_bytes") or 0
        return {
            "words": f"{words}. {files} files ({size:,} bytes) wait here and are shipped later",
            "failures": self.failures,
            "is_definite": self._was_definite,
        }

    def due(self) -> bool:
        """Whether `step` would start a child now."""
        now = self._clock()
        return (
            self.wanted
            and self._child is None
            and now >= self._not_before
            and (now - self._shipped_at >= SHIP_SECONDS or self.failures > 0)
        )

    def step(self, alive: bool = True) -> None:
        """Take the child back if it has ended; start one if it is time.

        Args:
          alive: a writer of this place lives. Without one `begin(final=True)` is what is wanted.
        """
        self.poll()
        if alive:
            self._is_home = False
            if self.due():
                self._start(final=False)

    def begin(self, *, final: bool) -> bool:
        """Start a child now; False if one is at work or the last one failed a moment ago."""
        self.poll()
        if not self.wanted or self._child is not None or self._clock() < self._not_before:
            return False
        self._start(final=final)
        return self._child is not None

    def poll(self) -> bool | None:
        """None: no child has ended since the last call; else whether it succeeded."""
        if self._child is None:
            return None
        if self._child.poll() is None:
            if self._clock() - self._started_at > _SLOW_SECONDS:
                self._child.kill()
            return None
        code, self._child = self._child.returncode, None
        self._shipped_at = self._clock()
        if code == 0:
            self.failures = 0
            self._is_home = self.was_final
            return True
        self._was_definite = code == 1
        words = read_json(os.path.join(keeper_folder(self._run_folder), "shipped.json")).get("words")
        self._failed(f"shipping ended with status {code}: {words or 'its words are above'}. It is tried again")
        return False

    def stop(self) -> None:
        """End the child; what it has shipped stays, and the next one goes on from there."""
        if self._child is not None:
            self._child.terminate()
            self._child.wait()
            self._child = None

    def _start(self, *, final: bool) -> None:
        import subprocess

        options: dict[str, Any] = {}
        if os.name == "posix":
            options["process_group"] = 0
        self._is_home = False
        self._started_at = self._clock()
        try:
            with open(os.path.join(keeper_folder(self._run_folder), "log"), "ab") as log:
                self._child = subprocess.Popen(
                    [*self._command, self._run_folder, *(["--final"] if final else [])],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    **options,
                )
        except OSError as err:
            self._failed(f"the shipping process cannot be started: {err}")
            return
        self.was_final = final
        if not final:
            try:
                os.setpriority(os.PRIO_PROCESS, self._child.pid, 10)
            except (OSError, AttributeError):
                return

    def _failed(self, words: str) -> None:
        self.failures += 1
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self.failures - 1, 20))
        self._not_before = self._clock() + pause
        self._say("ship", words)
