"""A trajectory for robot viewers: times, numbers, texts and images, with the last observation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rollbook.values.array_types import NDArray
from rollbook.values.spaces import is_picture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.formats.datasets import Trajectory


class Signals(NamedTuple):
    """The columns of one agent in one episode. A column has a cell for each step; those of `obs` may have one more.

    Attributes:
      t: [n + 1 or n] numbers of the steps.
      times: unix ns; the last is that of the observation after the last step.
      values: name -> cells that are numbers, arrays of them, texts or nested data.
      images: name -> [cells, height, width] or [cells, height, width, channels] uint8.
    """

    t: NDArray
    times: NDArray
    values: dict[str, Any]
    pictures: dict[str, NDArray]


def signals_of(trajectory: Trajectory) -> Signals:
    """The columns of a trajectory, with images separate.

    Images with channels first are converted to channels last. If there are more than four channels, such as stacked
    frames, they are put side by side.
    """
    t, times = trajectory.t, trajectory.times
    if trajectory.last and len(t):
        t, times = np.append(t, t[-1] + 1), np.append(times, times[-1])
    values: dict[str, Any] = {}
    pictures: dict[str, NDArray] = {}
    for name, cells in trajectory.columns.items():
        last = trajectory.last.get(name)
        if last is not None:
            cells = _with(cells, last)
        shown = _pictures(cells)
        if shown is None:
            values[name] = cells
        else:
            pictures[name] = shown
    return Signals(t, times, values, pictures)


def _with(cells: Any, last: Any) -> Any:
    one = np.asarray(last)
    if isinstance(cells, np.ndarray) and one.shape == cells.shape[1:] and one.dtype.kind == cells.dtype.kind:
        return np.concatenate([cells, one[None].astype(cells.dtype)])
    return [*cells, last]


def _pictures(cells: Any) -> NDArray | None:
    if not isinstance(cells, np.ndarray) or not len(cells) or cells.dtype != np.uint8:
        return None
    if is_picture(cells[0]):
        return cells
    if cells.ndim != 4 or min(cells.shape[2:]) < 8:
        return None
    if cells.shape[1] in (1, 3):
        return np.ascontiguousarray(cells.transpose(0, 2, 3, 1))
    n, frames, height, width = cells.shape
    return cells.transpose(0, 2, 1, 3).reshape(n, height, frames * width)
