"""The hot path: an append-only journal of fixed-width rows and checksummed frames (standard library and msgspec)."""

from __future__ import annotations

from rollbook.ground.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.journal.channel import Channel as Channel
    from rollbook.journal.frame_files import FrameFile as FrameFile
    from rollbook.journal.frames import decode as decode
    from rollbook.journal.lane import Receipt as Receipt
    from rollbook.journal.reader import ColumnsRead as ColumnsRead
    from rollbook.journal.reader import JournalReader as JournalReader
    from rollbook.journal.recovery import Turns as Turns
    from rollbook.journal.rows import MARKS as MARKS
    from rollbook.journal.rows import column as column
    from rollbook.journal.segments import SETTLE_SECONDS as SETTLE_SECONDS
    from rollbook.journal.segments import Segment as Segment
    from rollbook.journal.segments import longest_increase as longest_increase
    from rollbook.journal.unusual_calls import UnusualCalls as UnusualCalls
    from rollbook.journal.writer import Writer as Writer
    from rollbook.journal.writers import WriterInfo as WriterInfo
    from rollbook.journal.writers import list_writers as list_writers

__all__ = [
    "MARKS",
    "SETTLE_SECONDS",
    "Channel",
    "ColumnsRead",
    "FrameFile",
    "JournalReader",
    "Receipt",
    "Segment",
    "Turns",
    "UnusualCalls",
    "Writer",
    "WriterInfo",
    "column",
    "decode",
    "list_writers",
    "longest_increase",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.journal.channel": ("Channel",),
        "rollbook.journal.frame_files": ("FrameFile",),
        "rollbook.journal.frames": ("decode",),
        "rollbook.journal.lane": ("Receipt",),
        "rollbook.journal.reader": ("ColumnsRead", "JournalReader"),
        "rollbook.journal.recovery": ("Turns",),
        "rollbook.journal.rows": ("MARKS", "column"),
        "rollbook.journal.segments": ("SETTLE_SECONDS", "Segment", "longest_increase"),
        "rollbook.journal.unusual_calls": ("UnusualCalls",),
        "rollbook.journal.writer": ("Writer",),
        "rollbook.journal.writers": ("WriterInfo", "list_writers"),
    },
)
