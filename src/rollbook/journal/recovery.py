"""Recovers lanes that an interrupted caller did not return.

One caller at a time uses a lane, without a lock: a signal handler may interrupt the very thread that holds a lock, and
a handler may log. A caller pops a lane from a list and appends it afterwards; both operations are atomic. An exception
between the two (Ctrl-C, a time limit) leaves a lane on no free list. Its reference count then shows that only the list
of all lanes refers to it.
"""

from __future__ import annotations

import sys
import time
from _thread import get_ident

from rollbook.system.guard import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import TypeVar

    T = TypeVar("T")


class InterruptSafeLock:
    """A lock that an interrupted caller never leaves locked, wherever the interrupt comes.

    token = lock.acquire(0.0)      # without waiting
    if token is not None:
        try: ...
        finally: lock.release(token)

    The lock is free again as soon as nothing refers to the token any more; see `unused`.
    """

    __slots__ = ("_free", "_holder", "_tokens")

    def __init__(self) -> None:
        self._tokens: list[bytearray] = [bytearray()]
        self._free: list[bytearray] = list(self._tokens)
        self._holder = 0

    def acquire(self, wait_seconds: float) -> bytearray | None:
        """A token; None if another caller holds the lock: another thread, or a call that this one has interrupted.

        Args:
          wait_seconds: how long to wait for another thread.
        """
        deadline = 0.0
        while True:
            try:
                token = self._free.pop() if self._free else unused(self._tokens)
            except ours(IndexError):  # another thread was faster
                token = None
            if token is not None:
                self._holder = get_ident()
                return token
            deadline = deadline or time.monotonic() + wait_seconds
            if self._holder == get_ident() or time.monotonic() >= deadline:
                return None
            time.sleep(0.001)

    def release(self, token: bytearray) -> None:
        """Free the lock."""
        self._holder = 0
        self._free.append(token)


def unused(things: list[T], thorough: bool = False) -> T | None:
    """An item of `things` that nothing but this list refers to, reserved for the caller; None if there is none.

    Two threads that ask at once never get the same one: each holds the one it checks, and the other counts that
    reference.

    Args:
      thorough: ignore finished frames that a traceback keeps (for example an error in a notebook). This uses the
        garbage collector, which takes milliseconds in a large process.
    """
    for index in range(len(things)):
        thing = things[index]
        if sys.getrefcount(thing) == _UNUSED:
            return thing
    if not thorough:
        return None
    import gc

    running = _running_frames()
    for index in range(len(things)):
        thing = things[index]
        holders = sys.getrefcount(thing) - _UNUSED
        if holders == sum(_has_ended(holder, running) for holder in gc.get_referrers(thing)):
            return thing
    return None


def _has_ended(holder: object, running: set[int]) -> bool:
    from types import FrameType

    return type(holder) is FrameType and id(holder) not in running


def _running_frames() -> set[int]:
    running: set[int] = set()
    for innermost in sys._current_frames().values():
        frame: FrameType | None = innermost
        while frame is not None:
            running.add(id(frame))
            frame = frame.f_back
    return running


def _references() -> int:
    """The reference count that `unused` sees for an unused thing."""
    things: list[object] = [bytearray()]
    for index in range(len(things)):
        thing = things[index]
        return sys.getrefcount(thing)
    return 0


_UNUSED = _references()
