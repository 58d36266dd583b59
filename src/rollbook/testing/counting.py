"""Counting work instead of timing it: counts are the same on a busy machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def count_operations(action: Callable[[], object]) -> tuple[int, int]:
    """How much work an action is.

    Counts, unlike seconds, are the same on a busy machine. Both are of the calling thread only.

    Args:
      action: a function without arguments. It runs once.
    Returns:
      (function calls, bytes read and written); bytes are 0 where the system does not count them.
    """
    calls = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before, bytes_before = sys.getprofile(), _bytes_moved()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls, _bytes_moved() - bytes_before


def _bytes_moved() -> int:
    try:
        lines = Path("/proc/thread-self/io").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(("rchar", "wchar")))
