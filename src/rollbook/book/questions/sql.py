"""SQL over the tables of a run, answered by another process: which tables and views a query needs.

`Book.sql` gives a relation of DuckDB in the caller's process, and makes the same views (`book/sql.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from rollbook.book.completions import COMPLETIONS, COMPLETIONS_OF
from rollbook.book.late_facts import VIEWS
from rollbook.book.questions.source import Queries
from rollbook.book.rollout_curves import RolloutQueries
from rollbook.schema.expressions import named_tables
from rollbook.schema.run_files import HIDDEN_TABLES, table_names
from rollbook.schema.tables import TABLES

VIEWS_OF_SQL = {**{view: tables[:2] for view, tables in VIEWS.items()}, COMPLETIONS: COMPLETIONS_OF}
"""View -> the tables that it is made of."""


def tables_for(query: str, folders: Iterable[str]) -> list[str]:
    """The tables that a query reads, also those that the program recorded itself.

    Args:
      folders: of the runs that are asked.
    """
    known = known_tables(folders)
    named = named_tables(query, [name for name in known if name not in HIDDEN_TABLES])
    views = [view for view in named_tables(query, VIEWS_OF_SQL) if view not in named]
    return [*dict.fromkeys([*named, *(table for view in views for table in VIEWS_OF_SQL[view])])]


def known_tables(folders: Iterable[str]) -> list[str]:
    """The names of all tables of some runs, also of those that a program recorded itself."""
    return [*dict.fromkeys([*TABLES, *(name for folder in folders for name in table_names(folder))])]


def see_views(db: Queries, query: str) -> None:
    """Create the views that a query names: `rollouts_now` and `completions`."""
    queries = RolloutQueries(db.columns)
    for name in named_tables(query, VIEWS_OF_SQL):
        if name not in db.columns:
            db.view(name, queries.completions() if name == COMPLETIONS else queries.now())
