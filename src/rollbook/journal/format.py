"""The bytes of the journal on one page.

    data/journal/<writer>/
      writer.json               the writer: see `liveness.identity`, plus attempt, clocks, time_offset
      closed.json               written at a clean close: the last sequence per lane and the bill
      L00.S000.0.seg            lane 0, stream 0, slot 0: a segment of fixed-width rows
      L00.frames.000000.log     lane 0, frame file 0: everything that is not a scalar row

All numbers are little-endian. Every record consists of 8-byte words, so a segment is one 2-d array of words.

Segment = head (64 bytes), meta (JSON, padded so that rows start at `header_size`), rows.

    offset  type   field
    0       8s     magic "RBKSEG1\\n"
    8       u32    format version
    12      u32    header_size: offset of the first row, a multiple of 64
    16      u64    generation: even while stable, odd while the writer recycles the segment
    24      u64    first_seq: a row counts only if its commit word is at least this
    32      u32    row_words: width of a row in words
    36      u32    capacity in rows
    40      u64    state: 0 active, 1 left (the writer may recycle it once sealed), 2 sealed, 3 dropped (never reused:
                   the process that seals it unlinks it)
    48      u64    fence: not 0 means that another process took the run over
    56      u32    meta_size in bytes
    60      u32    crc32 of the meta

Row = one int64 per clock (UNKNOWN = -2**63), time (int64, monotonic ns; + meta.time_offset = unix ns), one word per key
(type d: float64; q: int64; b: int64 0 or 1), commit word (u64) = the row's sequence number in its lane, from 1.

Frame = head (24 bytes), payload (msgpack).

    0       u32    length of the payload
    4       u32    crc32 of bytes 8..24 and the payload
    8       u64    sequence number in the lane (shared with its rows)
    16      i64    time (monotonic ns, as in rows)

A frame file begins with 32 bytes: magic "RBKFRM1\\n", u32 version, u32 lane, u32 file number, 12 zero bytes.
"""

from __future__ import annotations

import json
import struct
import zlib

from rollbook.errors import Damaged, NewerFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
"""The format version of journals and run folders. Readers refuse a higher one with an error that names it."""

SEGMENT_MAGIC = b"RBKSEG1\n"
FRAMES_MAGIC = b"RBKFRM1\n"

HEAD = struct.Struct("<8sIIQQIIQQII")
FRAME_HEAD = struct.Struct("<IIQq")
_LENGTH_AND_CRC, _SEQ_AND_TIME = struct.Struct("<II"), struct.Struct("<Qq")  # its parts: the checksum covers the second
FRAMES_FILE_HEAD = struct.Struct("<8sIII12x")
WORD = struct.Struct("<Q")

GENERATION_AT, FIRST_SEQ_AT, CAPACITY_AT, STATE_AT, FENCE_AT = 16, 24, 36, 40, 48
ACTIVE, LEFT, SEALED, DROPPED = 0, 1, 2, 3

FIRST_SEGMENT_BYTES = 64 * 1024
LARGEST_SEGMENT_BYTES = 1024 * 1024
FRAME_FILE_BYTES = 8 * 1024 * 1024
LARGEST_FRAME = 2**31


class SegmentHeader:
    """The head and meta of a segment.

    Attributes:
      generation, first_seq, state, fence: their values at the time of reading.
      header_size, row_words, capacity: layout.
      writer, attempt, lane, stream, slot: its owner.
      table: "metrics" or another standard table; scope: the opened scope, "" for the run;
        at: the checkpoint of its scope, or "".
      keys: full names, in row order; types: d, q or b per key; deferred: keys whose values come later, in frames.
      clocks: clock names, in row order; time_offset: add it to a row's time to get unix nanoseconds.
    """

    __slots__ = (
        "at",
        "attempt",
        "capacity",
        "clocks",
        "deferred",
        "fence",
        "first_seq",
        "generation",
        "header_size",
        "keys",
        "lane",
        "row_words",
        "scope",
        "slot",
        "state",
        "stream",
        "table",
        "time_offset",
        "types",
        "writer",
    )

    generation: int
    first_seq: int
    state: int
    fence: int
    header_size: int
    row_words: int
    capacity: int
    writer: str
    attempt: int
    lane: int
    stream: int
    slot: int
    table: str
    scope: str
    at: str
    keys: tuple[str, ...]
    types: str
    deferred: tuple[str, ...]
    clocks: tuple[str, ...]
    time_offset: int


def row_struct(n_clocks: int, types: str) -> struct.Struct:
    """The packer of one row: clocks, time, values, commit word."""
    return struct.Struct(f"<{n_clocks + 1}q{types.replace('b', 'q')}Q")


def lowest_number(generation: int, first_seq: int) -> int:
    """The lowest number that a row of a segment may have. In one that was never recycled every row is its own."""
    return first_seq if generation > 1 else 1


def pack_header(meta: dict[str, Any], *, first_seq: int, size: int) -> tuple[bytes, int, int, int]:
    """The header of a new segment file of about `size` bytes.

    Args:
      meta: writer, attempt, lane, stream, slot, table, scope, keys, types, deferred, clocks, time_offset.
    Returns:
      (header bytes, header_size, row width in bytes, capacity in rows). The file has header_size + width * capacity
      bytes.
    """
    text = json.dumps(meta, separators=(",", ":")).encode()
    header_size = -(-(HEAD.size + len(text)) // 64) * 64
    words = len(meta["clocks"]) + 1 + len(meta["keys"]) + 1
    capacity = max(8, (size - header_size) // (words * 8))
    head = HEAD.pack(
        SEGMENT_MAGIC, VERSION, header_size, 0, first_seq, words, capacity, ACTIVE, 0, len(text), zlib.crc32(text)
    )
    return (head + text).ljust(header_size, b"\0"), header_size, words * 8, capacity


def unpack_header(data: bytes | memoryview, path: str) -> SegmentHeader:
    """Read a segment's head and meta.

    Raises:
      Damaged: too short, not a segment, or inconsistent fields.
      NewerFormat: written by a later version.
    """
    if len(data) < HEAD.size:
        raise Damaged(f"{path} has {len(data)} bytes, less than the {HEAD.size} of a segment head; it was never begun")
    magic, version, header_size, generation, first_seq, words, capacity, state, fence, meta_size, crc = (
        HEAD.unpack_from(data)
    )
    if magic != SEGMENT_MAGIC:
        raise Damaged(f"{path} does not begin with a segment's magic bytes; found {bytes(magic)!r}")
    if version > VERSION:
        raise NewerFormat(f"{path} has format {version}; this rollbook reads up to {VERSION}. Upgrade rollbook.")
    text = bytes(data[HEAD.size : HEAD.size + meta_size])
    if len(text) != meta_size or zlib.crc32(text) != crc:
        raise Damaged(f"{path}: the description of its columns is damaged (checksum differs)")
    meta = json.loads(text)
    header = SegmentHeader()
    header.generation, header.first_seq, header.state, header.fence = generation, first_seq, state, fence
    header.header_size, header.row_words, header.capacity = header_size, words, capacity
    for name in ("writer", "attempt", "lane", "stream", "slot", "table", "scope", "types", "time_offset"):
        setattr(header, name, meta[name])
    header.at = meta.get("at", "")
    for name in ("keys", "deferred", "clocks"):
        setattr(header, name, tuple(meta[name]))
    if words != len(header.clocks) + len(header.keys) + 2 or len(header.types) != len(header.keys):
        raise Damaged(f"{path}: a row of {words} words does not fit its {len(header.keys)} keys")
    if header_size < HEAD.size + meta_size or header_size % 8:
        raise Damaged(f"{path}: rows cannot begin at byte {header_size}")
    return header


def pack_frame(seq: int, time: int, payload: bytes) -> bytes:
    """One frame, ready for a single write."""
    rest = _SEQ_AND_TIME.pack(seq, time)
    crc = zlib.crc32(payload, zlib.crc32(rest))
    return _LENGTH_AND_CRC.pack(len(payload), crc) + rest + payload


def frames_file_head(lane: int, number: int) -> bytes:
    """The first 32 bytes of a frame file."""
    return FRAMES_FILE_HEAD.pack(FRAMES_MAGIC, VERSION, lane, number)


def segment_name(lane: int, stream: int, slot: int) -> str:
    """The file name of a segment."""
    return f"L{lane:02d}.S{stream:03d}.{slot}.seg"


def frames_name(lane: int, number: int) -> str:
    """The file name of a frame file."""
    return f"L{lane:02d}.frames.{number:06d}.log"
