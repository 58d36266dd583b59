"""Smoothing of one series without looking ahead: a smoothed value depends only on its own and on earlier values.

All functions take values in logged order and return the same number of values. NaN and infinities stay in place: such
a point is NaN or infinite in the result, too, but does not enter the averages of others. Gaps in x have no effect;
smooth before aligning.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Floats, floats

_BLOCK = 64


def ema(values: ArrayLike, weight: float) -> Floats:
    """Exponential average, divided by the sum of its weights: what TensorBoard's slider shows.

    Args:
      values: [points].
      weight: of the past, from 0 (no smoothing) to below 1. About 1 / (1 - weight) values count.

    Returns:
      [points]; the first finite value is unchanged.

    Raises:
      BadInput: weight out of range, or more than one axis.

    Source: Kingma and Ba, Adam (2015), section 3, for the correction of the bias towards 0.
    """
    series = _series(values)
    if not 0 <= weight < 1:
        raise BadInput(f"ema was given weight={weight!r}; it has to be at least 0 and less than 1.")
    result, seen = series.copy(), np.isfinite(series)
    numbers = series[seen]
    if weight == 0 or not len(numbers) or np.all(numbers == numbers[0]):
        return result
    age = np.arange(1, len(numbers) + 1)
    with np.errstate(under="ignore"):
        result[seen] = _decayed(numbers * (1 - weight), weight) / (1 - weight**age)
    return result


def _decayed(fresh: Floats, weight: float) -> Floats:
    """out[i] = weight * out[i - 1] + fresh[i], block by block, with one matrix product per block."""
    lag = np.subtract.outer(np.arange(_BLOCK), np.arange(_BLOCK))
    with np.errstate(under="ignore"):
        kernel = np.where(lag >= 0, weight ** np.maximum(lag, 0).astype(float), 0.0)
        fade = weight ** np.arange(1.0, _BLOCK + 1)
    padded = np.zeros(-(-len(fresh) // _BLOCK) * _BLOCK)
    padded[: len(fresh)] = fresh
    inside = padded.reshape(-1, _BLOCK) @ kernel.T
    carried = 0.0
    for block in inside:
        block += carried * fade
        carried = block[-1]
    return inside.ravel()[: len(fresh)]


def warm_up_average(values: ArrayLike, weight: float = 0.99) -> Floats:
    """Running average whose weight starts at 0 and approaches `weight` by a tenth of the distance with each value.

    The filter `Smooth(mode="warm_up")` writes the same average.

    Args:
      values: [points].
      weight: of the past in the long run, at least 0 and less than 1.

    Returns:
      [points].
    Raises:
      BadInput: a weight outside of its range.
    """
    series = _series(values)
    if not 0 <= weight < 1:
        raise BadInput(f"warm_up_average was given weight={weight!r}; it has to be at least 0 and less than 1.")
    result, average, past = series.copy(), 0.0, 0.0
    for i in np.flatnonzero(np.isfinite(series)):
        average = float(series[i]) * (1 - past) + average * past
        past = past * 0.9 + weight * 0.1
        result[i] = average
    return result


def _series(values: ArrayLike) -> Floats:
    series = floats(values, "values")
    if series.ndim != 1:
        raise BadInput(f"Smoothing takes one series at a time; the shape given is {series.shape}.")
    return series
