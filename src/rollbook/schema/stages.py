"""Seconds of timed stages: a/b is part of a; a's own time is its total without its parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.values.array_types import NDArray


def own_seconds(names: Sequence[str], seconds_SP: NDArray) -> npt.NDArray[np.float64]:
    """Each stage's seconds without those of its direct substages; never below 0.

    Args:
      names: of the S stages, each once.
      seconds_SP: [stages, stretches], or [stages]: the time of each, parts included.
    Returns:
      The same shape. A stage without a timed parent counts as part of the next timed stage above it.
    """
    row = {name: number for number, name in enumerate(names)}
    own = np.array(seconds_SP, dtype=np.float64)
    for name, number in row.items():
        parent = name.rpartition("/")[0]
        while parent and parent not in row:
            parent = parent.rpartition("/")[0]
        if parent:
            own[row[parent]] -= seconds_SP[number]
    return np.maximum(own, 0.0)
