"""The reading end of one run."""

from __future__ import annotations

from rollbook.ground.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book.book import Book as Book
    from rollbook.book.episode import Episode as Episode
    from rollbook.book.export import export_table as export_table
    from rollbook.book.late_facts import view as view
    from rollbook.book.results import write_results as write_results
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
    "curves_query",
    "export_table",
    "named_tables",
    "one_condition",
    "one_order",
    "raw_series",
    "reduce_points",
    "scan_of",
    "scan_of_table",
    "unique_samples",
    "video_of_episode",
    "view",
    "write_results",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.book.book": ("Book",),
        "rollbook.book.episode": ("Episode",),
        "rollbook.book.export": ("export_table",),
        "rollbook.book.late_facts": ("view",),
        "rollbook.book.results": ("write_results",),
        "rollbook.book.rollout_curves": ("SOLVED", "curves_query"),
        "rollbook.book.scan": ("SCAN_TRIES", "Scan", "scan_of", "scan_of_table"),
        "rollbook.book.series": ("Buckets", "Series", "raw_series", "reduce_points"),
        "rollbook.book.sql": ("Database", "named_tables", "one_condition", "one_order", "unique_samples"),
        "rollbook.book.videos": ("video_of_episode",),
    },
)
