"""Which columns of a foreign row are clocks: those named like a clock, and the counters of known frameworks."""

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
"""Canonical counters and their clocks; see `ground.aliases`."""

SPELLINGS = {
    **{name: name for name in STANDARD},
    "global_step": "env_step",
    "timesteps": "env_step",
    "total_timesteps": "env_step",
    "Step": "step",
    "_step": "step",
}
"""Columns that are only clocks, by their own names."""

_found: dict[str, str] = {}


def clock_name(column: str) -> str:
    """The clock of a column with clock readings, "" for other columns."""
    known = _found.get(column)
    if known is None:
        known = SPELLINGS.get(column) or _CANONICAL.get(aliases.canonical(column) or column, "")
        if len(_found) < 100_000:
            _found[column] = known
    return known


def is_reading(value: object) -> bool:
    """Whether this is a valid reading: an integer within 64 bits, or a float with such a value."""
    return isinstance(value, (int, float)) and abs(value) < 2**63 and value == int(value)


def clocks_of(values: Mapping[str, object]) -> dict[str, int]:
    """The clocks of a row from its values, which also stay values. The first column of a clock wins."""
    clocks: dict[str, int] = {}
    for name, value in values.items():
        clock = clock_name(name)
        if clock and clock not in clocks and is_reading(value) and not isinstance(value, bool):
            clocks[clock] = int(value)  # type: ignore[call-overload]
    return clocks
