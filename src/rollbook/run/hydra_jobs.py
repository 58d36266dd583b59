"""Runs that a job of Hydra opens and does not finish: if the job fails, they have crashed with it.

Hydra keeps what a job raises. Of a single job it then leaves by `sys.exit(1)`, which hides the exception from what runs
at the end of a process; of a sweep it goes on to the next job.
"""

from __future__ import annotations

import sys

from rollbook.run.failure import describe, status_of
from rollbook.run.tune_trials import end_runs
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rollbook.run.open_run import OpenRun

_MODULE, _FUNCTION = "hydra.core.utils", "run_job"


def watch_job(run: OpenRun) -> None:
    """End the run with the job that opens it now, if that fails; nothing outside of a job."""
    frame = sys._getframe()
    while frame.f_code.co_name != _FUNCTION or frame.f_globals.get("__name__") != _MODULE:
        if frame.f_back is None:
            return
        frame = frame.f_back
    with tolerating(AttributeError):  # another release of Hydra; this is 1.3
        callbacks: list[Any] = frame.f_locals["callbacks"].callbacks if "callbacks" in frame.f_locals else []
        own = [callback for callback in callbacks if isinstance(callback, _AtTheEnd)]
        if not own:
            own = [_AtTheEnd(callbacks)]
            callbacks += own
        own[0].runs.append(run)


class _AtTheEnd:
    """One of the callbacks of Hydra, for the job at work; it leaves their list as that ends.

    Args:
      callbacks: the list.
    """

    def __init__(self, callbacks: list[Any]) -> None:
        self.runs: list[OpenRun] = []
        self._callbacks = callbacks

    def on_job_end(self, job_return: Any, **_: object) -> None:
        """The job has returned or raised."""
        self._callbacks.remove(self)
        if getattr(job_return.status, "name", "") == "FAILED":
            error = job_return._return_value
            end_runs(self.runs, status_of(type(error)), describe(error))
        for run in self.runs:  # what ends the process, such as the exception of another job, does not end these
            run._parts.followed_at = run._program_rows()

    def __getattr__(self, name: str) -> Callable[..., None]:
        """The other events are nothing to it."""
        if name.startswith("on_"):
            return lambda **_: None
        raise AttributeError(name)
