"""Measures the cost of one call of `log`, on a stream without a file."""

from __future__ import annotations

import time

from rollbook.ground.clocks import UNKNOWN
from rollbook.journal.channel import Channel
from rollbook.journal.lane import Lane
from rollbook.journal.log_function import make_log
from rollbook.journal.stream import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["row_cost_ns"]

_CALLS = 65


def row_cost_ns(keys: tuple[str, ...], types: str, clocks: tuple[str, ...]) -> float:
    """Nanoseconds of one call that logs a row of these keys: the median of 65 calls, minus the timer's own cost.

    The calls use the same function as the training loop; their rows are packed into spare memory.

    Args:
      types: d, q or b for each key, as in a segment's head.
    """
    stream = Stream(
        "", {"clocks": clocks, "types": types}, shape=(0, (), "", ()), mapped=False, first_size=0, largest_size=0
    )
    row: dict[str, object] = {key: {"d": 0.5, "q": 1, "b": True}[kind] for key, kind in zip(keys, types, strict=True)}
    stream.buffer = bytearray(stream.width * _CALLS)
    stream.last = stream.width * (_CALLS - 1)
    stream.types = tuple(map(type, row.values()))
    lane = Lane("", 0, 0)
    channel = Channel(0, "metrics", "", "", "", [UNKNOWN] * len(clocks))
    lane.scopes[0] = {tuple(row): stream}
    the_long_way: Any = _refuse
    log = make_log([lane], clocks, channel, the_long_way)
    clock = time.perf_counter_ns
    bare, calls = [], []
    for i in range(_CALLS):
        start = clock()
        bare.append(clock() - start)
        start = clock()
        log(row, env_step=i)
        calls.append(clock() - start)
    return float(max(0, sorted(calls)[_CALLS // 2] - sorted(bare)[_CALLS // 2]))


def _refuse(*_call: object) -> None:
    raise AssertionError("a row of this stream took the long way")
