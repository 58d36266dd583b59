"""The numpy array of a tensor or array of any framework, in host memory."""

from __future__ import annotations

from rollbook.ground.foreign import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.ground.array_types import NDArray

__all__ = [
    "array_or_none",
    "host_array",
    "host_tensor",
    "is_array",
    "is_tensor",
    "with_known_numbers",
    "without_graph",
    "without_mask",
]

_RAW_KINDS = "biufcMm"


def is_array(value: Any) -> bool:
    """Whether `value` is a numpy array of numbers with at least one axis: it can be stored as raw bytes."""
    return hasattr(value, "__array_interface__") and value.ndim > 0 and value.dtype.kind in _RAW_KINDS


def is_tensor(value: object) -> bool:
    """Whether `value` is a tensor with a graph behind it, as torch's are."""
    return hasattr(value, "detach")


def without_graph(value: object) -> object:
    """A tensor that keeps no graph alive, where it lies; anything else as it is."""
    return value.detach() if hasattr(value, "detach") else value


def host_tensor(value: Any) -> object:
    """A tensor without its graph, in host memory, of a type that numpy has (bfloat16 becomes float32).

    Waits for the device if there is one. Anything else is returned as it is.
    """
    value = without_graph(value)
    if hasattr(value, "cpu"):
        value = value.cpu()
        if str(getattr(value, "dtype", "")).endswith("bfloat16") and hasattr(value, "float"):
            value = value.float()
    elif hasattr(value, "get") and (hasattr(value, "__cuda_array_interface__") or hasattr(value, "device")):  # CuPy
        value = value.get()
    return value.numpy() if hasattr(value, "numpy") and not hasattr(value, "__array__") else value


def without_mask(value: Any) -> Any:
    """A masked array of numpy as an array with NaN for what is masked; anything else as it is."""
    if not (hasattr(value, "filled") and hasattr(value, "mask")):
        return value
    if not value.mask.any():
        return value.data
    if value.dtype.kind in "biu":
        value = value.astype(float)
    return value.filled(float("nan") if value.dtype.kind == "f" else None)


def host_array(value: object) -> NDArray:
    """`value` (an array, a tensor on any device, nested lists, a number) as a numpy array in host memory.

    Shares memory with what lies there already. Waits for the device if there is one.

    Raises:
      TypeError, ValueError, RuntimeError: it cannot be read as an array; what its framework says.
    """
    import numpy as np

    return with_known_numbers(np.asarray(without_mask(host_tensor(value))))


def with_known_numbers(array: NDArray) -> NDArray:
    """An array of bfloat16 or float8 (types that numpy itself lacks) as float32, every other one as it is."""
    dtype = array.dtype
    if dtype.kind == "V" and dtype.fields is None and not dtype.name.startswith("void"):
        return array.astype("<f4")
    return array


def array_or_none(value: Any) -> NDArray | None:
    """The numpy array that a tensor or array stands for, or None for what is neither, and for arrays of objects.

    Lists and single numbers are neither. Waits for the device if there is one.
    """
    if hasattr(value, "__array_interface__"):
        return None if value.dtype.kind == "O" else value
    if not (hasattr(value, "__array__") or hasattr(value, "__dlpack__")):
        return None
    try:
        array = host_array(value)
    except ours(Exception):
        return None
    return array if array.dtype.kind in _RAW_KINDS else None
