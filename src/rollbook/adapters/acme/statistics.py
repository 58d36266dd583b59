"""The numbers behind SmoothingFilter and AggregateFilter: running averages and piles of values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from rollbook.adapters.acme.base import to_numpy
from rollbook.errors import BadInput
from rollbook.filters import aggregate
from rollbook.values import scalar_of

__all__ = ["Pile", "RunningAverages", "compiled"]


def compiled(asked: str, who: str) -> re.Pattern[str]:
    """The compiled expression; the error names who was given it."""
    try:
        return re.compile(asked)
    except (re.error, TypeError) as err:
        raise BadInput(
            f"{who}{asked!r} is not a regular expression ({err}). Use re.escape() for a key as it stands."
        ) from None


class RunningAverages:
    """One running average per key, with a warm-up: the first average is the first value.

    Args:
      coeff: the weight the past comes to have, from 0 up to, but not including, 1.
    """

    def __init__(self, coeff: float) -> None:
        if not 0 <= coeff < 1:
            raise BadInput(f"smoothing_coeff={coeff!r}: the weight of the past is at least 0 and less than 1")
        self._coeff = coeff
        self._series: dict[str, tuple[Any, float]] = {}

    def next(self, key: str, value: Any) -> Any:
        """The average of `key` after `value` (elementwise for arrays), or None if `value` cannot be averaged in."""
        number: Any = scalar_of(value)
        if number is None:
            number = _finite_array(value)
        elif not math.isfinite(number):
            number = None
        if number is None:
            return None
        average, c = self._series.get(key, (0.0, 0.0))
        try:
            average = number * (1 - c) + average * c
        except (ValueError, OverflowError):  # an array whose shape has changed; an integer beyond the floats
            average, c = number, 0.0
        self._series[key] = (average, c * 0.9 + self._coeff * 0.1)
        return average


class Pile:
    """The values of one key since the last dump."""

    def __init__(self) -> None:
        self._pile = aggregate.Pile()

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return self._pile.count

    def add(self, value: Any) -> bool:
        """Take a number, or every element of an array. False if it is neither."""
        number = scalar_of(value)
        if number is not None:
            self._pile.add(float(number))
            return True
        array = _array(value)
        if array is None:
            return False
        for element in array.ravel().tolist():
            self._pile.add(float(element))
        return True

    def statistics(self) -> dict[str, float]:
        """mean, std (of the population), median, max and min, in this order."""
        return self._pile.statistics()


def _array(value: Any) -> Any:
    """`value` as an array of real numbers, or None."""
    if isinstance(value, (str, bytes, Mapping)):
        return None
    import numpy as np

    try:
        array = np.asarray(to_numpy(value))
    except (TypeError, ValueError, RuntimeError):
        return None
    return array if array.dtype.kind in "biuf" and array.size else None


def _finite_array(value: Any) -> Any:
    array = _array(value)
    if array is None:
        return None
    import numpy as np

    return array if np.isfinite(array).all() else None
