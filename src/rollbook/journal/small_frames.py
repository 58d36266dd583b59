"""Decodes small frames of plain cells, so that a keeper that reads little need not load msgspec: with what it imports,
that would take 3 MiB of each keeper, more than anything else in it.

Source: the MessagePack specification. What is not in the short list below is left to msgspec, also what is damaged.
"""

from __future__ import annotations

from struct import Struct, error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NUMBERS = {
    0xCA: Struct(">f"),
    0xCB: Struct(">d"),
    0xCC: Struct(">B"),
    0xCD: Struct(">H"),
    0xCE: Struct(">I"),
    0xCF: Struct(">Q"),
    0xD0: Struct(">b"),
    0xD1: Struct(">h"),
    0xD2: Struct(">i"),
    0xD3: Struct(">q"),
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_SIZES = {
    0xC4: Struct(">B"),
    0xC5: Struct(">H"),
    0xD9: Struct(">B"),
    0xDA: Struct(">H"),
    0xDC: Struct(">H"),
    0xDE: Struct(">H"),
}
_MOST_LEVELS = 16


class _Other(Exception):
    """Something else than plain cells."""


def decode_small(data: bytes | memoryview) -> dict[str, Any] | None:
    """The map in a frame; None if it has anything but maps, lists, texts, bytes and numbers, or is damaged."""
    try:
        value, end = _value(bytes(data), 0, 0)
    except (_Other, IndexError, error, UnicodeDecodeError):
        return None
    return value if end == len(data) and type(value) is dict else None


def _value(data: bytes, at: int, level: int) -> tuple[Any, int]:
    """The value at a byte, and the byte after it."""
    kind = data[at]
    at += 1
    if kind < 0x80:
        return kind, at
    if kind >= 0xE0:
        return kind - 256, at
    if kind in _CONSTANTS:
        return _CONSTANTS[kind], at
    number = _NUMBERS.get(kind)
    if number is not None:
        return number.unpack_from(data, at)[0], at + number.size
    if kind < 0xC0:
        size = kind & (0x1F if kind >= 0xA0 else 0x0F)
    elif kind in _SIZES:
        size = _SIZES[kind].unpack_from(data, at)[0]
        at += _SIZES[kind].size
    else:
        raise _Other
    if 0xA0 <= kind < 0xC0 or kind in (0xC4, 0xC5, 0xD9, 0xDA):
        end = at + size
        if end > len(data):
            raise _Other
        return (data[at:end] if kind in (0xC4, 0xC5) else data[at:end].decode()), end
    if level == _MOST_LEVELS:
        raise _Other
    if 0x90 <= kind < 0xA0 or kind == 0xDC:
        items = []
        for _ in range(size):
            item, at = _value(data, at, level + 1)
            items.append(item)
        return items, at
    cells = {}
    for _ in range(size):
        key, at = _value(data, at, level + 1)
        if type(key) is not str:
            raise _Other
        cells[key], at = _value(data, at, level + 1)
    return cells, at
