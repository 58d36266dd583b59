"""Waiting for what another process or thread does: for the event itself, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 300.0
"""Seconds after which something is said never to come: a guard against hangs, no measure of speed."""


def until(condition: Callable[[], T], what: str = "") -> T:
    """What `condition` gives once that is true."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"it never came: {what or condition}"
        time.sleep(0.005)
    return found


def pause(seconds: float) -> None:
    """Work at a pace, or strike at some moment: nothing may depend on how long this takes."""
    time.sleep(seconds)
