"""Reading one run."""

from __future__ import annotations

from rollbook.ground.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book.book import Book as Book
    from rollbook.book.export import export_table as export_table
    from rollbook.book.results import write_results as write_results
    from rollbook.book.retention import retention_words as retention_words
    from rollbook.book.retention import trim as trim
    from rollbook.book.retention import trim_if_due as trim_if_due
    from rollbook.book.rollout_curves import RolloutQueries as RolloutQueries
    from rollbook.book.rollout_questions import FATE as FATE
    from rollbook.book.rollout_questions import ROLLOUT_QUESTIONS as ROLLOUT_QUESTIONS
    from rollbook.book.rollout_questions import answer_query as answer_query
    from rollbook.book.scan import Scan as Scan
    from rollbook.book.series import Series as Series
    from rollbook.book.sql import Database as Database
    from rollbook.book.sql import unique_samples as unique_samples

__all__ = [
    "FATE",
    "ROLLOUT_QUESTIONS",
    "Book",
    "Database",
    "RolloutQueries",
    "Scan",
    "Series",
    "answer_query",
    "export_table",
    "retention_words",
    "trim",
    "trim_if_due",
    "unique_samples",
    "write_results",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "rollbook.book.book": ("Book",),
        "rollbook.book.export": ("export_table",),
        "rollbook.book.results": ("write_results",),
        "rollbook.book.retention": ("retention_words", "trim", "trim_if_due"),
        "rollbook.book.rollout_curves": ("RolloutQueries",),
        "rollbook.book.rollout_questions": ("FATE", "ROLLOUT_QUESTIONS", "answer_query"),
        "rollbook.book.scan": ("Scan",),
        "rollbook.book.series": ("Series",),
        "rollbook.book.sql": ("Database", "unique_samples"),
    },
)
