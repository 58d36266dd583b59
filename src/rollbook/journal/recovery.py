"""Finding what an interrupted caller did not give back.

Lanes are used by one caller at a time without a lock: a lock could be held by the very thread that a signal handler
interrupts, and a handler may log. A caller pops a lane off a list and appends it afterwards, both of which are atomic.
An exception raised between the two (Ctrl-C, a time limit) leaves a lane on nobody's list; its reference count tells:
nobody holds it but the list of all lanes.
"""

from __future__ import annotations

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, TypeVar

    T = TypeVar("T")

__all__ = ["unused"]


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
    things: list[Any] = [bytearray()]
    for place in range(len(things)):
        thing = things[place]
        return sys.getrefcount(thing)
    return 0


_UNUSED = _references()
