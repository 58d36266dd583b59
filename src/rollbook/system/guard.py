"""Distinguishes rollbook's own failures from exceptions that other code raises while rollbook runs.

    with tolerating(OSError):   # swallows a full disk, but not a time limit that fires meanwhile
        os.unlink(path)

    with tolerating(OSError) as missed:
        size = os.stat(path).st_size
    if missed:                  # the exception is not kept, so that its frames are released at once
        return 0

    with handled_by(writer.failed, "write run.json"):   # writer.failed("write run.json", err)
        manifest.write(folder, about)

    with raising(lambda err: Damaged(f"{path} makes no sense: {err}"), KeyError, ValueError):
        index = json.loads(text)["index"]

    except ours(OSError) as err:   # for longer handlers; a time limit passes through
        return f"{path} cannot be read ({err})"

A signal handler runs between any two instructions. Its exception may pass through rollbook, but belongs to the program
that installed the handler. The type does not show this (it may be a ValueError or a TimeoutError). The traceback does:
the handler's frame was called with the frame that it interrupted as an argument.
"""

from __future__ import annotations

import os
import sys

from rollbook.errors import LoggingFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Self, TypeVar

    E = TypeVar("E", bound=Exception)

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""The folder of rollbook's own code."""

_WITHOUT_WORDS = (MemoryError, LookupError, StopIteration, AssertionError, GeneratorExit)
"""Exceptions that the interpreter and rollbook raise without a message."""


def is_foreign(err: BaseException) -> bool:
    """Whether `err`, caught inside rollbook, was raised by code that rollbook did not call.

    True for anything that is not an `Exception` (KeyboardInterrupt, SystemExit), for exceptions of a signal handler or
    a trace function, and for exceptions set from another thread (`PyThreadState_SetAsyncExc`), which arrive in a frame
    of rollbook without a message. False for failures of rollbook, of the system, and of the values it was given.

    A handler written in C leaves no frame; its exception is recognised only if it is not an `Exception`.
    """
    if not isinstance(err, Exception):
        return True
    trace = err.__traceback__
    if trace is None:
        return False
    interrupted, others = trace.tb_frame, []
    while trace.tb_next is not None:
        trace = trace.tb_next
        if _was_called_with(trace.tb_frame, interrupted):
            return True
        interrupted = trace.tb_frame
        if not interrupted.f_code.co_filename.startswith(PACKAGE):
            others.append(interrupted.f_code)
    if others:
        handlers = _handlers()
        if any(code in handlers for code in others):
            return True
    is_bare = not err.args and not isinstance(err, _WITHOUT_WORDS)
    return is_bare and interrupted.f_code.co_filename.startswith(PACKAGE)


def ours(*kinds: type[E]) -> tuple[type[E], ...]:
    """`except ours(OSError) as err:` catches the same as `except OSError as err:`, but no exceptions from outside.

    Python evaluates it only after an exception, so a block without one has no cost.
    """
    err = sys.exc_info()[1]
    return () if err is None or not isinstance(err, kinds) or is_foreign(err) else kinds


class tolerating:
    """`with tolerating(OSError):` swallows failures of these kinds, and lets exceptions from outside pass.

    The `as` value is true once something was swallowed.
    """

    __slots__ = ("_kinds", "_missed")

    def __init__(self, *kinds: type[Exception]) -> None:
        self._kinds, self._missed = kinds, False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, err: BaseException | None, _trace: object) -> bool:
        self._missed = err is not None and isinstance(err, self._kinds) and not is_foreign(err)
        return self._missed

    def __bool__(self) -> bool:
        return self._missed


class handled_by:
    """`with handled_by(failed, "close"):` passes failures to a function: `failed("close", err)`.

    Exceptions from outside pass through, and so do those of strict=True (`LoggingFailed`).

    Args:
      answer: called with `arguments` and the exception; its own exceptions pass through.
      kinds: which exceptions it handles.
    """

    __slots__ = ("_answer", "_arguments", "_kinds")

    def __init__(
        self,
        answer: Callable[..., object],
        *arguments: object,
        kinds: type[Exception] | tuple[type[Exception], ...] = Exception,
    ) -> None:
        self._answer, self._arguments, self._kinds = answer, arguments, kinds

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, err: BaseException | None, _trace: object) -> bool:
        if err is None or not isinstance(err, self._kinds) or isinstance(err, LoggingFailed) or is_foreign(err):
            return False
        self._answer(*self._arguments, err)
        return True


class raising:
    """`with raising(lambda err: Damaged(f"… {err}"), ValueError):` replaces failures of these kinds by another error.

    Exceptions from outside pass through unchanged.

    Args:
      replaced: returns the error to raise.
      kinds: which exceptions it replaces.
      chained: keep the exception as the cause of the error: its traceback helps to find a fault.
    """

    __slots__ = ("_chained", "_kinds", "_replaced")

    def __init__(
        self, replaced: Callable[[Exception], Exception], *kinds: type[Exception], chained: bool = False
    ) -> None:
        self._replaced, self._kinds, self._chained = replaced, kinds, chained

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, err: BaseException | None, _trace: object) -> None:
        if err is not None and isinstance(err, self._kinds) and not is_foreign(err):
            raise self._replaced(err) from (err if self._chained else None)


def _was_called_with(frame: FrameType, interrupted: FrameType) -> bool:
    """Whether `interrupted` is an argument of `frame`, as for handlers and trace functions."""
    code = frame.f_code
    if code.co_filename.startswith(PACKAGE):
        return False
    arguments = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x04)  # 0x04: takes *args
    values = frame.f_locals
    for name in code.co_varnames[:arguments]:
        value = values.get(name)
        if value is interrupted or (type(value) is tuple and any(item is interrupted for item in value)):
            return True
    return False


def _handlers() -> list[object]:
    """The code of the installed signal handlers, for those that no longer hold their arguments."""
    signal = sys.modules.get("_signal")
    codes: list[object] = []
    for number in range(1, getattr(signal, "NSIG", 1)):
        try:
            handler: object = signal.getsignal(number) if signal is not None else None
        except ValueError:
            continue
        if handler is None or isinstance(handler, int):  # of C, by default, or ignored: nearly all of them
            continue
        handler = getattr(handler, "func", handler)  # functools.partial
        function = getattr(handler, "__func__", handler)
        code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
        if code is not None:
            codes.append(code)
    return codes
