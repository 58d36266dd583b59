"""Any image as rows of bytes: [height, width, channels] uint8, channels last.

Accepted: numpy arrays and anything that converts to one (tensors, nested lists), Pillow images, and matplotlib figures;
uint8, other integers from 0 to 255, bools, or floats in [0, 1]; [height, width] or with 1, 3 or 4 channels.
"""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.system.guard import raising
from rollbook.values.arrays import host_array, is_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rollbook.values.array_types import NDArray


_CHANNELS = (1, 3, 4)


def picture_of(image: object, *, channels_first: bool = False) -> NDArray:
    """One image as [height, width, channels] uint8; copied only if necessary.

    Args:
      channels_first: `image` is [channels, height, width].
    Raises:
      BadInput: it is not an image; the message says what it is and what to do.
    """
    if is_figure(image):
        return figure_pixels(image)
    if hasattr(image, "mode") and hasattr(image, "convert") and hasattr(image, "tobytes"):
        image = _from_pillow(image)
        channels_first = False
    array = _array(image)
    if array.ndim == 2:
        array = array[:, :, None]
    elif channels_first and array.ndim == 3:
        array = array.transpose(1, 2, 0)
    if array.ndim != 3 or array.shape[2] not in _CHANNELS:
        what = "a picture is [height, width] or [height, width, 1, 3 or 4]"
        raise BadInput(_wrong_shape(what, array, channels_first))
    if not array.size:
        raise BadInput(f"a picture of shape {array.shape} has no pixels. Log one that has")
    pixels: NDArray = _as_bytes(array)
    return pixels


def frames_of(frames: object, *, channels_first: bool = False) -> Iterator[NDArray]:
    """The frames of a video one by one, each as returned by `picture_of`, all of one shape.

    Args:
      frames: an array [time, height, width, channels] or [time, height, width], or an iterable of images; they are not
        kept.
    Raises:
      BadInput: during iteration: it is not a video, or a frame differs in shape from the first.
    """
    if is_tensor(frames) or (hasattr(frames, "shape") and hasattr(frames, "dtype")):
        frames = _array(frames)
        grey = frames.ndim == 3 and frames.shape[0 if channels_first else 2] not in _CHANNELS
        if frames.ndim != 4 and not grey:
            what = "a video is [time, height, width] or [time, height, width, 1, 3 or 4], one picture is for log_image"
            raise BadInput(_wrong_shape(what, frames, channels_first))
    elif isinstance(frames, (str, bytes)) or not hasattr(frames, "__iter__"):
        raise BadInput(
            f"a video is an array or pictures one by one; found {type(frames).__name__}. Pass a list of them"
        )
    shape = None
    for number, frame in enumerate(frames):
        picture = picture_of(frame, channels_first=channels_first)
        if shape is None:
            shape = picture.shape
        elif picture.shape != shape:
            raise BadInput(
                f"frame {number} of a video has shape {picture.shape} where the first has {shape}. Make all frames of "
                "one size, or log them as several videos"
            )
        yield picture


def is_figure(value: object) -> bool:
    """Whether this is a matplotlib figure, or an object with one (axes, seaborn's grids)."""
    figure = value if hasattr(value, "savefig") else getattr(value, "figure", None)
    return hasattr(figure, "set_canvas") and hasattr(figure, "canvas")


def figure_pixels(figure: Any) -> NDArray:
    """The pixels of a matplotlib figure at its own size and dpi. The figure stays open, on its canvas.

    Raises:
      BadInput: it is not a figure.
    """
    if not is_figure(figure):
        raise BadInput(
            f"log_figure takes a matplotlib figure; found {type(figure).__module__}.{type(figure).__name__}. Render it "
            "to pixels with its own library and use log_image"
        )
    import numpy
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if not hasattr(figure, "set_canvas"):
        figure = figure.figure
    before = figure.canvas
    try:
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        pixels = numpy.array(canvas.buffer_rgba())
    finally:
        figure.set_canvas(before)
    return pixels if (pixels[:, :, 3] != 255).any() else numpy.ascontiguousarray(pixels[:, :, :3])


def _from_pillow(image: Any) -> object:
    mode = image.mode
    if mode not in ("L", "RGB", "RGBA"):
        # "I;16" and "F" have more than 8 bits: only the caller knows the range to scale
        if mode.startswith(("I", "F")):
            raise BadInput(f"a Pillow image of mode {mode!r} has no 8-bit pixels. Convert it with .convert('L')")
        image = image.convert("RGBA" if "A" in mode or "transparency" in getattr(image, "info", {}) else "RGB")
    import numpy

    return numpy.asarray(image)


def _array(image: object) -> NDArray:
    what = f"found {type(image).__name__}, which cannot be read as pixels"
    with raising(lambda err: BadInput(f"{what} ({err}). Pass numbers"), TypeError, ValueError):
        return host_array(image)


def _as_bytes(array: NDArray) -> NDArray:
    import numpy

    if array.dtype == numpy.uint8:
        return array
    if array.dtype.kind == "b":
        return array.astype(numpy.uint8) * numpy.uint8(255)
    if array.dtype.kind in "iu":
        if array.min() >= 0 and array.max() <= 255:
            return array.astype(numpy.uint8)
        raise BadInput(
            f"integer pixels lie in 0 to 255; found {array.min()} to {array.max()} ({array.dtype}). Scale them, such as"
            " pixels // 256 for 16 bits"
        )
    if array.dtype.kind != "f":
        raise BadInput(
            f"pixels are integers, bools, or floats in [0, 1]; found {array.dtype}. Convert them with "
            ".astype(numpy.uint8)"
        )
    low, high = float(array.min()), float(array.max())
    if not (low >= 0.0 and high <= 1.0):  # NaN fails as well
        hint = "divide by 255" if low >= 0.0 and 1.0 < high <= 255.0 else "scale them, and replace NaN"
        raise BadInput(f"float pixels lie in [0, 1]; found {low:g} to {high:g}. Convert them to uint8, or {hint}")
    return numpy.rint(array * 255.0).astype(numpy.uint8)


def _wrong_shape(what: str, array: NDArray, channels_first: bool) -> str:
    hint = "Reorder its axes"
    if not channels_first and array.ndim >= 3 and array.shape[-3] in _CHANNELS:
        hint = "If the channels come first, say channels_first=True"
    return f"{what}; found shape {tuple(array.shape)}{' with the channels first' if channels_first else ''}. {hint}"
