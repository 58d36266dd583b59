"""A process that the keeper starts for work that needs large packages: one at a time, tried again where it failed."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod

from rollbook.foreign import is_foreign, tolerating
from rollbook.keeper.launch import PATH_VARIABLE
from rollbook.keeper.own_files import keeper_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from typing import Any, BinaryIO, ClassVar

__all__ = ["Child", "command_of"]

_FIRST_PAUSE = 0.5


def command_of(module: str) -> list[str]:
    """What runs a module of ours in another process, also where only the trainer's sys.path finds its packages."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    program = (
        f"import sys; sys.path.append({package!r}); import os, runpy; "
        f"sys.path += [p for p in os.environ.get({PATH_VARIABLE!r}, '').split(os.pathsep) if p and p not in sys.path]; "
        f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    )
    return [sys.executable, "-c", program]


def start_child(command: Sequence[str], words: Sequence[str], log: BinaryIO) -> subprocess.Popen[bytes]:
    """A process in a group of its own, for Ctrl-C is none of its business; what it says goes into the keeper's log."""
    import subprocess

    group: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
    null = subprocess.DEVNULL
    return subprocess.Popen([*command, *words], stdin=null, stdout=null, stderr=log, **group)


class Child(ABC):
    """Runs `python -m MODULE RUN [--final]`; a subclass says when (`step`) and what an end means (`_ended`).

    Args:
      run_folder: the run's folder; what the child says on stderr goes to its data/keeper/log.
      clock: seconds, monotonic.
      say: (cause, words) writes a line into that log, once a cause.
      command: what to run instead of the module, for a keeper inside the training process and for tests.
    Attributes:
      failures: how many children in a row have failed.
      was_final: whether the last child was asked for everything.
      started_at: when the last child was started.
    """

    module: ClassVar[str]
    cause: ClassVar[str]
    work: ClassVar[str]
    """What the child does, as its errors call it: "sealing"."""
    longest_pause: ClassVar[float]
    """Seconds between two tries when many have failed; the first pause is half a second."""
    most_at_once: ClassVar[float] = float("inf")
    """How many children of this kind the process may have, over all its runs; a keeper of many allows itself fewer."""
    options: tuple[str, ...] = ()
    """What every child is told beside its run."""
    at_work: ClassVar[int] = 0

    def __init__(
        self,
        run_folder: str,
        clock: Callable[[], float],
        say: Callable[[str, str], None],
        command: Sequence[str] | None = None,
    ) -> None:
        self._run_folder, self._clock, self._say = run_folder, clock, say
        self._command = list(command) if command is not None else command_of(self.module)
        self._process: subprocess.Popen[bytes] | None = None
        self._fd = -1
        self._not_before = self.started_at = -1e9
        self.was_final = False
        self.failures = 0

    @property
    def busy(self) -> bool:
        """A child is at work."""
        return self._process is not None

    def fileno(self) -> int:
        """A descriptor that becomes readable when the child ends; -1 where there is none."""
        return self._fd

    def may_start(self) -> bool:
        """No child is at work, the last one did not fail a moment ago, and other runs leave room for one."""
        return self._process is None and self._clock() >= self._not_before and self.at_work < self.most_at_once

    def begin(self, *, final: bool) -> bool:
        """Start a child now, whatever waits; False if it may not be started (`may_start`)."""
        self.poll()
        if not self.may_start():
            return False
        self._start(final=final)
        return self._process is not None

    def poll(self) -> bool | None:
        """None: no child has ended since the last call; else whether it succeeded."""
        if self._process is None:
            return None
        status = self._process.poll()
        if status is None:
            return None
        self._let_go()
        if not self._ended(status):
            return False
        self.failures = 0
        return True

    def stop(self) -> None:
        """End the child; what it has done stays, and the next one goes on from there."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._let_go()

    @abstractmethod
    def _ended(self, status: int) -> bool:
        """Whether a child with this exit status succeeded; where not, `_failed` was told why."""

    def _start(self, *, final: bool) -> None:
        words = [self._run_folder, *self.options, *(["--final"] if final else [])]
        try:
            with open(os.path.join(keeper_folder(self._run_folder), "log"), "ab") as log:
                self._process = start_child(self._command, words, log)
        except OSError as err:
            if is_foreign(err):
                raise
            self._failed(f"the {self.work} process cannot be started: {err}")
            return
        with tolerating(OSError, AttributeError):  # an old kernel or another system: then one has to look
            self._fd = os.pidfd_open(self._process.pid)
        type(self).at_work += 1
        self.was_final, self.started_at = final, self._clock()
        if not final:  # somebody may be waiting for the last one
            _lower_priority(self._process.pid)

    def _let_go(self) -> None:
        self._process = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        type(self).at_work -= 1

    def _failed(self, words: str) -> None:
        self.failures += 1
        pause = min(self.longest_pause, _FIRST_PAUSE * 2.0 ** min(self.failures - 1, 20))
        self._not_before = self._clock() + pause
        self._say(self.cause, words)


def _lower_priority(pid: int) -> None:
    """Sealing and shipping can wait; training cannot."""
    with tolerating(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, pid, 10)
