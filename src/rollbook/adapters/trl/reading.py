"""Read completions back, each with its prompt and its fate."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow as pa

    from rollbook.book import Book


def completions(
    book: Book, where: str | None = None, order_by: str | None = None, limit: int | None = None
) -> pa.Table:
    """One row per completion: a row of `rollouts_now`, with `item` renamed to `completion`, and with its `prompt`.

    Args:
      book: of a run whose rewards went through `record_rewards`.
      where, order_by, limit: as in SQL: `where="advantage > 1"`, `order_by="reward desc"`.
    Returns:
      A pyarrow.Table. `advantage`, `used` and `reason` are empty for completions not trained on yet.
    Raises:
      The errors of `book.sql`, for an unknown column.
    """
    tasks = "select task_id, any_value(prompt) as prompt from tasks group by task_id"
    rows = "select * exclude (item), item as completion from rollouts_now"
    joined = f"(select * from ({rows}) left join ({tasks}) using (task_id)) as completions"
    return book.chosen(joined, where or None, order_by or None, limit, tables=["tasks"])
