"""Values that are still on a device: copied there at once, fetched later in one batch.

Frameworks are recognised by the attributes of their arrays, never by importing them.
"""

from __future__ import annotations

from rollbook.system.guard import tolerating
from rollbook.values.arrays import host_array, is_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_ASYNC_MODULES = ("jax", "jaxlib", "cupy")


def is_tracer(value: object) -> bool:
    """Whether `value` is a JAX tracer: a placeholder without a number."""
    return any(kind.__name__.endswith("Tracer") and kind.__module__.startswith("jax") for kind in type(value).__mro__)


def is_deferred(value: object) -> bool:
    """Whether reading `value` now would wait for a device.

    True for arrays whose `device` is not host memory, and for all JAX and CuPy arrays (their results are computed
    asynchronously). False for numpy arrays, Python numbers and CPU tensors.
    """
    device = getattr(value, "device", None)
    if device is None:
        return False
    if type(value).__module__.partition(".")[0] in _ASYNC_MODULES:
        return True
    kind = getattr(device, "type", device)  # torch: device.type
    if callable(kind):  # torch.Tensor has no callable device; some libraries spell it device()
        return False
    return not str(kind).lower().startswith(("cpu", "meta"))


def copy_on_device(value: Any) -> object:
    """A copy that the caller cannot overwrite, donate or replay. Made on the device, without waiting for it."""
    value = value.detach() if is_tensor(value) else value
    for name in ("clone", "copy"):
        method = getattr(value, name, None)
        if method is not None:
            return method()
    return value


def fetch(values: Sequence[object]) -> list[object]:
    """The contents of device values, in order, as Python numbers or host arrays; None for one that could not be
    fetched.

    One-element torch tensors of one device and type are fetched together, in one transfer.
    """
    fetched: list[object] = [None] * len(values)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for i, value in enumerate(values):
        kind = type(value)
        single = elements(value) == 1
        groups.setdefault(
            (kind, str(getattr(value, "device", "")), str(getattr(value, "dtype", "")), single), []
        ).append(i)
    for (kind, _device, _dtype, single), indices in groups.items():
        batch = None
        if single and len(indices) > 1 and kind.__module__.partition(".")[0] == "torch":
            batch = _fetch_torch(values, indices)
        for index, i in enumerate(indices):
            fetched[i] = batch[index] if batch is not None else _fetch_one(values[i], single)
    return fetched


def elements(value: Any) -> int:
    """Number of elements of an array; 1 if unknown."""
    size = getattr(value, "size", 1)
    with tolerating(Exception):
        if callable(size):
            return int(value.numel())
        return int(size)
    return 1


def _fetch_torch(values: Sequence[Any], indices: list[int]) -> list[object] | None:
    with tolerating(Exception):
        import torch  # it is installed: these are its tensors

        stacked = torch.stack([values[i].reshape(()) for i in indices])
        numbers: list[object] = stacked.cpu().tolist()
        return numbers
    return None


def _fetch_one(value: Any, single: bool) -> object:
    with tolerating(Exception):
        if single and hasattr(value, "item"):
            return value.item()
        if single:
            return float(value)
        return host_array(value)
    return None
