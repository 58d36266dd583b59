"""Runs that are opened in a process of multiprocessing: by `Process`, `Pool`, `ProcessPoolExecutor` or joblib.

Such a process leaves by `os._exit`, and atexit is not called. Its runs end with its function, by what the function
raised. A pool ends its workers with SIGTERM; one that waits for its next task then has finished its runs. What a task
raises, a pool's worker catches and sends home: a run that the task has opened has crashed by it, whatever the worker
does afterwards.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # see ending.py
import os
import sys
import time
import weakref
from _thread import get_ident, start_new_thread
from multiprocessing.util import Finalize

from rollbook.run.failure import describe, leave_by, status_of
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType
    from typing import Any, Protocol

    from rollbook.run.open_run import OpenRun

    class _FinishAll(Protocol):
        def __call__(self, status: str, failure: dict[str, Any] | None, waits: bool = ...) -> None: ...


_AFTER_ALL_OTHERS = -1_000
"""The priority of our finalizer; multiprocessing's own queues and pools have 15 to -5."""
_WORKERS = {
    "multiprocessing.pool": "worker",
    "multiprocessing.process": "_bootstrap",
    "concurrent.futures.process": "_process_worker",
    "joblib.externals.loky.process_executor": "_process_worker",
}
"""Module -> the function by which a worker calls those of the program."""
_TASKS: dict[str, tuple[str, Callable[[Mapping[str, Any]], object]]] = {
    "multiprocessing.pool": ("ExceptionWithTraceback", lambda names: (names["job"], names["i"])),
    "concurrent.futures.process": ("_ExceptionWithTraceback", lambda names: names["call_item"].work_id),
    "joblib.externals.loky.process_executor": ("_ExceptionWithTraceback", lambda names: names["call_item"].work_id),
}
"""Module -> what a worker makes of an exception of a task; what identifies the task, by the worker's variables."""
_OF_POOLS = ("multiprocessing.", "concurrent.futures.", "joblib.", "threading")
_BETWEEN_TASKS = ("multiprocessing.queues", "multiprocessing.util")
"""Modules that a worker calls for its next task, for a result and at its end; what they call is not its task."""
_FIRST_LOOK = 0.05

_watched = 0
_wakeup = -1
_is_heard = False
_task: object = None
_of_task: weakref.WeakSet[OpenRun] = weakref.WeakSet()
_heard_of: set[str] = set()


def watch(finish_all: _FinishAll, handler: Callable[..., object]) -> None:
    """Make sure that the runs of this process are ended. A second call does nothing.

    Args:
      finish_all: ends them, see `ending.finish_all`.
      handler: of signals, which ends them, too. Signals for which the program has another one are left to it.
    """
    global _watched
    if _watched != os.getpid():
        _watched = os.getpid()
        Finalize(None, end, args=(finish_all,), exitpriority=_AFTER_ALL_OTHERS)
        with tolerating(ValueError, AttributeError):  # not in the main thread, or another system
            _hear(handler)


def watch_task(run: OpenRun) -> None:
    """Let the run have crashed if the task of a pool that opens it now raises; nothing if none does."""
    global _task, _of_task
    module, task = _task_of(sys._getframe())
    if task is None:
        return
    if task != _task:
        _task, _of_task = task, weakref.WeakSet()
    _of_task.add(run)
    if module in _heard_of:
        return
    _heard_of.add(module)
    with tolerating(AttributeError):  # another release of Python or joblib
        name = _TASKS[module][0]
        wrap = getattr(sys.modules[module], name)

        def note(error: BaseException, *more: object) -> object:
            with tolerating(Exception):  # what is sent home comes first
                if _task_of(sys._getframe())[1] == _task:
                    for each in list(_of_task):
                        leave_by(each, error)
                        each._note_failure()  # now: joblib kills the workers of a sweep in which one task has failed
            return wrap(error, *more)

        setattr(sys.modules[module], name, note)


def _task_of(frame: FrameType | None) -> tuple[str, object]:
    """The module of the worker that has called this frame, and its task; ("", None) outside of one."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module in _TASKS and frame.f_code.co_name == _WORKERS[module]:
            with tolerating(Exception):  # another release
                return module, _TASKS[module][1](frame.f_locals)
            break
        frame = frame.f_back
    return "", None


def note_heard() -> None:
    """The handler of a signal has been called."""
    global _is_heard
    _is_heard = True


def waits_for_work(frame: FrameType | None) -> bool:
    """Whether the worker is between two tasks, or after the last: nothing of the program is being called."""
    is_at_work = False
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if frame.f_code.co_name == _WORKERS.get(module):
            return not is_at_work
        if module in _BETWEEN_TASKS:
            is_at_work = False
        elif not module.startswith(_OF_POOLS):
            is_at_work = True
        frame = frame.f_back
    return False


def end(finish_all: _FinishAll) -> None:
    """End the runs of this process by what its function raised, which passes through multiprocessing at this moment."""
    error = sys.exc_info()[1]
    finish_all("finished" if error is None else status_of(type(error)), describe(error), waits=False)


def leave_in_child() -> None:
    """In a forked child: its signals are not those of this process."""
    global _wakeup
    if _wakeup != -1:
        _wakeup = -1
        _signal.set_wakeup_fd(-1)


def _hear(handler: Callable[..., object]) -> None:
    """Make sure that the main thread hears the signals of this handler.

    Python calls a handler between two instructions. A signal that comes just before the main thread waits for its next
    task is not heard before there is one: the worker would live on, and the pool that ends it wait for ever.
    """
    global _wakeup
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = _signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    if before != -1:  # the program's own
        _signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)
        return
    _wakeup = writing
    start_new_thread(_listen, (reading, get_ident(), handler))


def _listen(reading: int, main: int, handler: Callable[..., object]) -> None:
    def is_unheard(number: int) -> bool:
        return _signal.getsignal(number) is handler and not _is_heard

    while number := os.read(reading, 1):
        seconds = _FIRST_LOOK
        while is_unheard(number[0]):
            time.sleep(seconds)
            seconds = min(2 * seconds, 1.0)
            if is_unheard(number[0]):
                _signal.pthread_kill(main, number[0])  # what it waits for is interrupted
