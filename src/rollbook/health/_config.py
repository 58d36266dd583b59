"""Single settings of a configuration, at any depth."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_LEVELS = 8


def number_in(config: Any, *names: str, level: int = 0) -> float | None:
    """The first positive number with one of these names (in lower case), the outermost first; None for none."""
    if not hasattr(config, "items") or level > _MOST_LEVELS:
        return None
    for name, value in config.items():
        number = plain(value)
        if number is not None and number > 0 and str(name).lower() in names:
            return number
    for value in config.values():
        inner = number_in(value, *names, level=level + 1)
        if inner is not None:
            return inner
    return None


_LENGTHS = {
    "env_step": ("total_timesteps", "total_steps", "num_env_steps", "total_env_steps", "max_env_steps"),
    "gradient_step": ("total_training_steps",),
}
"""How configurations call the length of a run, by clock."""


def configured_total(config: Any) -> dict[str, float]:
    """The length of a run by its settings: clock -> reading; {} where none says it."""
    if not _last or _last[0] is not config:  # asked at each row, of one run after the other
        found = {clock: number_in(config, *names) for clock, names in _LENGTHS.items()}
        _last[:] = config, {clock: length for clock, length in found.items() if length is not None}
    known: dict[str, float] = _last[1]
    return known


_last: list[Any] = []


def setting_in(config: Any, name: str, level: int = 0) -> object:
    """The setting with this name (in lower case), the outermost first; None for none."""
    if not hasattr(config, "items") or level > _MOST_LEVELS:
        return None
    for own, value in config.items():
        if str(own).lower() == name:
            found: object = value
            return found
    inner = (setting_in(value, name, level + 1) for value in config.values())
    return next((value for value in inner if value is not None), None)


def plain(value: Any) -> float | None:
    """A setting that is a finite number, as a float; None for anything else."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer too large for a float
        return None
    return number if math.isfinite(number) else None
