"""One process that looks after all runs of a user and host. Each run has its `OneRun`, stepped when it is due.

One thread steps, the others wait. When a step takes longer than a moment (a file system that hangs, a sink with a
backlog), its thread stays in it and another thread steps the other runs. So no run waits for another for more
than two seconds. Runs with services from other packages are not handled here.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from heapq import heappop, heappush

from rollbook.keeper.child import command_of
from rollbook.keeper.host import probes
from rollbook.keeper.one_run import OneRun
from rollbook.keeper.sealing import Sealing
from rollbook.keeper.shared_keeper_files import SharedKeeper
from rollbook.keeper.shipping import Shipping
from rollbook.keeper.warm_children import WarmChildren
from rollbook.system.tuning import TUNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType
    from typing import Any

_WATCH_SECONDS = 0.5
_ENTRIES_SECONDS = 5.0
_MOST_FAULTS = 100
_SHARE, _LONGEST_STRETCH = 0.04, 5.0
"""The share of one core beyond which runs are checked less often than each second, and the largest factor."""
_GRID_SECONDS = 0.1
"""Runs that are due within this time are stepped together: waking up costs more than a check."""
_FEED_STRETCHES = 4
"""If runs are checked less often, sinks get rows at every fourth check."""
_LEAST_SHIPPING = 8
"""This many runs may ship at once, or two a core: a hundred processes at once would overload the machine."""
_SAMPLE_SECONDS = 0.5
"""How long measurements of the machine are shared between runs."""


class _KeptRun:
    """One run and its state."""

    __slots__ = ("busy", "called", "due", "entry", "faults", "keeper", "stamp", "watched")

    def __init__(self, keeper: OneRun, entry: str, stamp: tuple[int, int]) -> None:
        self.keeper, self.entry, self.stamp = keeper, entry, stamp
        self.due, self.busy, self.called, self.faults = 0.0, False, False, 0
        self.watched: frozenset[int] = frozenset()


class ManyRuns:
    """The loop of the shared keeper.

    Args:
      shared_keeper: where it learns of runs.
    Attributes:
      steps: how often a run was stepped.
      listens: take SIGTERM and SIGUSR1; not in a process that belongs to others.
      promotions: how often another thread took over from one that hung in a step.
    """

    def __init__(self, shared_keeper: SharedKeeper) -> None:
        self._shared_keeper = shared_keeper
        self._runs: dict[str, _KeptRun] = {}  # by entry
        self._due: list[tuple[float, int, _KeptRun]] = []
        self._count = 0
        self._lock = threading.Lock()
        self._leader = 0
        self._step_began = 0.0  # 0: no step is under way
        self._ended = threading.Event()
        self._looked_at_entries = -1e9
        self._alone_since: float | None = None
        self._read = self._write = -1
        self._poll: Any = None
        self._owners: dict[int, _KeptRun] = {}
        self._stretch, self._spent, self._spent_since = 1.0, 0.0, time.monotonic()
        self.listens = True  # to signals: not where it runs in another program's process
        self.steps = self.promotions = 0

    def run(self) -> bool:
        """Look after runs until there are none. False if another keeper already does."""
        if not self._shared_keeper.acquire():
            return False
        self._shared_keeper.remove_old()
        self._listen()
        self._promote()
        while not self._ended.wait(_WATCH_SECONDS):
            began = self._step_began
            if began and time.monotonic() - began > TUNING.step_seconds:
                with self._lock:
                    if self._step_began == began:  # still in that step
                        self.promotions += 1
                        self._step_began = 0.0
                        self._promote()
        return True

    def _listen(self) -> None:
        import select

        self._read, self._write = os.pipe()
        self._poll = select.poll()
        self._poll.register(self._read, select.POLLIN)
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        if not self.listens:
            return
        for name in ("SIGINT", "SIGHUP"):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        # Signal numbers arrive in the pipe whichever thread runs: a main thread that hangs loses none.
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, _noted)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def _promote(self) -> None:
        """Let a new thread lead; the former one ends when its step does."""
        self._leader += 1
        threading.Thread(target=self._lead, args=(self._leader,), name="rollbook-keeper", daemon=True).start()

    # -- the leading thread

    def _lead(self, number: int) -> None:
        faults = 0
        while number == self._leader:
            try:
                if not self._round(number):
                    return
                faults = 0
            except Exception as err:  # a bug of ours: no other process looks after these runs
                faults += 1
                sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} the keeper failed: {err!r}; it continues\n")
                if faults >= _MOST_FAULTS:
                    self._ended.set()  # the runs start another one
                    return
                time.sleep(TUNING.fault_seconds)

    def _round(self, number: int) -> bool:
        """Step the run that is due, or wait for one. False if this thread has nothing more to do."""
        now = time.monotonic()
        if now - self._looked_at_entries >= _ENTRIES_SECONDS:
            self._look_at_entries(now)
        kept_run = self._next(now)
        if kept_run is not None:
            return self._step(kept_run, number)  # False: it took too long, and another thread has taken over
        if not self._runs and self._has_left(now):
            self._ended.set()
            return False
        self._wait(now)
        return True

    def _next(self, now: float) -> _KeptRun | None:
        while self._due and self._due[0][0] <= now:
            due, _, kept_run = heappop(self._due)
            if kept_run.due == due and not kept_run.busy and self._runs.get(kept_run.entry) is kept_run:
                return kept_run
        return None

    def _schedule(self, kept_run: _KeptRun, due: float) -> None:
        due = -(-due // _GRID_SECONDS) * _GRID_SECONDS if due > time.monotonic() else due
        kept_run.due = due
        self._count += 1
        heappush(self._due, (due, self._count, kept_run))

    def _step(self, kept_run: _KeptRun, number: int) -> bool:
        """One step of one run. False if this thread no longer leads."""
        keeper, now = kept_run.keeper, time.monotonic()
        if not kept_run.called and keeper.rests():
            self._schedule(kept_run, -(-(now + 0.5) // 1.0))  # all such checks run together, each full second
            return True
        kept_run.called, kept_run.busy = False, True
        self.steps += 1
        self._step_began = now
        pause: float | None
        keeper.feed_seconds = _FEED_STRETCHES * self._stretch if self._stretch > 1.0 else 0.0
        cpu = time.thread_time()
        try:
            pause = keeper.step()
            kept_run.faults = 0
        except Exception as err:
            kept_run.faults += 1
            keeper.failed(err)
            pause = TUNING.fault_seconds
            if kept_run.faults >= _MOST_FAULTS:
                keeper.leave()
                pause = None
        self._spent += time.thread_time() - cpu
        with self._lock:
            leads = number == self._leader
            if leads:
                self._step_began = 0.0
            kept_run.busy = False
            if pause is None:
                self._let_go(kept_run)
            else:
                self._schedule(kept_run, time.monotonic() + (pause if pause < 1.0 else pause * self._how_rarely()))
            self._watch(kept_run, () if pause is None else keeper.filenos())
        if not leads:
            self._wake()  # the leader may sleep, and does not know when this run is due
        return leads

    def _watch(self, kept_run: _KeptRun, descriptors: Iterable[int]) -> None:
        """Wake up when one of these descriptors becomes readable; stop watching the run's former ones."""
        import select

        new = frozenset(descriptors)
        for fd in kept_run.watched - new:
            if self._owners.get(fd) is kept_run:
                del self._owners[fd]
                self._poll.unregister(fd)
        for fd in new:  # also a known number: it may have been closed and reused by another process
            self._poll.register(fd, select.POLLIN)
            self._owners[fd] = kept_run
        kept_run.watched = new

    def _how_rarely(self) -> float:
        """Seconds between checks: 1.0, as in a keeper of one run; more if there are too many runs for that."""
        passed = time.monotonic() - self._spent_since
        if passed >= 1.0:
            share, self._spent, self._spent_since = self._spent / passed, 0.0, time.monotonic()
            if share > _SHARE:
                self._stretch = min(_LONGEST_STRETCH, self._stretch * 1.25)
            elif share < 0.7 * _SHARE:
                self._stretch = max(1.0, self._stretch / 1.1)
        return self._stretch

    def _let_go(self, kept_run: _KeptRun) -> None:
        """A run is done, or belongs to another keeper. If a process has asked for it in between, it is looked after
        again."""
        self._runs.pop(kept_run.entry, None)
        try:
            about = os.stat(kept_run.entry)
            if (about.st_ino, about.st_mtime_ns) == kept_run.stamp:
                os.unlink(kept_run.entry)
            else:
                self._looked_at_entries = -1e9
        except OSError:
            return

    def _look_at_entries(self, now: float) -> None:
        self._looked_at_entries = now
        if Sealing.warm is not None:
            Sealing.warm.trim()
        present = set()
        for entry, stamp, folder in self._shared_keeper.entries():
            present.add(entry)
            kept_run = self._runs.get(entry)
            if kept_run is None:
                keeper = OneRun(folder)
                keeper.reports.signal_name, keeper.reports.entry = "USR1", entry
                kept_run = self._runs[entry] = _KeptRun(keeper, entry, stamp)
                self._schedule(kept_run, now)
            elif kept_run.stamp != stamp:
                kept_run.stamp, kept_run.called = stamp, True
                if not kept_run.busy:
                    self._schedule(kept_run, now)
        for entry in [entry for entry, kept_run in self._runs.items() if entry not in present and not kept_run.busy]:
            kept_run = self._runs.pop(entry)
            with self._lock:
                self._watch(kept_run, ())
            kept_run.keeper.leave()  # a trainer wants a separate keeper for it

    def _has_left(self, now: float) -> bool:
        """Leave if there was nothing to do for a while, unless a run asks for this keeper at the last moment."""
        if self._alone_since is None:
            self._alone_since = now
        if now - self._alone_since < TUNING.linger_seconds:
            return False
        self._shared_keeper.release()
        self._look_at_entries(now)
        if not self._runs or not self._shared_keeper.acquire():
            return True
        self._alone_since = None
        return False

    def _wait(self, now: float) -> None:
        import select

        if self._runs:
            self._alone_since = None
        until = self._looked_at_entries + _ENTRIES_SECONDS
        until = min(until, self._due[0][0] if self._due else now + _ENTRIES_SECONDS)
        if not self._runs:
            until = min(until, now + TUNING.linger_seconds / 4)
        for fd, event in self._poll.poll(max(0.0, until - now) * 1000):
            if fd == self._read:
                self._read_signals()
                continue
            with self._lock:
                kept_run = self._owners.pop(fd, None)
                if kept_run is None:  # a thread that hung in a step has come back; its run has another one
                    continue
                self._poll.unregister(fd)  # heard; the next step says what to watch from then on
            if event & (select.POLLIN | select.POLLHUP):  # a writer has ended
                kept_run.watched -= {fd}
                kept_run.called = True
                self._schedule(kept_run, time.monotonic())

    def _read_signals(self) -> None:
        try:
            numbers = os.read(self._read, 4096)
        except BlockingIOError:
            return
        if signal.SIGTERM in numbers:
            for kept_run in self._runs.values():
                kept_run.keeper.hurry()
                kept_run.called = True  # also where it rests, for up to ten seconds
                if not kept_run.busy:
                    self._schedule(kept_run, time.monotonic())
        if signal.SIGUSR1 in numbers:
            self._look_at_entries(time.monotonic())

    def _wake(self) -> None:
        try:
            os.write(self._write, b"\0")
        except OSError:
            return


def _noted(_number: int, _frame: FrameType | None) -> None:
    """The signal's number is in the pipe; nothing else is needed."""


def main(folder: str) -> None:
    """Be the shared keeper of this user and environment; ends at once if there is one."""
    Sealing.most_at_once, Sealing.options = 2, ("--at-once=2",)
    Sealing.warm = WarmChildren(command_of(Sealing.module))
    Shipping.most_at_once = max(_LEAST_SHIPPING, 2 * (os.cpu_count() or 1))
    probes.share_seconds = _SAMPLE_SECONDS
    ManyRuns(SharedKeeper(folder)).run()
    sys.stdout.flush()
    os._exit(0)  # a thread that hangs in a file system must not keep the process
