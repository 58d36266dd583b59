"""Exceptions that come up inside rollbook without rollbook having raised them: at every line, or at any moment.

`at_each_line` is the exhaustive way: a trace function raises at the first line or call event inside rollbook of one
call, at the second of the next, and so on until a call goes through. `at_random_moments` is a timer whose signal
handler raises, as time limits and pre-emption do.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import rollbook

ROLLBOOK = os.path.dirname(os.path.abspath(rollbook.__file__)) + os.sep


class Limit(Exception):
    """What a program's own handler raises."""


class Preempted(OSError):
    """The same by a class that rollbook handles where the system raises it."""


KINDS: tuple[Callable[[], BaseException], ...] = (
    KeyboardInterrupt,
    lambda: Limit("time is up"),
    lambda: ValueError("raised by a handler"),
    lambda: TimeoutError("raised by a handler"),
    lambda: Preempted(28, "raised by a handler"),
    lambda: KeyError("raised by a handler"),
)
"""Exceptions a handler may raise; the last ones are of types that rollbook meets in its own work."""


def interrupt_at(
    event_number: int, error: BaseException, call: Callable[[], object], rooms: tuple[str, ...] = ("",)
) -> tuple[bool, str]:
    """Call `call` and raise `error` at its n-th line or call event inside rollbook, or the first after it that is in no
    finalizer.

    Args:
      rooms: count the events of these rooms alone ("journal/"); their paths begin so.
    Returns:
      (whether there were so many events, where it was raised).
    Raises:
      AssertionError: it was raised and something else, or nothing, came out.
    """
    wanted = tuple(ROLLBOOK + room for room in rooms)
    seen = 0
    place = ""

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal seen, place
        code = frame.f_code
        if not code.co_filename.startswith(wanted) or code.co_name == "<module>":
            return None
        # A generator that is let go half-way is called once more; what is raised then, Python itself keeps to itself.
        resumes = event == "call" and code.co_flags & inspect.CO_GENERATOR
        if event in ("call", "line") and not resumes:
            seen += 1
            if seen >= event_number and not place and not _is_finalizing(frame):  # else at the next one
                place = f"{code.co_filename.removeprefix(ROLLBOOK)}:{frame.f_lineno} {code.co_name} ({event})"
                raise error
        return trace

    came_out: BaseException | None = None
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        next(_apart(call))
    except BaseException as err:
        came_out = err
    finally:
        sys.settrace(before)
    if came_out is not None and came_out is not error:
        raise AssertionError(
            f"{error!r} was raised at {place}, came to {_end_of(error)}, and {came_out!r} came out"
        ) from came_out
    if place and came_out is None:
        raise AssertionError(f"{error!r} was raised at {place} and eaten at {_end_of(error)}")
    if came_out is not None:
        came_out.__traceback__ = None
    return bool(place), place


def _apart(call: Callable[[], object]) -> Iterator[object]:
    """The call in a generator, which has its own record of the exception that is being handled.

    CPython (3.11 to 3.13) leaves an `except` block in two steps. What a trace function raises between them, at the line
    of a `return` in the block, keeps the block's exception "being handled" in the caller (`sys.exc_info()`), for good.
    Signal handlers do not run there.
    """
    yield call()


def _is_finalizing(frame: FrameType | None) -> bool:
    """Whether a finalizer is at work: what is raised there, Python itself keeps to itself."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def _end_of(error: BaseException) -> str:
    """The last line that an exception came to."""
    trace = error.__traceback__
    return "" if trace is None else f"{trace.tb_frame.f_code.co_filename.removeprefix(ROLLBOOK)}:{trace.tb_lineno}"


@contextlib.contextmanager
def at_random_moments(make: Callable[[], BaseException], seconds: Callable[[], float]) -> Iterator[Callable[[], None]]:
    """A timer whose handler raises; the function given out starts it anew, and after the block it is off."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        raise make()

    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield lambda: signal.setitimer(signal.ITIMER_REAL, seconds()) and None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
