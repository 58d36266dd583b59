"""Tensors if torch is installed, else numpy arrays: logging needs neither."""

from __future__ import annotations

from importlib.util import find_spec

from rollbook.system.optional import need
from rollbook.values import scalar_of
from rollbook.values.arrays import host_array, is_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import torch

    from rollbook.values.array_types import NDArray

HAS_TORCH = find_spec("torch") is not None


def torch_or_none() -> Any:
    """The module torch, or None if it is not installed."""
    return need("torch", extra="mrl", why="MRL's batch state", also="torch") if HAS_TORCH else None


def to_device(tensor: object, device: object = None) -> Any:
    """A tensor on a device, and every tensor of a list or tuple of them.

    Values without a device (a numpy array, a number) are returned unchanged.

    Args:
      tensor: a tensor, or a list or tuple of tensors.
      device: as torch takes it. None: the GPU if there is one.
    """
    if isinstance(tensor, (list, tuple)):
        return [to_device(part, device) for part in tensor]
    if not hasattr(tensor, "to") or not hasattr(tensor, "device"):
        return tensor
    if device is None:
        torch = torch_or_none()
        device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else "cpu"
    return tensor.to(device)


def zeros(n: int) -> torch.Tensor | NDArray:
    """n zeros: a tensor on the default device, or a float32 array."""
    torch = torch_or_none()
    if torch is not None:
        return to_device(torch.zeros(n))
    import numpy as np

    return np.zeros(n, np.float32)


def mean_of(value: object) -> float | None:
    """The mean of an array or tensor of numbers; a number unchanged; None if it is empty or not numeric."""
    number = scalar_of(value) if not is_tensor(value) else None
    if number is not None:
        return float(number)
    array = host_array(value)
    return float(array.mean()) if array.size and array.dtype.kind in "biuf" else None
