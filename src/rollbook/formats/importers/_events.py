"""TensorBoard's event files as bytes: the records of a file, and the values of a record.

A record is its length (eight bytes), a checksum of those, the content and a checksum of that; the content is the
message Event of tensorflow/core/util/event.proto. The field numbers below are those of that file, of summary.proto,
tensor.proto and types.proto next to it, and of the hparams plugin's plugin_data.proto.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from typing import NamedTuple

from rollbook.formats.importers._wire import BadMessage, double, fields, first, signed
from rollbook.values import Histogram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from rollbook.protocols import ForeignRun

_POLYNOMIAL = 0x82F63B78
_TABLE: list[int] = []
_MASK = 0xA282EAD8
"""TensorFlow rotates a checksum and adds this, so that checksums of bytes that contain checksums are also useful."""
_CHUNK = 1 << 20
_HEAD = struct.Struct("<QI")
_LENGTH = struct.Struct("<Q")
_TIME = 0x09
"""What an event begins with: its field 1, eight bytes."""

_MOST_LENGTHS = 10_000

_TEXT, _HALF = 7, 19
_NUMBERS = {
    1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", 17: "<u2", 19: "<f2", 22: "<u4",
    23: "<u8",
}  # fmt: skip
"""The tensor types that are numbers, with numpy's names."""

_LISTS = {5: "<f4", 6: "<f8"}
"""The fields of a tensor that hold numbers of a fixed width; the others are varints."""

_VARINTS = (7, 10, 11, 13, 16, 17)


class Tagged(NamedTuple):
    """One value of a summary.

    Attributes:
      form: "simple", "image", "histo", "audio" or "tensor"; "" for none of them.
      plugin: the plugin that it is for; writers only set it with the first value of a tag.
      content: the value's own bytes; without a value, those of the plugin.
    """

    tag: str
    form: str
    content: bytes
    plugin: str
    about: bytes


_FORMS = {2: "simple", 4: "image", 5: "histo", 6: "audio", 8: "tensor"}


def records(path: str | os.PathLike[str], run: ForeignRun, most: int = -1) -> Iterator[bytes]:
    """The records of an event file, in order, each with a correct checksum.

    A record with damaged content is skipped. After a record with a damaged length, nothing more can be read.

    Args:
      run: counts each unreadable part.
      most: stop at the first record after this many bytes; -1 reads all.
    """
    checksum = _checksum()
    sound: dict[bytes, int] = {}  # lengths with their checksums, once compared: a file has few
    with open(path, "rb") as file:
        data, at, read = b"", 0, 0
        while True:
            if len(data) - at < 12:
                data, at = data[at:] + file.read(_CHUNK), 0
                if not data:
                    return
                if len(data) < 12:
                    run.leave_out("ends of files that were cut short")
                    return
            if 0 <= most <= read:
                return
            head = data[at : at + 12]
            length = sound.get(head, -1)
            if length < 0:
                length, expected = _HEAD.unpack(head)
                crc = checksum(head[:8])
                if ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF != expected:
                    run.lose("ends of files, from a damaged record on")
                    return
                if len(sound) < _MOST_LENGTHS:
                    sound[head] = length
            end = at + 12 + length
            if len(data) < end + 4:
                data, at, end = data[at:], 0, 12 + length
                data += file.read(max(_CHUNK, min(end + 4 - len(data), 1 << 40)))
                if len(data) < end + 4:
                    run.leave_out("ends of files that were cut short")
                    return
            content = data[at + 12 : end]
            read += length + 16
            at = end + 4
            crc = checksum(content)
            if ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF != int.from_bytes(data[end:at], "little"):
                run.lose("records whose checksum is wrong")
                continue
            yield content


def last_moment(path: str | os.PathLike[str]) -> float:
    """The time of the last whole record of an event file, in unix seconds; 0 if there is none. Nothing is checked."""
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at, last = 0, -1
            while at + 16 <= size:
                end = at + 16 + _LENGTH.unpack_from(data, at)[0]
                if end > size:
                    break
                last, at = at, end
            is_told = last >= 0 and data[last + 12] == _TIME
            return (double(data[last + 13 : last + 21]) or 0.0) if is_told else 0.0
    except (OSError, ValueError, struct.error):
        return 0.0


def tag_values(values: bytes) -> Iterator[Tagged]:
    """The values of a summary.

    Raises:
      BadMessage: not a summary.
    """
    for number, value in fields(values):
        if number != 1 or not isinstance(value, bytes):
            continue
        tag, form, content, plugin, about = "", "", b"", "", b""
        for inner, encoded in fields(value):
            if not isinstance(encoded, bytes):
                continue
            if inner == 1:
                tag = encoded.decode("utf-8", "backslashreplace")
            elif inner == 9:
                data = first(encoded, 1)
                if isinstance(data, bytes):
                    named, about = first(data, 1), _bytes(first(data, 2))
                    plugin = named.decode("utf-8", "backslashreplace") if isinstance(named, bytes) else ""
            elif inner in _FORMS:
                form, content = _FORMS[inner], encoded
        yield Tagged(tag, form, content, plugin, about)


def histogram_of(data: bytes) -> Histogram | None:
    """A histogram in TensorBoard's old form: upper edges and counts."""
    by_number = dict(fields(data))
    limits, counts = _doubles(by_number.get(6)), _doubles(by_number.get(7))
    if not limits or len(limits) != len(counts):
        return None
    low, high, total, squares = (double(by_number.get(number)) or 0.0 for number in (1, 2, 4, 5))
    edges = [low if low < limits[0] else limits[0], *limits]
    return Histogram(edges, counts, low=low, high=high, total=total, total_squares=squares)


def tensor_of(data: bytes) -> Any:
    """A tensor: an array of numbers, or a list of the bytes of its texts; None if it is neither, or damaged."""
    import numpy as np

    kind, shape, content, texts = 0, [], b"", []
    listed: list[Any] = []
    for number, value in fields(data):
        if number == 1:
            kind = signed(value)
        elif number == 2 and isinstance(value, bytes):
            dims = [inner for field, inner in fields(value) if field == 2 and isinstance(inner, bytes)]
            shape = [signed(first(dim, 1)) for dim in dims]
        elif number == 4 and isinstance(value, bytes):
            content = value
        elif number == 8 and isinstance(value, bytes):
            texts.append(value)
        elif number in _LISTS and isinstance(value, bytes):
            listed += np.frombuffer(value, _LISTS[number]).tolist()
        elif number in _VARINTS:
            listed += [signed(value)] if isinstance(value, int) else _varints(value)
    if kind == _TEXT:
        return texts
    if kind not in _NUMBERS:
        return None
    return _array(kind, shape, content, listed)


def _array(kind: int, shape: list[int], content: bytes, listed: list[Any]) -> Any:
    """The numbers of a tensor, stored as bytes or one by one; None if they do not fit its shape."""
    import numpy as np

    size = math.prod(shape)
    try:
        if content:
            return np.frombuffer(content, _NUMBERS[kind]).reshape(shape)
        if kind == _HALF:
            array = np.array(listed, np.uint16).view(np.float16)
        else:
            array = np.array(listed, _NUMBERS[kind])
        if len(array) == 1 and size > 1:  # one number for all elements
            array = np.repeat(array, size if size <= 1_000_000 else 1)
        return array.reshape(shape)
    except (ValueError, OverflowError):
        return None


def images_of(summary: Tagged) -> list[tuple[int, int, bytes]]:
    """(width, height, encoded bytes) of each image of a value: an Image, or a tensor of two sizes and the images."""
    if summary.form == "image":
        by_number = dict(fields(summary.content))
        height, width = (value if isinstance(value, int) else 0 for value in (by_number.get(1), by_number.get(2)))
        return [(width, height, _bytes(by_number.get(4)))]
    texts = tensor_of(summary.content)
    if not isinstance(texts, list) or len(texts) < 2:
        return []
    width, height = (int(size) if size.isdigit() else 0 for size in texts[:2])
    return [(width, height, image) for image in texts[2:]]


def layout_of(value: Tagged) -> dict[str, list[list[str]]]:
    """Category -> its charts, each a list of tags, of a value of the plugin "custom_scalars"; empty if it is none.

    A chart of margins has three tags of each of its series: the value, its lower and its upper end.
    """
    texts = tensor_of(value.content) if value.form == "tensor" else None
    boards: dict[str, list[list[str]]] = {}
    for layout in texts if isinstance(texts, list) else []:
        for category in _messages(layout, 2):
            name = _text(first(category, 1))
            for chart in _messages(category, 2):
                tags = [_text(tag) for lines in _messages(chart, 2) for tag in _messages(lines, 1)]
                for margins in _messages(chart, 3):
                    tags += [_text(first(one, n)) for one in _messages(margins, 1) for n in (1, 2, 3)]
                if tags:
                    boards.setdefault(name, []).append([tag for tag in tags if tag])
    return boards


def _messages(data: bytes, number: int) -> list[bytes]:
    return [value for field, value in fields(data) if field == number and isinstance(value, bytes)]


def _text(value: int | bytes | None) -> str:
    return _bytes(value).decode("utf-8", "backslashreplace")


def hparams_of(about: bytes) -> tuple[str, dict[str, Any], int | None]:
    """(group, hyper-parameters, final status) of the hparams plugin's data; each empty if missing.

    The status is 1 for success, 2 for failure, 3 for a running one.
    """
    group, config, status = "", {}, None
    for number, value in fields(about):
        if number == 3 and isinstance(value, bytes):
            for inner, encoded in fields(value):
                if inner == 1 and isinstance(encoded, bytes):
                    config[_bytes(first(encoded, 1)).decode("utf-8", "backslashreplace")] = _plain(
                        _bytes(first(encoded, 2))
                    )
                elif inner == 4 and isinstance(encoded, bytes):
                    group = encoded.decode("utf-8", "backslashreplace")
        elif number == 4 and isinstance(value, bytes):
            status = signed(first(value, 1))
    return group, config, status


def _plain(data: bytes) -> Any:
    """A google.protobuf.Value that is a number, a text or a boolean."""
    for number, value in fields(data):
        if number == 2:
            encoded = double(value)
            return (
                int(encoded)
                if encoded is not None and encoded == encoded and abs(encoded) < 2**53 and encoded == int(encoded)
                else encoded
            )
        if number == 3 and isinstance(value, bytes):
            return value.decode("utf-8", "backslashreplace")
        if number == 4:
            return bool(value)
    return None


def _bytes(value: int | bytes | None) -> bytes:
    return value if isinstance(value, bytes) else b""


def _doubles(value: int | bytes | None) -> list[float]:
    if not isinstance(value, bytes) or len(value) % 8:
        return []
    return list(struct.unpack(f"<{len(value) // 8}d", value))


def _varints(data: bytes) -> list[int]:
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(signed(value & 0xFFFFFFFFFFFFFFFF))
            value = shift = 0
    if shift:
        raise BadMessage("a field ends behind its message")
    return numbers


def _checksum() -> Callable[[bytes], int]:
    """crc32c, without TensorFlow's mask; from a C library if there is one, which is a hundred times as fast."""
    try:
        from google_crc32c import value as crc
    except ImportError:
        return _crc32c
    made: Callable[[bytes], int] = crc
    return made


def _crc32c(data: bytes) -> int:
    if not _TABLE:
        for start in range(256):
            value = start
            for _bit in range(8):
                value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
            _TABLE.append(value)
    table, crc = _TABLE, 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
