"""Pictures and films in the layouts that frameworks use, turned into the one the run takes: channels last."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

__all__ = ["as_frames", "as_grid", "as_picture", "host_array"]

_AXES = {"N", "T", "C", "H", "W"}


def host_array(value: Any) -> NDArray[Any]:
    """`value` (array, tensor on any device, nested lists) as a numpy array in host memory."""
    import numpy as np

    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(getattr(value, "dtype", "")) == "torch.bfloat16":
            value = value.float()
    return np.asarray(value)


def as_picture(pixels: Any, layout: str = "CHW") -> NDArray[Any]:
    """One picture, [height, width, channels].

    Args:
      pixels: uint8, or floats in [0, 1].
      layout: the order of axes: "CHW", "HWC", "HW"; with an "N" in it, the pictures of a batch become a grid.
    Raises:
      ValueError: the layout does not fit the array; names both.
    """
    array, layout = host_array(pixels), layout.upper()
    if len(layout) != array.ndim or len(set(layout)) != len(layout) or not set(layout) <= _AXES or "T" in layout:
        raise ValueError(f"an array of shape {array.shape} has not the layout {layout!r}: name each of its axes once")
    if "C" not in layout:
        array, layout = array[..., None], layout + "C"
    if "N" in layout:
        return as_grid(array.transpose([layout.index(axis) for axis in "NHWC"]))
    return array.transpose([layout.index(axis) for axis in "HWC"])


def as_grid(pictures_NHWC: NDArray[Any], columns: int = 8) -> NDArray[Any]:
    """A batch of pictures side by side, at most `columns` in a row; empty places are black."""
    import numpy as np

    n, height, width, channels = pictures_NHWC.shape
    if n == 1:
        only: NDArray[Any] = pictures_NHWC[0]
        return only
    across = min(columns, n) or 1
    down = -(-n // across)
    grid = np.zeros((down * height, across * width, channels), dtype=pictures_NHWC.dtype)
    for i, picture in enumerate(pictures_NHWC):
        row, column = divmod(i, across)
        grid[row * height : (row + 1) * height, column * width : (column + 1) * width] = picture
    return grid


def as_frames(film_NTCHW: Any) -> NDArray[Any]:
    """A film [time, height, width, channels] from a batch of them [n, time, channels, height, width], side by side.

    Raises:
      ValueError: it has not five axes.
    """
    import numpy as np

    array = host_array(film_NTCHW)
    if array.ndim != 5:
        raise ValueError(
            f"a film has the axes [n, time, channels, height, width]; this array has the shape {array.shape}"
        )
    frames_TNHWC = array.transpose(1, 0, 3, 4, 2)
    return np.stack([as_grid(frame) for frame in frames_TNHWC]) if len(frames_TNHWC) else frames_TNHWC[:, 0]
