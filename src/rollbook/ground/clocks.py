"""The clocks of a run: counters that say where in training a row was made.

A clock is an int64. `UNKNOWN` stands for "not known here"; it is a value no counter reaches, so a row of the
journal needs no separate mask. Nothing has to increase: order and repetition are the caller's business.
"""

from __future__ import annotations

import operator
import sys
import time

from rollbook.errors import InvalidClock
from rollbook.ground.foreign import ours

__all__ = ["STANDARD", "UNKNOWN", "as_clock", "check_clock_names", "now"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

now: Callable[[], int] = time.perf_counter_ns if sys.platform == "win32" else time.monotonic_ns
"""Nanoseconds of the clock that rows carry; the same for all processes of a host."""

UNKNOWN = -(2**63)
"""The int64 that means "this clock is not known for this row"."""

STANDARD = ("env_step", "gradient_step", "epoch", "episode", "policy_version", "step")
"""The clocks every run has, in the order in which they stand in a row."""

_RESERVED = {
    *("time", "at", "values", "self"),  # what log() and scopes take
    *("scope", "attempt", "writer", "lane", "seq", "index", "inferred"),  # columns that say which row a row is
    *("key", "type", "value", "integer", "digits"),  # of rows in long form
    *("mark", "keys", "payload", "table", "columns", "n"),  # of marks and chunks
}


def as_clock(value: object) -> int | None:
    """The clock reading that `value` stands for, or None if it stands for none.

    Accepts what `operator.index` takes (a 0-d integer tensor too: reading it synchronises its device) and floats
    with an integral value. Anything else, and anything outside int64, is no clock reading.
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except ours(TypeError):
        if isinstance(value, (str, bytes, bytearray)):  # float() would read them
            return None
        try:
            as_float = float(value)  # type: ignore[arg-type]
            if not as_float.is_integer():
                return None
            number = int(as_float)
        except ours(TypeError, ValueError, OverflowError):
            return None
    return number if UNKNOWN < number < 2**63 else None


def check_clock_names(names: Iterable[str]) -> tuple[str, ...]:
    """All clocks of a run: the standard ones, then the declared `names`, each once.

    Raises:
      InvalidClock: a name that is no Python identifier, or one that rollbook uses for something else.
    """
    clocks = list(STANDARD)
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or name in _RESERVED:
            raise InvalidClock(
                f"clocks={list(names)!r} names {name!r}, which cannot be a clock: a clock is written as a keyword of "
                "log() and a column of every table, so it is a Python identifier, and none that rollbook uses for "
                "something else, such as time, at, key and value. Rename it"
            )
        if name not in clocks:
            clocks.append(name)
    return tuple(clocks)
