"""The reading end of one run."""

from __future__ import annotations

from rollbook.ground.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book.book import Book as Book
    from rollbook.book.checkpoints import checkpoint_rows as checkpoint_rows
    from rollbook.book.checkpoints import choose_checkpoint as choose_checkpoint
    from rollbook.book.checkpoints import file_of_checkpoint as file_of_checkpoint
    from rollbook.book.checkpoints import kept_checkpoints as kept_checkpoints
    from rollbook.book.episode import Episode as Episode
    from rollbook.book.export import export_table as export_table
    from rollbook.book.late_facts import view as view
    from rollbook.book.results import write_results as write_results
    from rollbook.book.rewind import cut_at as cut_at
    from rollbook.book.rewind import cut_through as cut_through
    from rollbook.book.rollout_curves import SOLVED as SOLVED
    from rollbook.book.rollout_curves import curves_query as curves_query
    from rollbook.book.scan import SCAN_TRIES as SCAN_TRIES
    from rollbook.book.scan import Scan as Scan
    from rollbook.book.scan import scan_of as scan_of
    from rollbook.book.scan import scan_of_table as scan_of_table
    from rollbook.book.series import Buckets as Buckets
    from rollbook.book.series import Series as Series
    from rollbook.book.series import raw_series as raw_series
    from rollbook.book.series import reduce_points as reduce_points
    from rollbook.book.sql import Database as Database
    from rollbook.book.sql import named_tables as named_tables
    from rollbook.book.sql import one_condition as one_condition
    from rollbook.book.sql import one_order as one_order
    from rollbook.book.sql import unique_samples as unique_samples
    from rollbook.book.summary import all_marks as all_marks
    from rollbook.book.summary import summary_of as summary_of
    from rollbook.book.undumped import read_windows as read_windows
    from rollbook.book.videos import video_of_episode as video_of_episode

__all__ = [
    "SCAN_TRIES",
    "SOLVED",
    "Book",
    "Buckets",
    "Database",
    "Episode",
    "Scan",
    "Series",
    "all_marks",
    "checkpoint_rows",
    "choose_checkpoint",
    "curves_query",
    "cut_at",
    "cut_through",
    "export_table",
    "file_of_checkpoint",
    "kept_checkpoints",
    "named_tables",
    "one_condition",
    "one_order",
    "raw_series",
    "read_windows",
    "reduce_points",
    "scan_of",
    "scan_of_table",
    "summary_of",
    "unique_samples",
    "video_of_episode",
    "view",
    "write_results",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.book.book": ("Book",),
        "rollbook.book.checkpoints": ("checkpoint_rows", "choose_checkpoint", "file_of_checkpoint", "kept_checkpoints"),
        "rollbook.book.episode": ("Episode",),
        "rollbook.book.export": ("export_table",),
        "rollbook.book.late_facts": ("view",),
        "rollbook.book.results": ("write_results",),
        "rollbook.book.rewind": ("cut_at", "cut_through"),
        "rollbook.book.rollout_curves": ("SOLVED", "curves_query"),
        "rollbook.book.scan": ("SCAN_TRIES", "Scan", "scan_of", "scan_of_table"),
        "rollbook.book.series": ("Buckets", "Series", "raw_series", "reduce_points"),
        "rollbook.book.sql": ("Database", "named_tables", "one_condition", "one_order", "unique_samples"),
        "rollbook.book.summary": ("all_marks", "summary_of"),
        "rollbook.book.undumped": ("read_windows",),
        "rollbook.book.videos": ("video_of_episode",),
    },
)
