"""Finding what is whole in damaged journal files. Reads bytes and gives bytes; whoever calls decides what to do."""

from __future__ import annotations

import itertools
import json
import os
import struct
import zlib

from rollbook.errors import Damaged, NewerFormat
from rollbook.journal import format as layout
from rollbook.journal.files import Segment, parse_name

__all__ = ["salvage_log", "salvage_segment"]

_MOST_BYTES = 1 << 30


def salvage_log(path: str) -> bytes | None:
    """A frame file that holds every whole frame of a damaged one, in order; None if there is none.

    A frame is found by its checksum at any byte, so one damaged length does not cost the frames behind it.
    """
    if os.path.getsize(path) > _MOST_BYTES:
        return None
    with open(path, "rb") as file:
        data = file.read()
    parsed = parse_name(os.path.basename(path))
    lane, number = (parsed[1], parsed[3]) if parsed is not None else (0, 0)
    frames = []
    at, last = 0, 0
    head = layout.FRAME_HEAD.size
    while at + head <= len(data):
        length, crc, seq, _ = layout.FRAME_HEAD.unpack_from(data, at)
        end = at + head + length
        # The cheap questions first: at most bytes the length or the number makes no sense.
        if last < seq < last + 2**40 and length and end <= len(data):
            rest = zlib.crc32(data[at + 8 : at + head])
            if zlib.crc32(memoryview(data)[at + head : end], rest) == crc:
                frames.append(data[at:end])
                at, last = end, seq
                continue
        at += 1
    return b"".join([layout.frames_file_head(lane, number), *frames]) if frames else None


def salvage_segment(path: str) -> bytes | None:
    """A segment whose head is damaged, with the head of another segment of its stream; None if there is none like it.

    Slots of one stream have the same columns, so their rows begin at the same byte and are as wide.
    """
    folder, name = os.path.split(path)
    mine = parse_name(name)
    with open(path, "rb") as file:
        data = file.read()
    if mine is None or len(data) < layout.HEAD.size:
        return None
    for other in sorted(os.listdir(folder)):
        parsed = parse_name(other)
        if other == name or parsed is None or parsed[:3] != mine[:3]:
            continue
        try:
            with Segment(os.path.join(folder, other)) as segment:
                header = segment.header
        except (OSError, Damaged, NewerFormat):
            continue
        meta = {
            **{field: getattr(header, field) for field in _META},
            "keys": list(header.keys),
            "deferred": list(header.deferred),
            "clocks": list(header.clocks),
            "slot": mine[3],
        }
        head = _head(meta, header.header_size, header.row_words, data)
        rows = data[header.header_size :]
        if head is not None and _has_rows(rows, header.row_words):
            return head + rows
    return None


_META = ("writer", "attempt", "lane", "stream", "table", "scope", "at", "types", "time_offset")


def _head(meta: dict[str, object], header_size: int, words: int, data: bytes) -> bytes | None:
    text = json.dumps(meta, separators=(",", ":")).encode()
    if layout.HEAD.size + len(text) > header_size:
        return None
    capacity = max(0, len(data) - header_size) // (8 * words)
    head = layout.HEAD.pack(
        layout.SEGMENT_MAGIC,
        layout.VERSION,
        header_size,
        0,
        1,
        words,
        capacity,
        layout.DROPPED,
        0,
        len(text),
        zlib.crc32(text),
    )
    return (head + text).ljust(header_size, b"\0")


def _has_rows(rows: bytes, words: int) -> bool:
    """Whether the commit words look like those of rows this wide: they grow, but for what was never written."""
    count = len(rows) // (8 * words)
    seqs = [struct.unpack_from("<Q", rows, (i + 1) * words * 8 - 8)[0] for i in range(count)]
    written = [seq for seq in seqs if 0 < seq < 2**48]
    return bool(written) and sum(a < b for a, b in itertools.pairwise(written)) >= len(written) - 2
