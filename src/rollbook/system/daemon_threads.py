"""A pool of threads that the end of a program waits for a few seconds only.

The threads of `concurrent.futures.ThreadPoolExecutor` are joined when the program ends, without a deadline: one that
hangs on a file system keeps the program from ending.

    with DaemonThreads(8, "rollbook-remote") as pool:
        answers = list(pool.map(fetch, keys))
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")
    Work = tuple[Future[Any], Callable[[], Any]]

_AT_THE_END = 5.0
"""Seconds for which the end of the program waits for work that has begun."""


class DaemonThreads(Executor):
    """Threads that run what is submitted; each is started when it is needed.

    Args:
      most: how many threads.
      name: of each thread.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._lock = threading.Lock()
        self._waiting: SimpleQueue[Work | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._has_ended = False
        _open.add(self)

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run this in a thread.

        Raises:
          RuntimeError: after `shutdown`, or no thread can be started.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._has_ended:
                raise RuntimeError(f"{self._name}: work was submitted after shutdown()")
            self._waiting.put((future, lambda: function(*args, **kwargs)))
            if not self._idle.acquire(blocking=False) and len(self._threads) < self._most:
                thread = threading.Thread(target=_work, args=(self._waiting, self._idle), name=self._name, daemon=True)
                thread.start()
                self._threads.append(thread)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more work. Threads end when everything submitted is done.

        Args:
          wait: for that.
          cancel_futures: drop what has not begun.
        """
        with self._lock:
            if not self._has_ended:
                self._has_ended = True
                for _ in self._threads:
                    self._waiting.put(None)
            if cancel_futures:
                self._drop()
        if wait:
            for thread in self._threads:
                thread.join()

    def _drop(self) -> None:
        ends = 0
        while True:
            try:
                work = self._waiting.get_nowait()
            except Empty:
                break
            if work is None:
                ends += 1
            else:
                work[0].cancel()
        for _ in range(ends):
            self._waiting.put(None)

    def __del__(self) -> None:
        for _ in getattr(self, "_threads", ()):
            self._waiting.put(None)


def _work(waiting: SimpleQueue[Work | None], idle: threading.Semaphore) -> None:
    while True:
        try:
            work = waiting.get_nowait()
        except Empty:
            idle.release()
            work = waiting.get()
        if work is None:
            return
        future, call = work
        if future.set_running_or_notify_cancel():
            try:
                result = call()
            except BaseException as err:  # no signal arrives in this thread: it is the caller's
                future.set_exception(err)
            else:
                future.set_result(result)
                del result
        del work, future, call


_open: weakref.WeakSet[DaemonThreads] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open.clear)  # no thread of the parent is in the child


@atexit.register
def _at_the_end() -> None:
    """Wait for work that has begun; what hangs is named and left."""
    until = time.monotonic() + _AT_THE_END
    pools = list(_open)
    for pool in pools:
        pool.shutdown(wait=False, cancel_futures=True)
    left = 0
    for pool in pools:
        for thread in pool._threads:
            thread.join(max(0.0, until - time.monotonic()))
            left += thread.is_alive()
    if left and sys.stderr is not None:
        sys.stderr.write(f"rollbook: {left} answers were still at work after {_AT_THE_END:g} s, and are left undone\n")
