"""Rewrites a Parquet file so that each column is contiguous, instead of split by row groups.

    by_columns("part.parquet")

A reader of one column then needs one range request per file from an object store, for any number of row groups. Parquet
allows chunks at any position: they are copied unchanged, and the footer gets their new positions. Nothing is decoded.
"""

from __future__ import annotations

import os
import struct
from typing import Any, BinaryIO

_MAGIC = b"PAR1"
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 11, 12
_FILE_ROW_GROUPS = 4
_GROUP_COLUMNS, _GROUP_OFFSET = 1, 5
_CHUNK_OFFSET, _CHUNK_META, _CHUNK_INDEXES = 2, 3, (4, 6)
_META_SIZE, _META_OFFSETS, _META_BLOOM = 7, (9, 10, 11), 14
_COPIED = 1 << 20


def by_columns(path: str) -> bool:
    """Make each column of a file contiguous. False, with the file unchanged, if it has at most one row group.

    Raises:
      OSError: no space.
      ValueError: not a Parquet file, or one with indexes besides its chunks.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(size - 8)
        length, magic = struct.unpack("<I4s", file.read(8))
        if magic != _MAGIC or length + 12 > size:
            raise ValueError(f"{path} is not a Parquet file")
        file.seek(size - 8 - length)
        footer = _Reader(file.read(length)).struct()
        groups = [_fields(group) for group in footer[_FILE_ROW_GROUPS][1][1]]
        if len(groups) < 2:
            return False
        chunks = [[_fields(chunk) for chunk in group[_GROUP_COLUMNS][1][1]] for group in groups]
        temporary = f"{path}.columns"
        try:
            with open(temporary, "wb") as new:
                new.write(_MAGIC)
                for of_column in zip(*chunks, strict=True):
                    for chunk in of_column:
                        _move(file, new, chunk)
                for group, own in zip(groups, chunks, strict=True):
                    if _GROUP_OFFSET in group:
                        first = own[0][_CHUNK_META][1]
                        group[_GROUP_OFFSET][1] = min(first[n][1] for n in _META_OFFSETS if n in first)
                encoded = bytearray()
                _write_struct(encoded, footer)
                new.write(encoded + struct.pack("<I4s", len(encoded), _MAGIC))
            os.replace(temporary, path)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise
    return True


def _move(file: BinaryIO, new: BinaryIO, chunk: dict[int, list[Any]]) -> None:
    """Copy a chunk, and record its new position."""
    meta = chunk[_CHUNK_META][1]
    if any(n in chunk for n in _CHUNK_INDEXES) or _META_BLOOM in meta:
        raise ValueError("a Parquet file with indexes besides its chunks is left as it is")
    offsets = [n for n in _META_OFFSETS if n in meta and meta[n][1] > 0]
    start = min(meta[n][1] for n in offsets)
    shift = new.tell() - start
    file.seek(start)
    left = meta[_META_SIZE][1]
    while left:
        data = file.read(min(left, _COPIED))
        if not data:
            raise ValueError("a Parquet file ends before its chunks do")
        new.write(data)
        left -= len(data)
    for n in offsets:
        meta[n][1] += shift
    if chunk[_CHUNK_OFFSET][1] > 0:
        chunk[_CHUNK_OFFSET][1] += shift


def _fields(struct_value: Any) -> dict[int, list[Any]]:
    fields: dict[int, list[object]] = struct_value
    return fields


# -- Thrift's compact protocol, the subset used by Parquet's footers: structs are {number: [type, value]}, lists
# [type of the elements, elements]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _take(self, n: int) -> bytes:
        self._at += n
        return self._data[self._at - n : self._at]

    def struct(self) -> dict[int, list[Any]]:
        fields: dict[int, list[object]] = {}
        number = 0
        while kind := self._data[self._at]:
            self._at += 1
            number = number + (kind >> 4) if kind >> 4 else self._integer()
            kind &= 15
            fields[number] = [kind, None if kind in _BOOLEANS else self._value(kind)]
        self._at += 1
        return fields

    def _value(self, kind: int) -> object:
        if kind in _INTEGERS:
            return self._integer()
        if kind == _BINARY:
            return self._take(self._varint())
        if kind == _STRUCT:
            return self.struct()
        if kind in _LISTS:
            head = self._data[self._at]
            self._at += 1
            n = head >> 4 if head >> 4 < 15 else self._varint()
            return [head & 15, [self._value(head & 15) for _ in range(n)]]
        if kind == _DOUBLE:
            return self._take(8)
        if kind == _BYTE or kind in _BOOLEANS:  # booleans in a list take one byte each
            return self._take(1)
        raise ValueError(f"a Parquet footer with a field of type {kind}")


def _varint_of(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _integer_of(value: int) -> bytes:
    return _varint_of(value << 1 if value >= 0 else (-value << 1) - 1)


def _write_struct(out: bytearray, fields: dict[int, list[Any]]) -> None:
    before = 0
    for number, (kind, value) in fields.items():
        step = number - before
        before = number
        if 0 < step < 16:
            out.append(step << 4 | kind)
        else:
            out.append(kind)
            out += _integer_of(number)
        if kind not in _BOOLEANS:
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        out += _integer_of(value)
    elif kind == _BINARY:
        out += _varint_of(len(value)) + value
    elif kind == _STRUCT:
        _write_struct(out, value)
    elif kind in _LISTS:
        inner, elements = value
        if len(elements) < 15:
            out.append(len(elements) << 4 | inner)
        else:
            out.append(0xF0 | inner)
            out += _varint_of(len(elements))
        for element in elements:
            _write_value(out, inner, element)
    else:
        out += value
