"""Checks inputs once and converts them to float arrays; the errors of this package are raised here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollbook.errors import BadInput, UnknownOption, did_you_mean

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Packed: TypeAlias = NDArray[np.uint8]
"""Eight of `Bools` a byte, as `np.packbits` packs them."""


def choice(asked: str, choices: Iterable[str], what: str) -> str:
    """The choice, or an error that lists the choices."""
    names = list(choices)
    if asked not in names:
        raise UnknownOption(f"There is no {what} {asked!r}.", did_you_mean(str(asked), names))
    return asked


def level_of(level: float) -> float:
    """A coverage between 0 and 1, both excluded."""
    if not 0 < level < 1:
        raise BadInput(f"level={level!r}: a coverage has to lie between 0 and 1, for example 0.95.")
    return float(level)


def floats(values: ArrayLike, what: str) -> Floats:
    """A float64 array; refuses what is not a number."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{what} has to be an array of numbers of a regular shape; {error}.") from None


def finite(values: ArrayLike, what: str) -> Floats:
    """A float64 array without NaN and infinities."""
    array = floats(values, what)
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise BadInput(
            f"{what} holds {array[at]} at position {at if len(at) != 1 else at[0]}. It is neither dropped nor counted "
            "as zero: decide what the run is worth before it is judged (a declared floor), or leave it out by name."
        )
    return array


def vector(values: ArrayLike, what: str, least: int = 1) -> Floats:
    """A finite vector with at least `least` values."""
    array = finite(values, what)
    if array.ndim != 1:
        raise BadInput(f"{what} has to have one axis, the runs; its shape is {array.shape}.")
    if len(array) < least:
        raise BadInput(f"{what} has {len(array)} values; at least {least} are needed.")
    return array


def seeds_by_tasks(scores: ArrayLike, what: str = "scores_RT") -> Floats:
    """Scores as [runs, tasks] or, with more axes, [runs, tasks, ...]; a vector is the runs of one task."""
    array = finite(scores, what)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim < 2 or not array.shape[0] or not array.shape[1]:
        raise BadInput(f"{what} has the shape {array.shape}; it has to be [runs] or [runs, tasks], neither empty.")
    return array


def scores_of_tasks(scores: ArrayLike | Sequence[ArrayLike], what: str = "scores") -> list[Floats]:
    """One vector per task: from [runs], [runs, tasks], or a list of vectors of different lengths."""
    if isinstance(scores, (list, tuple)) and scores and not all(np.ndim(part) == 0 for part in _parts(scores)):
        lengths = {np.shape(part)[0] if np.ndim(part) == 1 else -1 for part in _parts(scores)}
        if -1 not in lengths and len(lengths) > 1:
            return [vector(part, f"{what}[{t}]") for t, part in enumerate(scores)]
    array = seeds_by_tasks(scores, what)  # type: ignore[arg-type]
    if array.ndim != 2:
        raise BadInput(f"{what} has the shape {array.shape}; it has to be [runs] or [runs, tasks].")
    return list(array.T)


def _parts(scores: Sequence[object]) -> Sequence[Any]:
    return scores
