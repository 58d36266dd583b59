"""Reading one run."""

from __future__ import annotations

from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book.book import Book as Book
    from rollbook.book.export import export_table as export_table
    from rollbook.book.results import write_results as write_results
    from rollbook.book.retention import Retention as Retention
    from rollbook.book.rollout_curves import RolloutQueries as RolloutQueries
    from rollbook.book.scan import Scan as Scan
    from rollbook.book.series import ROWS_A_POINT as ROWS_A_POINT
    from rollbook.book.series import Series as Series
    from rollbook.book.sql import Database as Database

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.book.book": ("Book",),
        "rollbook.book.export": ("export_table",),
        "rollbook.book.results": ("write_results",),
        "rollbook.book.retention": ("Retention",),
        "rollbook.book.rollout_curves": ("RolloutQueries",),
        "rollbook.book.scan": ("Scan",),
        "rollbook.book.series": ("ROWS_A_POINT", "Series"),
        "rollbook.book.sql": ("Database",),
    },
)
