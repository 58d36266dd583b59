"""A reward as an environment returns it: a number in any form, or a vector with a number for each objective."""

from __future__ import annotations

from rollbook.system.guard import tolerating
from rollbook.values import scalar_of
from rollbook.values.arrays import host_array, host_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.values.array_types import NDArray


def read_reward(reward: Any) -> tuple[float | None, list[float]]:
    """(the reward as one number, its components); a single number has no components.

    Args:
      reward: a number, an array or tensor with one element, or a vector of any framework, whose sum is the reward.
        Anything else, such as a text, gives None.
    """
    if type(reward) is float:
        return reward, []
    with tolerating(Exception):
        number = scalar_of(reward)
        if number is None:
            number = scalar_of(host_tensor(reward))
        if number is not None:
            return float(number), []
        array = host_array(reward)
        if array.dtype.kind in "biufO":
            parts = [float(part) for part in array.reshape(-1).tolist()]
            return float(sum(parts)), parts
    return None, []


def read_rewards(rewards: Any, n: int) -> tuple[NDArray, NDArray | None]:
    """(n rewards of a vector of environments, their components).

    Args:
      rewards: n numbers, or [n, k] for k objectives, as an array or tensor of any framework, or a list.
      n: how many environments there are.
    Returns:
      float64 of shape [n], and [n, k] with k > 1, or None.
    Raises:
      TypeError, ValueError, RuntimeError: it is nothing of the kind.
    """
    import numpy as np

    array = rewards if type(rewards) is np.ndarray else host_array(rewards)
    array = array.astype(np.float64, copy=False)
    if array.ndim <= 1:
        return array, None
    parts = array.reshape(n, -1)
    return parts.sum(axis=1), parts if parts.shape[1] > 1 else None
