"""The numbers behind SmoothingFilter and AggregateFilter: running averages and collected values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rollbook.adapters.acme.base import to_numpy
from rollbook.errors import BadInput
from rollbook.values import scalar_of
from rollbook.values.describe import Pile, warm_average

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.values.array_types import NDArray


class RunningAverages:
    """One running average per key, with a warm-up: the first average is the first value.

    Args:
      coeff: the final weight of the past, in [0, 1).
    """

    def __init__(self, coeff: float) -> None:
        if not 0 <= coeff < 1:
            raise BadInput(f"smoothing_coeff={coeff!r}: the weight of the past is at least 0 and less than 1")
        self._coeff = coeff
        self._series: dict[str, tuple[object, float]] = {}

    def next(self, key: str, value: object) -> Any:
        """The average of `key` after `value` (elementwise for arrays), or None if `value` cannot be averaged."""
        number: Any = scalar_of(value)
        if number is None:
            number = _finite_array(value)
        elif not math.isfinite(number):
            number = None
        if number is None:
            return None
        average, c = self._series.get(key, (0.0, 0.0))
        try:
            self._series[key] = warm_average(average, c, number, self._coeff)
        except (ValueError, OverflowError):  # an array whose shape has changed; an integer too large for a float
            self._series[key] = (number, self._coeff * 0.1)
        return self._series[key][0]


def add_all(pile: Pile, value: object) -> bool:
    """Add a number, or every element of an array, to a pile. False if `value` is neither."""
    number = scalar_of(value)
    if number is not None:
        pile.add(float(number))
        return True
    array = _array(value)
    if array is None:
        return False
    for element in array.ravel().tolist():
        pile.add(float(element))
    return True


def _array(value: object) -> NDArray | None:
    """`value` as an array of real numbers; None if it is not one."""
    if isinstance(value, (str, bytes, Mapping)):
        return None
    import numpy as np

    try:
        array = np.asarray(to_numpy(value))
    except (TypeError, ValueError, RuntimeError):
        return None
    return array if array.dtype.kind in "biuf" and array.size else None


def _finite_array(value: object) -> NDArray | None:
    array = _array(value)
    if array is None:
        return None
    import numpy as np

    return array if np.isfinite(array).all() else None
