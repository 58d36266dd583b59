"""The clocks of a run: counters that give the point in training of a row.

A clock is an int64. `UNKNOWN` means "not known here"; no counter reaches this value, so a row of the journal needs no
separate mask. Clocks need not increase: order and repetition are up to the caller.
"""

from __future__ import annotations

import operator
import sys
import time

from rollbook.errors import InvalidClock
from rollbook.system.guard import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

now: Callable[[], int] = time.perf_counter_ns if sys.platform == "win32" else time.monotonic_ns
"""Nanoseconds of the rows' clock; the same for all processes of a host."""

UNKNOWN = -(2**63)
"""The int64 that means "this clock is not known for this row"."""

STANDARD = ("env_step", "gradient_step", "epoch", "episode", "policy_version", "step")
"""The clocks of every run, in the order of a row."""

_RESERVED = {
    *("time", "at", "values", "self"),  # arguments of log() and scopes
    *("scope", "attempt", "writer", "lane", "seq", "index", "inferred"),  # columns that identify a row
    *("key", "type", "value", "integer", "digits"),  # of rows in long form
    *("mark", "keys", "payload", "table", "columns", "n"),  # of marks and chunks
}


def as_clock(value: object) -> int | None:
    """The clock reading of `value`, or None if it is not one.

    Accepts what `operator.index` accepts (also a 0-d integer tensor: reading it synchronises its device), and floats
    with an integral value. Anything else, and anything outside int64, is not a clock reading.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except ours(Exception):
        if isinstance(value, (str, bytes, bytearray)):  # float() would parse them
            return None
        try:
            as_float = float(value)  # type: ignore[arg-type]
            if not as_float.is_integer():
                return None
            number = int(as_float)
        except ours(Exception):  # of many elements, pandas' NA, an object that refuses
            return None
    return number if UNKNOWN < number < 2**63 else None


def may_be_clock(name: object) -> bool:
    """Whether a clock can have this name."""
    return isinstance(name, str) and name.isidentifier() and name not in _RESERVED


def check_clock_names(names: Iterable[str]) -> tuple[str, ...]:
    """All clocks of a run: the standard ones, then the declared `names`, each once.

    Raises:
      InvalidClock: a name that is not a Python identifier, or that rollbook uses for something else.
    """
    clocks = list(STANDARD)
    for name in names:
        if not may_be_clock(name):
            raise InvalidClock(
                f"clocks={list(names)!r} names {name!r}, which cannot be a clock: a clock is written as a keyword of "
                "log() and a column of every table, so it is a Python identifier, and none that rollbook uses for "
                "something else, such as time, at, key and value. Rename it"
            )
        if name not in clocks:
            clocks.append(name)
    return tuple(clocks)
