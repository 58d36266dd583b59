"""Runs that the function of a Ray task opens and does not finish: they end with the function.

Ray keeps what the function raised for itself, and the process goes on to other tasks or is killed. Runs that an actor
opens are the actor's, which has no such end.
"""

from __future__ import annotations

import gc
import sys
from types import TracebackType

from rollbook.run.failure import describe, status_of
from rollbook.run.tune_trials import end_runs
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from rollbook.run.open_run import OpenRun

_WORKER = "ray._private.worker"
_AT_THE_END = "record_task_log_end"
"""The method of Ray's worker that is called when a function has returned or raised (Ray 2.60)."""
_MOST_FRAMES = 20
"""Of a traceback, from the function's frame up to that of Ray which has caught the exception."""

_of_task: list[OpenRun] = []


def watch_task(run: OpenRun) -> None:
    """End the run with the task whose function opens it now; nothing if none does."""
    worker: Any = getattr(sys.modules.get(_WORKER), "global_worker", None)
    function = _function_of_task(sys._getframe())
    ends: Callable[..., object] | None = getattr(worker, _AT_THE_END, None)
    if function is None or ends is None or not worker.actor_id.is_nil():
        return
    _of_task.append(run)
    if _AT_THE_END in vars(worker):  # a second run of this task
        return

    def end(*arguments: object) -> object:
        with tolerating(Exception):  # Ray's own end of the task comes, whatever there is with ours
            delattr(worker, _AT_THE_END)
            error = sys.exc_info()[1] or _raised_by(function)
            end_runs(_of_task, "finished" if error is None else status_of(type(error)), describe(error))
        return ends(*arguments)

    setattr(worker, _AT_THE_END, end)


def _function_of_task(frame: FrameType | None) -> FrameType | None:
    """The frame that Ray has called, if this thread is in one."""
    below = None
    while frame is not None:
        if frame.f_globals.get("__name__") == _WORKER and frame.f_code.co_name == "main_loop":
            return below
        below, frame = frame, frame.f_back
    return None


def _raised_by(function: FrameType) -> BaseException | None:
    """The exception by which a function has ended. Ray has put it aside, and only its traceback knows the frame.

    It has gone through a frame above. The traceback of one that the function has caught and kept begins with its own.
    """
    tracebacks = [holder for holder in gc.get_referrers(function) if isinstance(holder, TracebackType)]
    for traceback in tracebacks:
        above: object = traceback
        for _ in range(_MOST_FRAMES):
            holders = gc.get_referrers(above)
            raised = next((e for e in holders if isinstance(e, BaseException) and e.__traceback__ is above), None)
            if raised is not None:
                if getattr(above, "tb_frame", None) is not function:
                    return raised
                break
            above = next((tb for tb in holders if isinstance(tb, TracebackType) and tb.tb_next is above), None)
            if above is None:
                break
    return None
