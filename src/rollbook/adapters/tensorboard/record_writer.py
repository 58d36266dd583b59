"""`RecordWriter` of the tensorboard package, which torch exports next to its SummaryWriter."""

from __future__ import annotations

from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

RecordWriter: type = need(
    "tensorboard.summary.writer.record_writer", extra="tensorboard", why="RecordWriter"
).RecordWriter
