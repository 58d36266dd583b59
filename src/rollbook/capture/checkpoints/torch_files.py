"""Checkpoints written by torch, so that `torch.load(path)` reads them with its defaults.

By default torch accepts only tensors and very simple data. It refuses numpy arrays and scalars, deques, paths and
namespaces. `save` passes these to torch in a plain form (an array becomes a tensor) and adds one record of their types
to the archive. `load` restores the original types; torch alone returns the plain form.
"""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Mapping

from rollbook.capture.checkpoints import container
from rollbook.errors import BadInput, Damaged, MissingExtra
from rollbook.system.guard import raising, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RECORD = "rollbook_types"
_MOST_INT_BITS = 2000  # torch's restricted unpickler reads integers of up to 255 bytes


def holds_tensors(state: object) -> bool:
    """Whether a state contains a torch tensor. Does not import torch: without it there cannot be one."""
    import sys

    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    if tensor is None:
        return False
    seen: set[int] = set()
    waiting = [state]
    while waiting:
        value = waiting.pop()
        if isinstance(value, tensor):
            return True
        if id(value) in seen:
            continue
        if isinstance(value, Mapping):
            seen.add(id(value))
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple, deque)):
            seen.add(id(value))
            waiting.extend(value)
        elif type(value).__name__ in ("Namespace", "SimpleNamespace"):
            seen.add(id(value))
            waiting.extend(vars(value).values())
    return False


def save(path: str | os.PathLike[str], state: object) -> None:
    """Write a state with tensors to a new file.

    Raises:
      BadInput: something in it has no plain form; the message names it. OSError, RuntimeError: the disk fails, reported
        by torch.
    """
    import torch

    with raising(container.too_deep, RecursionError):
        plain, types = _plain(state, "state", ())
    with open(path, "wb") as file:  # given a name, torch would store it in the archive
        torch.save(plain, file)
    if types is not None:
        from zipfile import ZipFile

        record = container.pack(types)
        with ZipFile(path, "a") as archive:
            folder = archive.namelist()[0].partition("/")[0]
            archive.writestr(f"{folder}/{_RECORD}", record)


def is_torch_file(path: str | os.PathLike[str]) -> bool:
    """Whether the file is an archive in torch's format."""
    from zipfile import BadZipFile, ZipFile

    with tolerating(OSError, BadZipFile), ZipFile(path) as archive:
        return any(name.endswith("/data.pkl") for name in archive.namelist())
    return False


def load(path: str | os.PathLike[str], *, weights_only: bool = True, map_location: object = None) -> Any:
    """The saved state. Every part keeps its type.

    Args:
      weights_only: torch's own guard. False executes code from the file; use it only for files of your own.
      map_location: as for `torch.load`, e.g. "cpu".
    Raises:
      Damaged: the record of types does not fit. MissingExtra: torch is not installed. Any exception of `torch.load`.
    """
    from zipfile import ZipFile

    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtra(
            f"the checkpoint {os.fspath(path)} needs torch, which is not installed: pip install torch"
        ) from None
    state = torch.load(path, weights_only=weights_only, map_location=map_location)
    with ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(f"/{_RECORD}")]
        record = archive.read(names[0]) if names else None
    if record is None:
        return state
    with raising(
        lambda err: Damaged(f"{os.fspath(path)}: its record of types contradicts itself ({err})"),
        *(AttributeError, LookupError, TypeError, ValueError),
        chained=True,
    ):
        return _typed(state, container.unpack(record))


def _plain(value: Any, path: str, above: tuple[int, ...]) -> tuple[object, object]:
    """The form of a value for torch, and the way back: None if it is the value itself.

    The way back is [kind, arguments, {index of an inner value: its way back}]; indices count in order of iteration.
    """
    import torch

    kind = type(value)
    if value is None or kind in (bool, float, str, bytes, complex, bytearray) or isinstance(value, torch.Tensor):
        return value, None
    if kind is int:
        return (value, None) if value.bit_length() <= _MOST_INT_BITS else (hex(value), ["tree", ["i", hex(value)], {}])
    if kind in (torch.Size, torch.dtype, torch.device):
        return value, None
    if id(value) in above:
        raise BadInput(f"{path} contains itself, which a checkpoint cannot hold. Save the part you need.")
    above = (*above, id(value))
    if isinstance(value, Mapping):
        return _plain_mapping(value, path, above)
    if isinstance(value, (list, tuple, deque)):
        pairs = [_plain(inner, f"{path}[{i}]", above) for i, inner in enumerate(value)]
        inside = {i: back for i, (_, back) in enumerate(pairs) if back is not None}
        if isinstance(value, deque):
            return [plain for plain, _ in pairs], ["deque", value.maxlen, inside]
        if not inside and kind in (list, tuple):
            return value, None
        new: Any = [plain for plain, _ in pairs]
        return (new if isinstance(value, list) else tuple(new)), (["same", None, inside] if inside else None)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _plain_array(value, path)
    if kind.__name__ in ("Namespace", "SimpleNamespace") and kind.__module__ in ("argparse", "types"):
        plain, back = _plain_mapping(vars(value), path, above)
        return plain, ["space", kind.__name__, back[2] if back is not None else {}]
    if kind is set and all(type(inner) in (int, float, str, bool, type(None)) for inner in value):
        return value, None
    blobs: list[Any] = []
    tree = container.tree_of(value, blobs, path, above[:-1])  # sets, ranges, paths …: small, stored in the record
    if blobs:
        raise BadInput(f"{path}, a {kind.__qualname__}, holds arrays or long bytes. Use a list instead.")
    return str(value), ["tree", tree, {}]


def _plain_mapping(value: Mapping[Any, object], path: str, above: tuple[int, ...]) -> tuple[Any, Any]:
    pairs: list[tuple[object, object]] = []
    inside: dict[int, object] = {}
    changed = type(value) not in (dict, OrderedDict)
    for index, (key, inner) in enumerate(value.items()):
        plain_key = _plain_key(key, path)
        plain, back = _plain(inner, f"{path}[{key!r}]", above)
        if back is not None:
            inside[index] = back
        changed = changed or plain is not inner or type(plain_key) is not type(key)
        pairs.append((plain_key, plain))
    if not changed:
        return value, None  # the object itself: torch needs the attributes of a module's state dict
    ordered = isinstance(value, OrderedDict)
    new: Any = OrderedDict(pairs) if ordered else dict(pairs)
    if ordered and hasattr(value, "_metadata"):
        new._metadata = value._metadata
    return new, (["same", None, inside] if inside else None)


def _plain_key(key: object, path: str) -> object:
    if key is None or type(key) in (str, int, float, bool, bytes):
        return key
    if isinstance(key, tuple):
        return tuple(_plain_key(inner, path) for inner in key)
    for exact in (str, int, float):
        if isinstance(key, exact):
            return exact(key)
    if hasattr(key, "item"):
        return key.item()
    raise BadInput(f"{path} has a key of type {type(key).__qualname__}, which torch.load refuses. Use text or numbers.")


def _plain_array(value: Any, path: str) -> tuple[object, object]:
    import numpy
    import torch

    if isinstance(value, (numpy.ma.MaskedArray, numpy.generic)):
        tree = container.tree_of(value, [], path)
        item = value.item() if value.dtype.kind in "biuf" and value.dtype.itemsize <= 8 else str(value)
        return item, ["tree", tree, {}]
    given = container.as_array(value, path)
    array = numpy.ascontiguousarray(given).reshape(given.shape)
    spec = container.dtype_spec(array.dtype, path)
    back = ["array", [spec, list(array.shape)], {}]
    with tolerating(TypeError, ValueError):  # text, times, structures, foreign byte order: as bytes
        return torch.from_numpy(array.copy() if not array.flags.writeable else array), back
    return torch.frombuffer(bytearray(container.array_bytes(array)) or bytearray(1), dtype=torch.uint8), back


def _typed(value: Any, back: Any) -> Any:
    kind, arguments, inside = back
    if inside:
        if isinstance(value, Mapping):
            for index, key in enumerate(list(value)):
                if index in inside:
                    value[key] = _typed(value[key], inside[index])  # type: ignore[index]
        else:
            items = [_typed(inner, inside[i]) if i in inside else inner for i, inner in enumerate(value)]
            value = tuple(items) if isinstance(value, tuple) else items
    if kind == "same":
        return value
    if kind == "deque":
        return deque(value, maxlen=arguments)
    if kind == "space":
        from argparse import Namespace
        from types import SimpleNamespace

        return Namespace(**value) if arguments == "Namespace" else SimpleNamespace(**value)
    if kind == "array":
        import numpy

        dtype, shape = container.dtype_from(arguments[0]), tuple(arguments[1])
        array = value.cpu().numpy()
        if array.dtype == dtype:
            return array.reshape(shape)
        size = int(numpy.prod(shape, dtype=numpy.int64))
        return numpy.frombuffer(array.tobytes(), dtype, count=size).reshape(shape).copy()
    return container.tree_from(arguments, None)
