"""Checks from the training process whether the run's keeper is at work. A keeper that died or hangs is replaced.

    watch = KeeperWatch(run.folder, report)
    watch.look()                         # call every second or so from the run's thread; it checks every two seconds

A check tries a lock and reads one small file of /proc: it wakes no thread and does not delay `log`.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` itself costs an import of enum
import os
import time

from rollbook.keeper.launch import is_kept, launch
from rollbook.keeper.own_files import Lock, keeper_folder, state_path
from rollbook.system.files import is_folder, read_json
from rollbook.system.guard import tolerating
from rollbook.system.liveness import Watch, is_alive
from rollbook.system.tuning import TUNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_HUNG_LOOKS = 30
"""A keeper that never ran between this many checks (a minute) hangs: a healthy one wakes up at least every second.
Checks are counted, not seconds: while the whole machine is suspended nothing is checked."""
_MOST_STARTS = 8
_LONGEST_PAUSE = 300.0


class KeeperWatch:
    """Watches the keeper of one run.

    Args:
      run_folder: the run's folder.
      report: takes (cause, words, is_lasting): what was found; lasting if nothing more is tried.
      clock: seconds, monotonic.
    Attributes:
      starts: how many keepers that had died or hung were replaced.
    """

    def __init__(
        self,
        run_folder: str | os.PathLike[str],
        report: Callable[[str, str, bool], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._report, self._clock = os.path.abspath(os.fspath(run_folder)), report, clock
        self._due = clock() + TUNING.keeper_look_seconds
        self._in_a_row = 0  # starts without a keeper that stayed for a minute
        self._looks_at_work = 0
        self._seen: object = None  # which keeper, and how often it had run
        self._still = 0  # checks since it ran
        self._replaced: object = None  # the keeper whose end was reported
        self.starts = 0

    def look(self, opener: Mapping[str, object] | None = None) -> None:
        """Check whether a keeper is at work, if it is time; start one if there is none.

        Args:
          opener: in a forked child: the process that opened the run. While it lives, it does the checks.
        Raises:
          OSError: a keeper cannot be started.
        """
        now = self._clock()
        if now < self._due or self._in_a_row > _MOST_STARTS:
            return
        self._due = now + TUNING.keeper_look_seconds
        if opener is not None and is_alive(opener) is not False:
            return
        if not is_folder(self._folder):  # removed: do not make it again
            return
        if is_kept(self._folder) and not self._ended_as_hung():
            self._looks_at_work += 1
            if self._looks_at_work >= _HUNG_LOOKS:
                self._in_a_row = 0
            return
        self._start_another(now)

    def _start_another(self, now: float) -> None:
        self._looks_at_work = self._still = 0
        state = read_json(state_path(self._folder))
        died = (state.get("pid"), state.get("start_time")) if state.get("phase") in ("running", "waiting") else None
        self._in_a_row += 1
        if self._in_a_row > _MOST_STARTS:
            self._report(
                "no_keeper",
                f"the run's keeper ended {_MOST_STARTS} times in a row soon after its start, and is not started again: "
                "nothing is sealed, forwarded or shipped until finish(). What is logged is safe in the journal. Its "
                f"reason is in {os.path.join(keeper_folder(self._folder), 'log')}",
                True,
            )
            return
        self._due = now + min(_LONGEST_PAUSE, TUNING.keeper_look_seconds * 2.0 ** (self._in_a_row - 1))
        # On a slow machine another start may follow before the first new keeper has written its own state.
        if launch(self._folder) and died is not None and died != self._replaced:
            self._replaced = died
            self.starts += 1
            self._report(
                "keeper_restarted",
                "the run's keeper had ended or hung while the run goes on (killed, stopped, or out of memory); "
                "another one was started. No row is lost by that",
                False,
            )

    def _ended_as_hung(self) -> bool:
        """Whether the keeper has not run for a minute, and was killed for that."""
        holder = read_json(Lock(self._folder).path)
        runs = _times_run(holder.get("pid"))
        seen = (holder.get("pid"), holder.get("start_time"), runs)
        if runs is None or holder.get("pid") == os.getpid() or seen != self._seen:
            self._seen, self._still = seen, 0
            return False
        self._still += 1
        if self._still < _HUNG_LOOKS:
            return False
        self._still = 0
        if _end(holder):
            return True
        self._report(
            "keeper_hangs",
            f"the run's keeper (process {holder['pid']}) hangs, and the system does not end it: the disk or a file "
            "system it waits for may hang. What is logged goes to the journal; sealing and forwarding wait",
            False,
        )
        return False


def _times_run(pid: object) -> int | None:
    """How often a process (its main thread) was scheduled; None if the system does not report it."""
    if type(pid) is not int:
        return None
    with tolerating(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = file.read().splitlines()
        return sum(int(line.split()[1]) for line in lines if b"voluntary_ctxt_switches:" in line)
    return None


def _end(holder: dict[str, Any]) -> bool:
    """Kill exactly this process. Returns whether it is gone. If the system cannot end it (a file system that hangs), it
    stays and keeps its lock."""
    with Watch(holder) as watch, tolerating(OSError):
        if watch.dead():
            return True
        os.kill(int(holder["pid"]), _signal.SIGKILL)
        return watch.wait(1.0)
    return False
