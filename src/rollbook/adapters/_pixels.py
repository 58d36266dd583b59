"""Convert images and videos from the layouts of frameworks to the one of the run: channels last."""

from __future__ import annotations

from rollbook.values.arrays import host_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.values.array_types import NDArray

_AXES = {"N", "T", "C", "H", "W"}


def as_picture(pixels: object, layout: str = "CHW") -> NDArray:
    """One image, [height, width, channels].

    Args:
      pixels: uint8, or floats in [0, 1].
      layout: the order of axes: "CHW", "HWC", "HW". With an "N" in it, the images of a batch become a grid.
    Raises:
      ValueError: the layout does not fit the array; the message names both.
    """
    array, layout = host_array(pixels), layout.upper()
    if len(layout) != array.ndim or len(set(layout)) != len(layout) or not set(layout) <= _AXES or "T" in layout:
        raise ValueError(f"an array of shape {array.shape} has not the layout {layout!r}: name each of its axes once")
    if "C" not in layout:
        array, layout = array[..., None], layout + "C"
    if "N" in layout:
        return as_grid(array.transpose([layout.index(axis) for axis in "NHWC"]))
    return array.transpose([layout.index(axis) for axis in "HWC"])


def as_grid(pictures_NHWC: NDArray) -> NDArray:
    """A batch of images as a grid, at most eight per row; empty cells are black."""
    import numpy as np

    n, height, width, channels = pictures_NHWC.shape
    if n == 1:
        only: NDArray = pictures_NHWC[0]
        return only
    across = min(8, n) or 1
    down = -(-n // across)
    grid = np.zeros((down * height, across * width, channels), dtype=pictures_NHWC.dtype)
    for i, picture in enumerate(pictures_NHWC):
        row, column = divmod(i, across)
        grid[row * height : (row + 1) * height, column * width : (column + 1) * width] = picture
    return grid


def as_uint8(pixels: NDArray) -> NDArray:
    """Pixels of any type as uint8: floats are scaled from [0, 1] and clipped, NaN is black."""
    import numpy as np

    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype.kind != "f":
        scale = 255 if pixels.dtype.kind == "b" else 1
        return np.asarray((pixels.astype(np.int64) * scale).clip(0, 255).astype(np.uint8))
    return np.asarray(np.nan_to_num(pixels.astype(np.float32) * np.float32(255)).clip(0, 255).astype(np.uint8))


def as_rgb(picture_HWC: NDArray) -> NDArray:
    """An image as uint8 with three or four channels; one channel becomes grey."""
    picture = as_uint8(picture_HWC)
    return picture.repeat(3, axis=-1) if picture.shape[-1] == 1 else picture


def as_frames(video: object, layout: str = "NTCHW") -> NDArray:
    """A video [time, height, width, channels] from a batch of videos, side by side.

    Args:
      video: uint8, or floats in [0, 1].
      layout: the order of its five axes: n, time, channels, height, width.
    Raises:
      ValueError: the layout does not fit the array; the message names both.
    """
    import numpy as np

    array, layout = host_array(video), layout.upper()
    if sorted(layout) != sorted("NTCHW"):
        raise ValueError(f"a video has the axes N, T, C, H and W, each once; not {layout!r}")
    if array.ndim != 5:
        raise ValueError(
            f"a video has the axes [n, time, channels, height, width]; this array has the shape {array.shape}"
        )
    frames_TNHWC = array.transpose([layout.index(axis) for axis in "TNHWC"])
    return np.stack([as_grid(frame) for frame in frames_TNHWC]) if len(frames_TNHWC) else frames_TNHWC[:, 0]
