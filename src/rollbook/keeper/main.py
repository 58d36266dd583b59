"""The keeper of one run: three ways to step it until its work is done.

    Keeper(run.folder).run()                    # in a separate process, see `keeper.process`
    Keeper(run.folder).start_thread()           # in the training process
    Keeper(run.folder).run_to_end()             # once, when everything has been written

`keeper.one_run` has the steps. A keeper never outlives its work.
"""

from __future__ import annotations

import sys
import threading
import time

from rollbook.keeper.launch import closed_writers
from rollbook.keeper.one_run import OneRun
from rollbook.keeper.pace import WOKEN_SECONDS
from rollbook.system.guard import tolerating
from rollbook.system.tuning import TUNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_AFTER_FAULT_SECONDS = 1.0
_MOST_FAULTS = 100


class Keeper(OneRun):
    """Looks after one run until nothing is left to do. Has the arguments of `OneRun`."""

    _thread: threading.Thread | None = None
    _wake: threading.Event | None = None

    def run(
        self,
        wait_for: Callable[[float, list[int]], None] | None = None,
        survives: type[BaseException] = Exception,
    ) -> str:
        """Step until the work is done. Returns the phase it ended in.

        Args:
          wait_for: waits up to this many seconds, less when one of these descriptors becomes readable.
          survives: catch what a step raises and try the next one.
        """
        faults = 0
        while True:
            try:
                pause = self.step()
                faults = 0
            except survives as err:
                faults += 1
                self.failed(err)
                if faults >= _MOST_FAULTS:
                    self.leave()
                    return self.phase
                pause = _AFTER_FAULT_SECONDS
            if pause is None:
                return self.phase
            if pause > 0.0:
                (wait_for or wait)(pause, self.filenos())

    def run_to_end(self) -> bool:
        """Do all that can be done for writers that have gone, then stop; at once if another keeper is at work.

        A failing sink is offered its rows for ten seconds; its cursor stays for a later keeper.

        Returns:
          True if every closed writer's rows have reached sinks and Parquet; False if another keeper is at work.
        """
        try:
            return self._run_to_end()
        except BaseException:  # another part of the training process raised: a later call must find nothing locked
            with tolerating(Exception):  # a failure here must not replace that exception
                self.leave()
            raise

    def _run_to_end(self) -> bool:
        drained_by = time.monotonic() + TUNING.drain_here_seconds
        self.wait_until_alone(TUNING.drain_here_seconds)
        while True:
            pause = self.step()
            if pause is None:
                return self.phase == "done" and not self.left_undone()
            is_late = self.others_live and time.monotonic() >= drained_by
            if self.is_idle or is_late:
                was_beside_others = self.others_live
                self.leave()
                # A writer that ended while we held the lock has seen it taken, and started no keeper.
                if is_late or not was_beside_others or self.others_live_now():
                    return self.is_idle
            pause = min(pause, 0.05 if self._pace.awaited is None else WOKEN_SECONDS)
            if not self._rules.wait(pause):
                wait(pause, self.filenos())

    def start_thread(self) -> Keeper:
        """Run in a daemon thread of this process. Returns itself."""
        self._pace.is_woken_by_children = False
        wake = self._wake = threading.Event()

        def wait_for(pause: float, _descriptors: list[int]) -> None:
            wake.wait(pause)
            wake.clear()

        # This thread receives no signals: a SystemExit in it comes from a sink, and nothing would start the thread
        # again.
        arguments = (wait_for, BaseException)
        self._thread = threading.Thread(target=self.run, args=arguments, name="rollbook-keeper", daemon=True)
        self._thread.start()
        return self

    def finish(self, seconds: float, writers: Collection[str] | None = None) -> bool:
        """Wait up to `seconds` for a keeper thread to deliver all closed writers' rows. True when it has.

        Args:
          writers: see `launch.wait_done`.
        """
        until = time.monotonic() + seconds
        wanted = closed_writers(self.folder) if writers is None else set(writers)
        while self._thread is not None and self._thread.is_alive() and time.monotonic() < until:
            if wanted <= self.complete:
                return True
            if self._wake is not None:
                self._wake.set()
            self._thread.join(0.02)
        return wanted <= self.complete


def wait(seconds: float, descriptors: list[int]) -> None:
    """Sleep, but wake when a watched writer ends."""
    if not descriptors or sys.platform == "win32":
        time.sleep(seconds)
        return
    import select

    poller = select.poll()
    for descriptor in descriptors:
        poller.register(descriptor, select.POLLIN)
    poller.poll(seconds * 1000)
