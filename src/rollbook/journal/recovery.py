"""Finding what an interrupted caller did not give back.

Lanes are used by one caller at a time without a lock: a lock could be held by the very thread that a signal handler
interrupts, and a handler may log. A caller pops a lane off a list and appends it afterwards, both of which are atomic.
An exception raised between the two (Ctrl-C, a time limit) leaves a lane on nobody's list; its reference count tells:
nobody holds it but the list of all lanes.
"""

from __future__ import annotations

import sys
import time
from _thread import get_ident

from rollbook.ground.foreign import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import TypeVar

    T = TypeVar("T")

__all__ = ["Turns", "unused"]


class Turns:
    """Something that one caller at a time may do. Like a lock, but one that an interrupted caller never leaves locked.

    turn = turns.take()
    if turn is not None:
        try: ...
        finally: turns.give(turn)
    """

    __slots__ = ("_free", "_holder", "_turns")

    def __init__(self) -> None:
        self._turns: list[bytearray] = [bytearray()]
        self._free: list[bytearray] = list(self._turns)
        self._holder = 0

    def take(self, wait_seconds: float = 0.0) -> bytearray | None:
        """The turn; None if another caller has it: one that was interrupted by this very call, or another thread.

        Args:
          wait_seconds: how long to wait for another thread.
        """
        deadline = 0.0
        while True:
            try:
                turn = self._free.pop() if self._free else unused(self._turns)
            except ours(IndexError):  # another thread was faster
                turn = None
            if turn is not None:
                self._holder = get_ident()
                return turn
            deadline = deadline or time.monotonic() + wait_seconds
            if self._holder == get_ident() or time.monotonic() >= deadline:
                return None
            time.sleep(0.001)

    def give(self, turn: bytearray) -> None:
        """Let others have their turn."""
        self._holder = 0
        self._free.append(turn)


def unused(things: list[T], thorough: bool = False) -> T | None:
    """One of `things` that nobody refers to but this list, from now on for the caller alone; None if there is none.

    Two threads that ask at once never get the same one: each holds what it looks at, and the other counts that.

    Args:
      thorough: pass over frames that have ended and are kept by a traceback (an error that a notebook remembers). That
        asks the garbage collector, which takes milliseconds in a large process.
    """
    for place in range(len(things)):
        thing = things[place]
        if sys.getrefcount(thing) == _UNUSED:
            return thing
    if not thorough:
        return None
    import gc

    running = _running_frames()
    for place in range(len(things)):
        thing = things[place]
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
    """What `unused` counts for a thing that nobody else holds."""
    things: list[object] = [bytearray()]
    for place in range(len(things)):
        thing = things[place]
        return sys.getrefcount(thing)
    return 0


_UNUSED = _references()
