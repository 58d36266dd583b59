"""The numpy array of a tensor or array of any framework, in host memory."""

from __future__ import annotations

from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.values.array_types import NDArray

_RAW_KINDS = "biufcMm"


def is_tensor(value: object) -> bool:
    """Whether `value` is a tensor with an autograd graph, like those of torch."""
    return hasattr(value, "detach")


def host_tensor(value: Any) -> object:
    """A tensor without its graph, in host memory, with a type that numpy has (bfloat16 becomes float32).

    Waits for the device if there is one. Anything else is returned unchanged.
    """
    value = value.detach() if is_tensor(value) else value
    if hasattr(value, "cpu"):
        value = value.cpu()
        if str(getattr(value, "dtype", "")).endswith("bfloat16") and hasattr(value, "float"):
            value = value.float()
    elif hasattr(value, "get") and (hasattr(value, "__cuda_array_interface__") or hasattr(value, "device")):  # CuPy
        value = value.get()
    return value.numpy() if hasattr(value, "numpy") and not hasattr(value, "__array__") else value


def plain_array(value: Any) -> Any:
    """A numpy array with NaN for masked elements, and with a number type of numpy itself.

    bfloat16 and float8 become float32. Anything else is returned unchanged.
    """
    if hasattr(value, "filled") and hasattr(value, "mask"):
        if not value.mask.any():
            value = value.data
        else:
            value = value.astype(float) if value.dtype.kind in "biu" else value
            value = value.filled(float("nan") if value.dtype.kind == "f" else None)
    dtype: Any = getattr(value, "dtype", None)
    if getattr(dtype, "kind", "") == "V" and dtype.fields is None and not dtype.name.startswith("void"):
        return value.astype("<f4")
    return value


def host_array(value: object) -> NDArray:
    """`value` (an array, a tensor on any device, nested lists, a number) as a numpy array in host memory.

    Shares memory with data already there. Waits for the device if there is one.

    Raises:
      TypeError, ValueError, RuntimeError: it cannot be read as an array; the error of its framework.
    """
    import numpy as np

    array: NDArray = plain_array(np.asarray(plain_array(host_tensor(value))))
    return array


def array_or_none(value: Any) -> NDArray | None:
    """The numpy array of a tensor or array; None for anything else, and for arrays of objects.

    Lists and single numbers give None. Waits for the device if there is one.
    """
    if hasattr(value, "__array_interface__"):
        return None if value.dtype.kind == "O" else value
    if not (hasattr(value, "__array__") or hasattr(value, "__dlpack__")):
        return None
    with tolerating(Exception):
        array = host_array(value)
        return array if array.dtype.kind in _RAW_KINDS else None
    return None
