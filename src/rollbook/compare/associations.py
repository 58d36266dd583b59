"""Which differences between runs are associated with which results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rollbook.system.brief import brief


@brief
@dataclass(frozen=True, slots=True)
class Association:
    """How results differ between the values of a setting.

    Attributes:
      means: value -> mean result of its runs; None if none of them has a result.
      n: value -> number of runs with a result.
      explained: the share of the variance of results explained by the value, from 0 to 1, corrected for the number of
        values (epsilon squared); None if no value has two results. It does not show causes.
    """

    means: Mapping[str, float | None]
    n: Mapping[str, int]
    explained: float | None


def association(results: Mapping[str, Sequence[float | None]]) -> Association:
    """How results differ between values.

    Args:
      results: value -> results of its runs, None for runs without one.
    """
    known = {value: np.array([r for r in each if r is not None], dtype=np.float64) for value, each in results.items()}
    filled = [each for each in known.values() if len(each)]
    means = {value: float(each.mean()) if len(each) else None for value, each in known.items()}
    counts = {value: len(each) for value, each in known.items()}
    everything = np.concatenate(filled) if filled else np.zeros(0)
    freedom = len(everything) - len(filled)
    total = float(((everything - everything.mean()) ** 2).sum()) if len(everything) else 0.0
    if len(filled) < 2 or freedom < 1 or total == 0:
        return Association(means, counts, None)
    within = sum(float(((each - each.mean()) ** 2).sum()) for each in filled)
    explained = (total - within - (len(filled) - 1) * within / freedom) / total
    return Association(means, counts, min(1.0, max(0.0, explained)))
