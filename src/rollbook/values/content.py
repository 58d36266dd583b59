"""The content of any item as bytes and as a 64-bit fingerprint, the same in every process and at any time.

Python's own `hash` is salted per process and refuses lists and dicts. Lists and tuples of the same items have the same
content, and so do dicts in any order. 1 and 1.0 have different content.
"""

from __future__ import annotations

import struct
from _blake2 import blake2b  # the same function as in hashlib, which would load OpenSSL (3 MB)

from rollbook.values.arrays import array_or_none

_DEEPEST = 64


class Contentless(Exception):
    """An object without readable content: equal and different objects cannot be distinguished."""


def fingerprint(data: bytes, kind: bytes = b"text") -> int:
    """A number below 2**64 for `data`; `kind` separates text from bytes and structures that look the same."""
    return int.from_bytes(blake2b(data, digest_size=8, person=kind).digest(), "little")


def fingerprint_of(item: object) -> int | None:
    """The fingerprint of an item in `run.log_samples`; None without readable content."""
    if isinstance(item, str):
        return fingerprint(item.encode("utf-8", "surrogatepass"))
    if isinstance(item, (bytes, bytearray, memoryview)):
        return fingerprint(bytes(item), b"bytes")
    try:
        return fingerprint(canonical(item), b"item")
    except (Contentless, RecursionError):
        return None


def canonical(item: object, depth: int = 0) -> bytes:
    """The bytes that represent `item`.

    Raises:
      Contentless: some part has no readable content (its repr is its address), contains itself, or nests too deeply.
    """
    if depth > _DEEPEST:
        raise Contentless("nests too deeply, or contains itself")
    if item is None:
        return b"N"
    if item is True:
        return b"T"
    if item is False:
        return b"F"
    if isinstance(item, str):
        data = item.encode("utf-8", "surrogatepass")
        return b"s%d:" % len(data) + data
    if isinstance(item, (bytes, bytearray, memoryview)):
        data = bytes(item)
        return b"b%d:" % len(data) + data
    if type(item) is int:
        return b"i%d;" % item
    if type(item) is float:
        return b"f" + struct.pack("<d", item if item == item and item != 0.0 else abs(item))
    if isinstance(item, (list, tuple)):
        return b"l%d:" % len(item) + b"".join([canonical(part, depth + 1) for part in item])
    if hasattr(item, "items") and hasattr(item, "keys"):
        pairs = sorted((canonical(key, depth + 1), canonical(value, depth + 1)) for key, value in item.items())
        return b"d%d:" % len(pairs) + b"".join(key + value for key, value in pairs)
    if isinstance(item, (set, frozenset)):
        return b"S%d:" % len(item) + b"".join(sorted(canonical(part, depth + 1) for part in item))
    return _other(item, depth)


def _other(item: object, depth: int) -> bytes:
    array = array_or_none(item)
    if array is not None:
        if array.ndim == 0:
            return canonical(array.item(), depth + 1)
        head = f"a{array.dtype.str}{array.shape}:".encode()
        return head + bytes(array.tobytes())
    if hasattr(item, "tolist"):  # arrays of text or objects
        return canonical(item.tolist(), depth + 1)
    fields = getattr(type(item), "__dataclass_fields__", None)
    if fields is not None:
        return canonical({name: getattr(item, name) for name in fields}, depth + 1)
    if isinstance(item, int):
        return b"i%d;" % int(item)
    if isinstance(item, float):
        return canonical(float(item), depth + 1)
    text = repr(item)
    if hex(id(item))[2:] in text.lower() or " at 0x" in text:
        raise Contentless(f"a {type(item).__qualname__} has no content that can be read")
    data = text.encode("utf-8", "backslashreplace")
    return b"r%d:" % len(data) + data
