"""Read completions back, each with its advantage."""

from __future__ import annotations

from rollbook.errors import UnknownKey

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow as pa

    from rollbook.book.book import Book

__all__ = ["completions"]


def completions(
    book: Book, where: str | None = None, order_by: str | None = None, limit: int | None = None
) -> pa.Table:
    """One row per completion: what `samples` holds, its `item` named `completion`, and the advantage beside it.

    Args:
      book: of a run whose rewards went through `record_rewards`.
      where, order_by, limit: as SQL says them: `where="advantage > 1"`, `order_by="reward desc"`.
    Returns:
      A pyarrow.Table. `advantage` is empty where the trainer did not say it.
    Raises:
      What `book.sql` raises for a column that is not there.
    """
    from rollbook.book.sql import one_condition, one_order
    from rollbook.ground.expressions import quoted

    columns: list[str] = book.sql("select * from samples limit 0").columns
    names = [f"{quoted(name)} as completion" if name == "item" else quoted(name) for name in columns]
    rows = f"select {', '.join(names)} from samples"
    if "generation" in columns:
        rows += " where generation is not null"  # other samples of the run stay out
    late = 'select sample_id, arg_max(advantage, "time") as advantage from advantages group by sample_id'
    query = f"select * from (select * from ({rows}) left join ({late}) using (sample_id)) as completions"
    query += f" where {one_condition(where)}" if where else ""
    order = [one_order(order_by)] if order_by else []
    order += [quoted(name) for name in ("time", "writer", "lane", "seq", "index") if name in columns]
    query += f" order by {', '.join(order)}"
    query += f" limit {int(limit)}" if limit is not None else ""
    return book.asked(query, {"advantages": _advantages(book)})


def _advantages(book: Book) -> pa.Table:
    """The advantages that the trainer reported later than the completions, by their ids: two narrow columns."""
    import pyarrow as pa

    kinds = {"sample_id": pa.string(), "advantage": pa.float64(), "time": pa.timestamp("us")}
    try:
        table = book.table("advantages")
    except UnknownKey:  # the trainer never reported one
        return pa.table({name: pa.nulls(0, kind) for name, kind in kinds.items()})
    return table.select(list(kinds))
