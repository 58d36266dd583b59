"""The `.ckpt` file: a tree of plain values and raw arrays, with exact types, read without pickle.

    write(file, {"weights": numpy.zeros(3, "f4"), "rng": generator.bit_generator.state, "queue": deque([1], maxlen=5)})
    state = read(path)

    offset 0    8s   magic "RBKCKP1\\n"
           8    u32  version
          12    u32  crc32 of the meta
          16    u64  offset of the meta
          24    u64  size of the meta
          32    u32  crc32 of bytes 0..32, then zeros up to 64
          64         arrays and long byte strings, raw, each at a multiple of 64
           …         meta, msgpack: {"tree": …, "blobs": [[offset, size, crc32], …]}

In the tree None, bool, int64, float and text stand for themselves; everything else is a list that begins with a tag.
Dict subclasses are read back as dicts (OrderedDicts as themselves), named tuples as tuples, arrays of other libraries
(JAX and anything with `__array__`) as numpy arrays.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections import OrderedDict, deque
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

from rollbook.errors import BadInput, Damaged, MissingExtra
from rollbook.schema.checkpoint_files import CHUNK, HEAD, HEAD_SIZE, MAGIC, VERSION, meta_of
from rollbook.system.guard import raising, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, BinaryIO

    from rollbook.values.array_types import NDArray


_ALIGN = 64
_INLINE = 4096  # shorter byte strings are stored in the meta


def write(file: BinaryIO, state: object) -> None:
    """Write a whole container to an empty file open for writing. Arrays are written one by one, without a copy of all.

    Raises:
      BadInput: something in the state has no plain form; the message names it. The file is then unusable.
      OSError: the disk fails.
    """
    blobs: list[object] = []
    with raising(too_deep, RecursionError):
        tree = tree_of(state, blobs)
        pack(tree)
    file.write(bytes(HEAD_SIZE))
    spans: list[list[int]] = []
    position = HEAD_SIZE
    for blob in blobs:
        padding = -position % _ALIGN
        file.write(bytes(padding))
        position += padding
        view = array_bytes(blob)
        crc = 0
        for start in range(0, len(view), CHUNK):
            piece = view[start : start + CHUNK]
            crc = zlib.crc32(piece, crc)
            file.write(piece)
        spans.append([position, len(view), crc])
        position += len(view)
    meta = pack({"tree": tree, "blobs": spans})
    file.write(meta)
    head = HEAD.pack(MAGIC, VERSION, zlib.crc32(meta), position, len(meta))
    file.seek(0)
    file.write(head + struct.pack("<I", zlib.crc32(head)))


def is_container(path: str | os.PathLike[str]) -> bool:
    """Whether the file begins like a container."""
    with tolerating(OSError), open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC
    return False


def read(path: str | os.PathLike[str]) -> Any:
    """The state that was written, with new, writable arrays.

    Raises:
      Damaged: the file is cut off, or a checksum differs. NewerFormat: a later rollbook wrote it. OSError: the disk
        fails.
    """
    where = os.fspath(path)
    with open(path, "rb") as file:
        meta, meta_at = meta_of(file, where)
        with raising(
            lambda err: Damaged(f"{where}: its content contradicts itself ({type(err).__name__}: {err})"),
            *(AttributeError, LookupError, TypeError, ValueError, RecursionError, OverflowError),
            chained=True,
        ):
            content = unpack(meta)
            blobs = _Blobs(file, where, meta_at, content["blobs"])
            return tree_from(content["tree"], blobs)


class _Blobs:
    """The raw parts of an open container."""

    def __init__(self, file: BinaryIO, where: str, end: int, spans: list[list[int]]) -> None:
        self._file, self._where, self._spans = file, where, spans
        for at, size, _ in spans:
            if at < HEAD_SIZE or size < 0 or at + size > end:
                raise Damaged(f"{where}: a part is outside the file")

    def into(self, number: int, target: memoryview) -> None:
        at, size, crc = self._spans[number]
        if size != len(target):
            raise Damaged(f"{self._where}: part {number} has {size} bytes where its shape needs {len(target)}")
        self._file.seek(at)
        filled = 0
        for start in range(0, size, CHUNK):
            piece = target[start : start + CHUNK]
            if self._file.readinto(piece) != len(piece):  # type: ignore[attr-defined]
                raise Damaged(f"{self._where}: part {number} is cut short")
            filled = zlib.crc32(piece, filled)
        if filled != crc:
            raise Damaged(f"{self._where}: part {number} is damaged (checksum differs)")

    def size(self, number: int) -> int:
        return int(self._spans[number][1])


def tree_of(state: Any, blobs: list[object], path: str = "state", above: tuple[int, ...] = ()) -> object:
    """The tree of a state; its arrays and long byte strings are appended to `blobs`.

    Raises:
      BadInput: see `write`.
    """
    if state is None or type(state) in (bool, float):
        return state
    atom = _atom(state, blobs)
    if atom is not None:
        return atom
    if id(state) in above:
        raise BadInput(f"{path} contains itself, which a .ckpt file cannot hold. Save the part you need.")
    above = (*above, id(state))
    if hasattr(state, "dtype") and hasattr(state, "shape"):
        return _array(state, blobs, path)
    if isinstance(state, Mapping):
        items: list[object] = ["o" if isinstance(state, OrderedDict) else "d"]
        for key, value in state.items():
            items.append(tree_of(key, blobs, f"a key of {path}", above))
            items.append(tree_of(value, blobs, f"{path}[{key!r}]", above))
        return items
    if isinstance(state, (list, tuple, deque)):
        inner = [tree_of(value, blobs, f"{path}[{i}]", above) for i, value in enumerate(state)]
        if isinstance(state, deque):
            return ["q", state.maxlen, *inner]
        return ["l" if isinstance(state, list) else "t", *inner]
    if isinstance(state, (set, frozenset)):
        inner = [tree_of(value, blobs, f"an element of {path}", above) for value in state]
        return ["s" if isinstance(state, set) else "f", *inner]
    tag, content = _small_object(state, path)
    inner_tree = tree_of(content, blobs, path, above)
    return [tag, inner_tree] if tag else inner_tree


def _atom(state: Any, blobs: list[object]) -> object:
    """The tree of a value that contains no others; None if it is of no such kind."""
    kind = type(state)
    if kind is int:
        return state if -(2**63) <= state < 2**63 else ["i", hex(state)]
    if isinstance(state, str):
        text = str.__str__(state)
        with tolerating(UnicodeEncodeError) as missed:
            text.encode()
        return ["u", text.encode("utf-8", "surrogatepass")] if missed else text
    if kind is bytes or kind is bytearray:
        tag = "b" if kind is bytes else "y"
        if len(state) < _INLINE:
            return [tag, bytes(state)]
        blobs.append(state)
        return [tag, len(blobs) - 1]
    if kind is complex:
        return ["c", state.real, state.imag]
    if kind is range or kind is slice:
        return ["r" if kind is range else "k", state.start, state.stop, state.step]
    return None


def _small_object(state: Any, path: str) -> tuple[str, object]:
    """The tag and the content of a path, a namespace, or a number of a subclass such as an integer enum ("" as tag)."""
    kind = type(state)
    if hasattr(state, "__fspath__"):
        return "p", os.fsdecode(state)
    if kind.__name__ in ("Namespace", "SimpleNamespace") and kind.__module__ in ("argparse", "types"):
        return "n" if kind.__name__ == "Namespace" else "m", vars(state)
    for exact in (int, float):
        if isinstance(state, exact):
            return "", exact(state)
    raise BadInput(
        f"{path} is a {kind.__module__}.{kind.__qualname__}, which cannot be written as plain values and arrays. Put "
        "its state into the checkpoint instead (its state_dict(), bit_generator.state, …), or use write= with a "
        "function that saves it in its own way."
    )


def tree_from(tree: object, blobs: object) -> Any:
    """The state of a tree. `blobs` gives the raw parts by number (`size`, `into`); None if there can be none.

    Raises:
      Damaged, KeyError, IndexError, TypeError, ValueError: the tree was not made by `tree_of`.
    """
    if type(tree) is not list:
        return tree
    tag, *rest = tree
    if tag in _ATOMS:
        return _ATOMS[tag](*rest)
    if tag in _COMPOUNDS:
        return _COMPOUNDS[tag]([tree_from(item, blobs) for item in rest])
    if tag == "a":
        return _array_from(rest, blobs)
    if tag in ("b", "y"):
        data = rest[0] if isinstance(rest[0], bytes) else _long_bytes(rest[0], blobs)
        return bytes(data) if tag == "b" else bytearray(data)
    if tag == "q":
        return deque((tree_from(item, blobs) for item in rest[1:]), maxlen=rest[0])
    raise Damaged(f"a checkpoint holds a value of kind {tag!r}, which rollbook does not write")


def _scalar_from(spec: object, value: Any) -> object:
    dtype = dtype_from(spec)
    if not isinstance(value, bytes) or not value:
        return dtype.type(value)
    import numpy

    return numpy.frombuffer(value, dtype)[0]


def _pairs(parts: list[Any]) -> Iterable[tuple[Any, Any]]:
    return zip(parts[::2], parts[1::2], strict=True)


def _namespace(parts: list[Any]) -> object:
    from argparse import Namespace

    return Namespace(**parts[0])


_ATOMS: dict[str, Callable[..., object]] = {
    "i": lambda digits: int(digits, 16),
    "c": complex,
    "u": lambda data: data.decode("utf-8", "surrogatepass"),
    "r": range,
    "k": slice,
    "g": _scalar_from,
}
_COMPOUNDS: dict[str, Callable[[list[Any]], object]] = {
    "l": list,
    "t": tuple,
    "s": set,
    "f": frozenset,
    "d": lambda parts: dict(_pairs(parts)),
    "o": lambda parts: OrderedDict(_pairs(parts)),
    "p": lambda parts: Path(parts[0]),
    "n": _namespace,
    "m": lambda parts: SimpleNamespace(**parts[0]),
}


def too_deep(_err: object) -> BadInput:
    """The error for a state that nests too deeply."""
    return BadInput("the state nests too deeply to be written. Save a flatter one.")


def dtype_spec(dtype: Any, path: str = "an array") -> object:
    """A numpy dtype as plain data: its string, a list for structures, ["x", name] for types of `ml_dtypes`.

    Raises:
      BadInput: its elements are Python objects.
    """
    if dtype.hasobject or dtype.kind in "OT":
        raise BadInput(
            f"{path} is an array of Python objects ({dtype}), which cannot be written as raw values. Convert it to "
            "numbers or to a list, or use write= with a function that saves it in its own way."
        )
    if dtype.fields is not None:
        from numpy.lib.format import dtype_to_descr

        return dtype_to_descr(dtype)
    if dtype.kind == "V" and not dtype.name.startswith("void"):  # bfloat16, float8_e4m3 …
        return ["x", dtype.name]
    return dtype.str


def dtype_from(spec: Any) -> Any:
    """The dtype of a `dtype_spec`.

    Raises:
      MissingExtra: it needs `ml_dtypes`, which is not installed. TypeError, ValueError: the input is not a dtype spec.
    """
    import numpy

    if isinstance(spec, str):
        return numpy.dtype(spec)
    if len(spec) == 2 and spec[0] == "x":
        try:
            import ml_dtypes  # type: ignore[import-not-found,unused-ignore]
        except ModuleNotFoundError:
            raise MissingExtra(
                f"an array of {spec[1]} needs ml_dtypes, which is not installed: pip install ml_dtypes"
            ) from None
        return numpy.dtype(getattr(ml_dtypes, spec[1]))
    from numpy.lib.format import descr_to_dtype

    return descr_to_dtype(_descr(spec))


def _descr(spec: Any) -> Any:
    # msgpack has lists where numpy wants tuples
    if isinstance(spec, str):
        return spec
    return [(_title(field[0]), _descr(field[1]), *map(tuple, field[2:])) for field in spec]


def _title(name: Any) -> object:
    return name if isinstance(name, str) else tuple(name)


def array_bytes(blob: Any) -> memoryview:
    """The bytes of an array in C order, or of a byte string; without a copy if the array is in C order already."""
    if isinstance(blob, (bytes, bytearray)):
        return memoryview(blob)
    import numpy

    if blob.nbytes == 0:
        return memoryview(b"")
    return numpy.ascontiguousarray(blob).reshape(-1).view(numpy.uint8).data


def as_array(value: object, path: str) -> NDArray:
    """The values of an array as numpy has them.

    Raises:
      BadInput: it does not give them; `path` says where it is in the state.
    """
    import numpy

    wrong = f"{path} ({type(value).__qualname__}) does not give its values as an array"
    with raising(lambda err: BadInput(f"{wrong}: {err}"), Exception, chained=True):
        return numpy.asarray(value)


def _array(value: object, blobs: list[object], path: str) -> object:
    import numpy

    if isinstance(value, numpy.ma.MaskedArray):
        raise BadInput(f"{path} is a masked array. Save its .data and its .mask, each under its own name.")
    if isinstance(value, numpy.generic):
        if value.dtype.kind in "biuf" and value.dtype.itemsize <= 8:
            return ["g", value.dtype.str, value.item()]
        return ["g", dtype_spec(value.dtype, path), value.tobytes()]
    array = as_array(value, path)
    spec = dtype_spec(array.dtype, path)
    blobs.append(array)
    return ["a", spec, list(array.shape), len(blobs) - 1]


def _array_from(rest: list[Any], blobs: Any) -> object:
    import numpy

    dtype = dtype_from(rest[0])
    shape = tuple(rest[1])
    size = dtype.itemsize
    for length in shape:
        size *= length
    if dtype.hasobject or any(length < 0 for length in shape) or size != blobs.size(rest[2]):
        raise Damaged(f"an array of {dtype} and shape {shape} does not fit its {blobs.size(rest[2])} bytes")
    array = numpy.empty(shape, dtype)
    if size:
        blobs.into(rest[2], array.reshape(-1).view(numpy.uint8).data)
    return array


def _long_bytes(number: int, blobs: Any) -> bytearray:
    data = bytearray(blobs.size(number))
    blobs.into(number, memoryview(data))
    return data


def pack(data: object) -> bytes:
    """Plain data as msgpack."""
    import msgspec

    return msgspec.msgpack.encode(data)


def unpack(data: bytes) -> Any:
    """Plain data from msgpack.

    Raises:
      ValueError: the input is not msgpack.
    """
    import msgspec

    try:
        return msgspec.msgpack.decode(data)
    except msgspec.MsgspecError as err:
        raise ValueError(str(err)) from None
