"""A child process of the keeper for work that needs large packages: one at a time, tried again after a failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod

from rollbook.keeper.launch import PATH_VARIABLE
from rollbook.keeper.own_files import keeper_folder
from rollbook.keeper.warm_children import WarmChild
from rollbook.system.files import names_in
from rollbook.system.guard import ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, BinaryIO, ClassVar

_FIRST_PAUSE = 0.5
_LAST_WORDS = 4096
_STOP_SECONDS = 2.0
"""How long a child may take to end when asked. Then it is killed, and if that fails, abandoned."""

_TICK_SECONDS = 1.0
_UNSEEN_SECONDS = 1800.0
"""How long a child may take where the system does not report its processor time."""


def command_of(module: str) -> list[str]:
    """The command that runs a module of ours in another process, even if only the trainer's sys.path finds its
    packages."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    program = (
        f"import sys; sys.path.append({package!r}); import os, runpy; "
        f"sys.path += [p for p in os.environ.get({PATH_VARIABLE!r}, '').split(os.pathsep) if p and p not in sys.path]; "
        f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    )
    return [sys.executable, "-c", program]


def start_child(command: Sequence[str], words: Sequence[str], log: BinaryIO) -> subprocess.Popen[bytes]:
    """Start a process in a separate group, so that Ctrl-C does not reach it. Its stderr goes into the keeper's log."""
    group: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
    null = subprocess.DEVNULL
    return subprocess.Popen([*command, *words], stdin=null, stdout=null, stderr=log, cwd=_folder_to_start_in(), **group)


def _folder_to_start_in() -> str | None:
    """Another working folder, if the current one was removed: CPython 3.13.0 cannot import anything without one."""
    with tolerating(OSError):
        os.getcwd()
        return None
    return os.path.abspath(os.sep)


class Ended:
    """Work that was done in this process, with the part of `subprocess.Popen` that `Child` needs."""

    pid = -1

    def __init__(self, status: int) -> None:
        self._status = status

    def poll(self) -> int:
        """The status."""
        return self._status

    def wait(self, timeout: float) -> int:
        """The status."""
        return self._status

    def terminate(self) -> None:
        """Nothing is left to end."""

    kill = terminate


class Child(ABC):
    """Runs `python -m MODULE RUN [--final]`. A subclass decides when (`step`) and what an exit status means (`_ended`).

    Args:
      run_folder: the run's folder; the child's stderr goes to its data/keeper/log.
      clock: seconds, monotonic.
      report: (cause, words) writes a line into that log, once a cause.
      command: what to run instead of the module, for a keeper inside the training process and for tests.
    Attributes:
      patience: a child without processor time for this many seconds (stopped, or waiting for a remote that does not
        answer) is killed and counts as failed.
      gave_up: a child was killed for that.
      failures: how many children in a row have failed.
      was_final: whether the last child was asked for everything.
      started_at: when the last child was started.
      reason: why the last child failed, in words; "" if it did not.
    """

    module: ClassVar[str]
    cause: ClassVar[str]
    work: ClassVar[str]
    """What the child does, for error messages: "sealing"."""
    longest_pause: ClassVar[float]
    """Seconds between two tries after many failures; the first pause is half a second."""
    most_at_once: ClassVar[float] = float("inf")
    """How many children of this kind the process may have over all its runs; a keeper of many runs allows itself
    fewer."""
    options: tuple[str, ...] = ()
    """Further options for every child."""
    at_work: ClassVar[int] = 0

    def __init__(
        self,
        run_folder: str,
        clock: Callable[[], float],
        report: Callable[[str, str], None],
        command: Sequence[str] | None = None,
    ) -> None:
        self._run_folder, self._clock, self._report = run_folder, clock, report
        self._command = list(command) if command is not None else command_of(self.module)
        self._process: subprocess.Popen[bytes] | WarmChild | Ended | None = None
        self._fd = -1
        self._log_path = os.path.join(keeper_folder(run_folder), "log")
        self._log_size = 0  # when the last child was started
        self.reason = ""
        self._not_before = self.started_at = -1e9
        self.was_final = self.gave_up = False
        self.failures = 0
        self.patience = 120.0
        self._effort, self._worked_at, self._seen_at = -1.0, 0.0, 0.0

    @property
    def busy(self) -> bool:
        """Whether a child is at work."""
        return self._process is not None

    def fileno(self) -> int:
        """A descriptor that becomes readable when the child ends; -1 if there is none."""
        return self._fd

    def may_start(self) -> bool:
        """Whether a child may start: none is at work, the last one has not just failed, and other runs leave room."""
        return self._process is None and self._clock() >= self._not_before and self.at_work < self.most_at_once

    def begin(self, *, final: bool) -> bool:
        """Start a child now. False if one is at work, if one has ended since the last `poll` (only `poll` reports its
        end), or if none may start (`may_start`)."""
        if self._process is not None or not self.may_start():
            return False
        self._start(final=final)
        return self._process is not None

    def poll(self) -> bool | None:
        """None: no child has ended since the last call; otherwise whether it succeeded."""
        if self._process is None:
            return None
        status = self._process.poll()
        if status is None and self._is_stuck():
            self.gave_up = True
            status = self._killed()
        if status is None:
            return None
        self._let_go()
        if not self._ended(status):
            return False
        self.failures, self.reason = 0, ""
        return True

    def trouble(self) -> dict[str, object] | None:
        """Why the work is not done, and how many tries in a row failed; None if it is done."""
        return {"words": self.reason, "failures": self.failures} if self.failures else None

    def stop(self) -> None:
        """End the child. Its finished work stays, and the next child goes on from there."""
        if self._process is None:
            return
        self._process.terminate()
        with tolerating(subprocess.TimeoutExpired) as late:
            self._process.wait(_STOP_SECONDS)
        if late:
            self._killed()
        self._let_go()

    def _killed(self) -> int:
        """Kill the child and the processes it started. Returns its exit status, or a substitute if it does not end even
        then."""
        process: Any = self._process
        with tolerating(OSError, AttributeError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        with tolerating(subprocess.TimeoutExpired):  # it hangs in the kernel, which will end it later
            return int(process.wait(_STOP_SECONDS))
        return -int(signal.SIGKILL) if os.name == "posix" else 1

    def _is_stuck(self) -> bool:
        """Whether the child and its processes had no processor time for `patience` seconds."""
        now = self._clock()
        if now - self._seen_at < _TICK_SECONDS:
            return False
        self._seen_at = now
        effort = _effort_of(self._process.pid) if self._process is not None else None
        if effort is None:
            return now - self.started_at > _UNSEEN_SECONDS
        if effort != self._effort:
            self._effort, self._worked_at = effort, now
        return now - self._worked_at > self.patience

    @abstractmethod
    def _ended(self, status: int) -> bool:
        """Whether a child with this exit status succeeded. After a failure, `_failed` has the reason."""

    def _start(self, *, final: bool) -> None:
        words = [self._run_folder, *self.options, *(["--final"] if final else [])]
        try:
            with open(self._log_path, "ab") as log:
                self._log_size = log.tell()
                self._process = process = self._begun(words, log, final)
        except ours(OSError) as err:
            self._failed(f"the {self.work} process cannot be started: {err}")
            return
        if not isinstance(process, Ended):
            with tolerating(OSError, AttributeError):  # an old kernel or another system: then polling is needed
                self._fd = os.dup(process.fileno()) if isinstance(process, WarmChild) else os.pidfd_open(process.pid)
        type(self).at_work += 1
        self.was_final, self.started_at = final, self._clock()
        self._effort, self._worked_at, self._seen_at = -1.0, self.started_at, self.started_at
        if not final and not isinstance(process, Ended):  # another process may be waiting for the last one
            _lower_priority(process.pid)

    def _begun(self, words: Sequence[str], log: BinaryIO, final: bool) -> subprocess.Popen[bytes] | WarmChild | Ended:
        """Start a process with these arguments, or do its work here.

        Raises:
          OSError: it cannot be started.
        """
        return start_child(self._command, words, log)

    def _why(self, status: int) -> str:
        """Why a child ended with this status: the signal that ended it, or the last line it wrote."""
        if status < 0:
            by = _signal_name(-status)
            return f"it was ended by {by}" + (", perhaps because memory ran out" if by == "SIGKILL" else "")
        lines: list[str] = []
        with tolerating(OSError), open(self._log_path, "rb") as log:
            size = os.fstat(log.fileno()).st_size
            log.seek(max(self._log_size, size - _LAST_WORDS))
            lines = log.read().decode("utf-8", "replace").split("\n")
        words = next((line.strip() for line in reversed(lines) if line.strip()), "it wrote no reason")
        return f"{words[:300]} (exit status {status})"

    def _let_go(self) -> None:
        self._process = None
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        type(self).at_work -= 1

    def _failed(self, words: str) -> None:
        self.failures += 1
        self.reason = words
        pause = min(self.longest_pause, _FIRST_PAUSE * 2.0 ** min(self.failures - 1, 20))
        self._not_before = self._clock() + pause
        self._report(self.cause, words)


def _signal_name(number: int) -> str:
    with tolerating(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _effort_of(group: int) -> float | None:
    """Processor time of a group of processes, in ticks; None if the system does not report it."""
    ticks = 0.0
    seen = False
    for name in names_in("/proc"):
        if not name.isdigit():
            continue
        with tolerating(OSError, ValueError, IndexError):
            fields = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
            if int(fields[2]) == group:
                ticks += int(fields[11]) + int(fields[12])
                seen = True
    return ticks if seen else None


def _read(path: str) -> bytes:
    """The content of a file in /proc."""
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _lower_priority(pid: int) -> None:
    """Sealing and shipping can wait; training cannot."""
    with tolerating(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, pid, 10)
