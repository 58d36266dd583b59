"""Protocol buffer messages without their definitions: the fields of a message by number.

The wire format is described at https://protobuf.dev/programming-guides/encoding/. Reading a tool's files this way
needs neither the tool nor a compatible version of protobuf.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class BadMessage(ValueError):
    """Bytes that are not a message."""


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field: an integer for a varint, bytes for everything else.

    Raises:
      BadMessage: the bytes end inside a field, or are not a valid message.
    """
    at, end = 0, len(data)
    try:
        while at < end:
            tag = data[at]
            at += 1
            if tag > 127:
                tag, at = _varint(data, at - 1)
            form = tag & 7
            if form == 2:
                length = data[at]
                at += 1
                if length > 127:
                    length, at = _varint(data, at - 1)
                if at + length > end:
                    raise BadMessage("a field ends behind its message")
                yield tag >> 3, data[at : at + length]
                at += length
            elif form == 0:
                value, at = _varint(data, at)
                yield tag >> 3, value
            elif form in (1, 5):
                length = 8 if form == 1 else 4
                if at + length > end:
                    raise BadMessage("a field ends behind its message")
                yield tag >> 3, data[at : at + length]
                at += length
            else:
                raise BadMessage(f"a field of the form {form}")
    except IndexError:
        raise BadMessage("a field ends behind its message") from None


def first(data: bytes, number: int) -> int | bytes | None:
    """The value of the first field of that number; None if there is none."""
    return next((value for found, value in fields(data) if found == number), None)


def signed(value: int | bytes | None) -> int:
    """An int64 that was read as a varint; 0 if there is none."""
    if not isinstance(value, int):
        return 0
    return value - (1 << 64) if value >= 1 << 63 else value


def moment(value: int | bytes | None) -> float:
    """A google.protobuf.Timestamp in unix seconds; 0.0 if there is none."""
    if not isinstance(value, bytes):
        return 0.0
    return signed(first(value, 1)) + signed(first(value, 2)) / 1e9


def double(value: int | bytes | None) -> float | None:
    """A double or float field; None for anything else."""
    if not isinstance(value, bytes) or len(value) not in (4, 8):
        return None
    number: float = struct.unpack("<d" if len(value) == 8 else "<f", value)[0]
    return number


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise BadMessage("a number of more than 64 bits")
