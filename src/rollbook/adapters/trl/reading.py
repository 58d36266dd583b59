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
    import pyarrow as pa

    samples = book.table("samples")
    names = ["completion" if name == "item" else name for name in samples.column_names]
    samples = samples.rename_columns(names)
    if "generation" in names:
        samples = samples.filter(samples["generation"].is_valid())  # other samples of the run stay out
    known: dict[str, float] = {}
    try:
        table = book.table("advantages")
        known = dict(zip(table["sample_id"].to_pylist(), table["advantage"].to_pylist(), strict=True))
    except UnknownKey:  # the trainer never said one
        pass
    advantages = [known.get(sample) for sample in samples["sample_id"].to_pylist()] if samples.num_rows else []
    samples = samples.append_column("advantage", pa.array(advantages, pa.float64()))
    if where is None and order_by is None and limit is None:
        return samples
    import duckdb

    query = "select * from samples"
    query += f" where {where}" if where else ""
    query += f" order by {order_by}" if order_by else ""
    query += f" limit {int(limit)}" if limit is not None else ""
    with duckdb.connect() as connection:
        connection.register("samples", samples)
        connection.execute("set enable_external_access = false")
        result = connection.sql(query)
        convert = getattr(result, "to_arrow_table", None) or result.fetch_arrow_table
        return convert()
