"""How many samples of a run were new, and how many had been seen before, over training."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from rollbook.book.questions.asked import Novelty
from rollbook.book.questions.positions import axis_of_rows, position_in_sql
from rollbook.book.questions.rows_of_tables import see_samples
from rollbook.book.questions.source import Queries, Source
from rollbook.values.arrow import table_of


class NoveltyPage(NamedTuple):
    """The samples of each stretch.

    Attributes:
      table: one row for each stretch that has samples: the middle of it, called as the axis, rows, new, repeated.
      x: the axis.
    """

    table: pa.Table
    x: str


def counted_new(question: Novelty, source: Source) -> NoveltyPage:
    """New and repeated samples over training; a table without rows where no sample says whether it is new.

    Raises:
      UnknownKey: the samples have no such axis.
    """

    def work(db: Queries) -> tuple[str, pa.Table]:
        columns = see_samples(db)
        x, began = axis_of_rows(source, question.x, columns, ("batch",))
        if "is_new" not in columns:
            return x, None
        position = position_in_sql(x, began, columns)
        cells = f"select {position} as x, try_cast(is_new as boolean) as is_new from seen"
        db.view("placed", f"select * from ({cells}) where isfinite(x)")
        (ends,) = db.table("select min(x) as low, max(x) as high, count(distinct x) as many from placed").to_pylist()
        if not ends["many"]:
            return x, None
        many = min(question.points, ends["many"])
        low = float(ends["low"])
        width = (float(ends["high"]) - low) / many or 1.0
        stretch = f"least({many - 1}, cast(floor((x - {low!r}) / {width!r}) as bigint))"
        counts = "count(*) as rows, count(*) filter (is_new) as new"
        counted = f"select {stretch} as stretch, {counts} from placed group by 1"
        return x, db.table(
            f"select {low!r} + (stretch + 0.5) * {width!r} as x, rows, new, rows - new as repeated "
            f"from ({counted}) order by stretch"
        )

    x, found = source.asked(["samples"], work) if source.rows("samples") else (question.x or "time", None)
    schema = pa.schema([(x, pa.float64()), *((name, pa.int64()) for name in ("rows", "new", "repeated"))])
    if found is None:
        return NoveltyPage(table_of([], schema), x)
    return NoveltyPage(pa.table(found.columns, names=[x, *found.column_names[1:]]).cast(schema), x)
