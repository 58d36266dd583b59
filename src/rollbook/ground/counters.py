"""Which columns of a foreign row are clocks: those that are called like one, and the counters of known frameworks."""

from __future__ import annotations

from rollbook.ground import aliases
from rollbook.ground.clocks import STANDARD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SPELLINGS", "clock_name", "clocks_of", "is_reading"]

_CANONICAL = {
    "time/env_steps": "env_step",
    "time/iterations": "epoch",
    "time/episodes": "episode",
    "update/count": "gradient_step",
}
"""Canonical counters and the clocks that they are; see `ground.aliases`."""

SPELLINGS = {
    **{name: name for name in STANDARD},
    "global_step": "env_step",
    "timesteps": "env_step",
    "total_timesteps": "env_step",
    "Step": "step",
    "_step": "step",
}
"""Columns that are clocks and nothing else, by their own names."""

_found: dict[str, str] = {}


def clock_name(column: str) -> str:
    """The clock that a column is a reading of, "" for one that is none."""
    known = _found.get(column)
    if known is None:
        known = SPELLINGS.get(column) or _CANONICAL.get(aliases.canonical(column) or column, "")
        if len(_found) < 100_000:
            _found[column] = known
    return known


def is_reading(value: object) -> bool:
    """Whether a clock can show this: an integer within 64 bits, or a float that is one."""
    return isinstance(value, (int, float)) and abs(value) < 2**63 and value == int(value)


def clocks_of(values: Mapping[str, object]) -> dict[str, int]:
    """The clocks of a row by its values, which stay values; of two columns for one clock the first is it."""
    clocks: dict[str, int] = {}
    for name, value in values.items():
        clock = clock_name(name)
        if clock and clock not in clocks and is_reading(value) and not isinstance(value, bool):
            clocks[clock] = int(value)  # type: ignore[call-overload]
    return clocks
