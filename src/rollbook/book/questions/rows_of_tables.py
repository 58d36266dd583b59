"""Rows of a run's tables: what each question looks at, and the window of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from rollbook.book.completions import COMPLETIONS, COMPLETIONS_OF
from rollbook.book.media_files import with_files
from rollbook.book.questions.asked import Checkpoints, Episodes, MediaQuestion, Rollouts, Rows, Samples, Text, Window
from rollbook.book.questions.checkpoints import chosen_checkpoints
from rollbook.book.questions.rollouts import chosen_rollouts
from rollbook.book.questions.source import Queries, Source
from rollbook.book.questions.windows import Page, Shown, page_of
from rollbook.book.rollout_curves import RolloutQueries
from rollbook.book.sql import unique_samples
from rollbook.errors import UnknownKey, did_you_mean
from rollbook.schema.expressions import literal, named_tables, quoted
from rollbook.schema.run_files import HIDDEN_TABLES, table_names
from rollbook.schema.tables import TABLES
from rollbook.values.arrow import take_table

_LATE_ADVANTAGES = "select sample_id, any_value(advantage) as advantage from advantages group by sample_id"
MADE = ("outcome", "video", "traces")
"""What `see_episodes` adds to the columns of the episodes."""


def chosen_rows(question: Window, source: Source, *, counted: bool = False) -> Page:
    """The rows that a question asks for.

    Args:
      counted: whether to count all rows and the matching ones.
    Raises:
      UnknownKey: the run has no such table. BadInput: a condition or order that cannot be understood.
    """
    if isinstance(question, Checkpoints) or (isinstance(question, Rows) and question.table == "checkpoints"):
        return chosen_checkpoints(question, source, counted=counted)
    if isinstance(question, Rows) and question.table == "rollouts":
        own = {name: getattr(question, name) for name in Window.__struct_fields__}
        found = chosen_rollouts(Rollouts(**own), source, counted=counted)
        return Page(found.table, found.total, found.matched)
    names, shown = _SHOWN[type(question)](question, source)
    known = [*TABLES, *table_names(source.folder)]
    names = [*dict.fromkeys([*names, *named_tables(question.where or "", known)])]  # a condition may ask others
    own = {name: getattr(question, name, None) for name in ("kind", "key")}
    bare = msgspec.structs.replace(question, **{name: None for name, text in own.items() if text is not None})
    is_made = len(names) > 1 and isinstance(question, (Samples, Rows))  # of several tables
    if not counted and bare == _whole(question) and not is_made:
        table = source.table(names[0], question.attempts)  # needs no DuckDB
        for name, text in own.items():
            table = table if text is None else _with_text(table, name, text)
        return Page(_told(question, source, table))
    page = source.asked(names, lambda db: page_of(db, question, shown(db), counted=counted), question.attempts)
    return page._replace(table=_told(question, source, page.table))


def _with_text(table: pa.Table, column: str, text: str) -> pa.Table:
    """The rows with this text in a column."""
    return take_table(table, np.flatnonzero([cell == text for cell in table[column].to_pylist()]).astype(np.int64))


def _told(question: Window, source: Source, table: pa.Table) -> pa.Table:
    """The rows, of media with the files that exist now."""
    return with_files(table, source.folder) if isinstance(question, MediaQuestion) else table


def _whole(question: Window) -> Window:
    """The question for all rows of its table."""
    if isinstance(question, Rows):
        return Rows(table=question.table, attempts=question.attempts)
    return type(question)(attempts=question.attempts)


Looks = tuple[list[str], Callable[[Queries], Shown]]
"""The tables that are needed, and what makes the view of them."""


def _of_any(question: Any, source: Source) -> Looks:
    name = question.table
    known = [*dict.fromkeys([*TABLES, *table_names(source.folder), COMPLETIONS])]
    if name == COMPLETIONS and name not in known[:-1]:
        return list(COMPLETIONS_OF), _completions
    if name not in known or name in HIDDEN_TABLES:
        raise UnknownKey(f"the run has no table {name!r:.80}.", did_you_mean(name, known))
    if name == "episodes":  # conditions and orders know what `Episodes` knows of them
        return ["episodes", "media"], lambda db: Shown(name, "shown", see_episodes(db))
    return [name], lambda db: Shown(name, quoted(name), db.columns[name])


def _completions(db: Queries) -> Shown:
    db.view(COMPLETIONS, RolloutQueries(db.columns).completions())
    columns = db.table(f"select * from {COMPLETIONS} limit 0").column_names
    return Shown(COMPLETIONS, COMPLETIONS, columns, key="id")


def _of_samples(question: Any, source: Source) -> Looks:
    def shown(db: Queries) -> Shown:
        columns = see_samples(db)
        if not question.unique:
            return Shown("samples", "seen", columns)
        more = ("times_seen", "first_seen", "last_seen", "first_time")
        return Shown("samples", unique_samples(columns, "seen"), [*dict.fromkeys([*columns, *more])], is_same=False)

    return ["samples", *(["advantages"] if "advantages" in table_names(source.folder) else [])], shown


def see_samples(db: Queries) -> list[str]:
    """Create the view `seen` of the samples: with advantages that came later, in a separate table.

    Returns:
      its columns.
    """
    columns = db.columns["samples"]
    if "advantages" in db.columns and "advantage" not in columns and "sample_id" in columns:
        late = f"({_LATE_ADVANTAGES}) late"
        db.view("seen", f"select samples.*, late.advantage from samples left join {late} using (sample_id)")
        return [*columns, "advantage"]
    db.view("seen", "select * from samples")
    return columns


def _of_episodes(question: Any, source: Source) -> Looks:
    also = []
    if question.outcome:
        also.append(f"outcome in ({', '.join(map(literal, question.outcome))})")
    also += [name for name, wanted in (("video", question.video), ("traces", question.traces)) if wanted]
    return ["episodes", "media"], lambda db: Shown("episodes", "shown", see_episodes(db), also)


def see_episodes(db: Queries) -> list[str]:
    """Create the view `shown` of the episodes: how they ended, whether they have a video, and whether their steps were
    kept.

    Returns:
      its columns.
    """
    columns = db.columns["episodes"]

    def flag(name: str) -> str:
        return f"coalesce(try_cast({quoted(name)} as boolean), false)" if name in columns else "false"

    whole = "coalesce(try_cast(complete as boolean), true)" if "complete" in columns else "true"
    ends = f"not {whole} or not ({flag('terminated')} or {flag('truncated')})"
    videos = "false"
    if "episode_id" in columns and {"episode_id", "kind"} <= set(db.columns["media"]):
        videos = "episode_id in (select episode_id from media where kind = 'video' and episode_id is not null)"
    why_kept = "coalesce(cast(steps_kept as varchar), '') not in ('', 'false', '0')"  # why they were kept
    made = {
        "outcome": f"case when {ends} then 'cut' when {flag('terminated')} then 'terminated' else 'truncated' end",
        "video": f"coalesce({videos}, false)",
        "traces": why_kept if "steps_kept" in columns else "false",
    }
    own = [name for name in columns if name not in made]
    chosen = [*map(quoted, own), *(f"{formula} as {name}" for name, formula in made.items())]
    db.view("shown", f"select {', '.join(chosen)} from episodes")
    return [*own, *made]


def _of_text(question: Any, source: Source) -> Looks:
    return ["text"], lambda db: Shown("text", "text", db.columns["text"], _equal({"key": question.key}))


def _of_media(question: Any, source: Source) -> Looks:
    also = _equal({"kind": question.kind, "key": question.key})
    return ["media"], lambda db: Shown("media", "media", db.columns["media"], also)


def _equal(cells: Mapping[str, str | None]) -> list[str]:
    return [f"{quoted(name)} = {literal(text)}" for name, text in cells.items() if text is not None]


_SHOWN: Mapping[type[Window], Callable[[Any, Source], Looks]] = {
    Rows: _of_any,
    Samples: _of_samples,
    Episodes: _of_episodes,
    Text: _of_text,
    MediaQuestion: _of_media,
}
