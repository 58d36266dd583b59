"""Something that happens before the n-th line of a call, on its thread: what a signal handler may do there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def at_line(number: int | None, files: tuple[str, ...], act: Callable[[], None], call: Callable[[], None]) -> int:
    """Call `call`, and `act` once before its n-th line in some files; how many such lines there were.

    Args:
      number: n, counted from 1; None: before each line.
      files: the paths of the files, or how they begin.
    """
    seen = 0

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.startswith(files):
            return None
        if event == "line":
            seen += 1
            if number in (None, seen):
                sys.settrace(None)
                act()
                sys.settrace(trace)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return seen
