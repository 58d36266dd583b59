"""The hot path: an append-only journal of fixed-width rows and checksummed frames (standard library and msgspec)."""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.journal.channel import Channel as Channel
    from rollbook.journal.format import SegmentHeader as SegmentHeader
    from rollbook.journal.frame_files import FrameFile as FrameFile
    from rollbook.journal.frames import decode as decode
    from rollbook.journal.lane import Receipt as Receipt
    from rollbook.journal.left_segments import LeftSegment as LeftSegment
    from rollbook.journal.progress import Positions as Positions
    from rollbook.journal.reader import ColumnsRead as ColumnsRead
    from rollbook.journal.reader import JournalReader as JournalReader
    from rollbook.journal.recovery import InterruptSafeLock as InterruptSafeLock
    from rollbook.journal.rows import column as column
    from rollbook.journal.segments import Head as Head
    from rollbook.journal.segments import MisnamedSegment as MisnamedSegment
    from rollbook.journal.segments import Segment as Segment
    from rollbook.journal.writer import Writer as Writer
    from rollbook.journal.writers import WriterInfo as WriterInfo
    from rollbook.journal.writers import last_numbers as last_numbers
    from rollbook.journal.writers import last_row_time as last_row_time
    from rollbook.journal.writers import list_writers as list_writers

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.journal.channel": ("Channel",),
        "rollbook.journal.format": ("SegmentHeader",),
        "rollbook.journal.frame_files": ("FrameFile",),
        "rollbook.journal.frames": ("decode",),
        "rollbook.journal.lane": ("Receipt",),
        "rollbook.journal.left_segments": ("LeftSegment",),
        "rollbook.journal.progress": ("Positions",),
        "rollbook.journal.reader": ("ColumnsRead", "JournalReader"),
        "rollbook.journal.recovery": ("InterruptSafeLock",),
        "rollbook.journal.rows": ("column",),
        "rollbook.journal.segments": ("Head", "MisnamedSegment", "Segment"),
        "rollbook.journal.writer": ("Writer",),
        "rollbook.journal.writers": ("WriterInfo", "last_numbers", "last_row_time", "list_writers"),
    },
)
