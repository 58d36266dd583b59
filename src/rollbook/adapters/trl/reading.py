"""Read completions back, each with its prompt and what became of it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow as pa

    from rollbook.book import Book

__all__ = ["completions"]


def completions(
    book: Book, where: str | None = None, order_by: str | None = None, limit: int | None = None
) -> pa.Table:
    """One row a completion: a row of `rollouts_now`, its `item` named `completion`, with its `prompt`.

    Args:
      book: of a run whose rewards went through `record_rewards`.
      where, order_by, limit: as SQL says them: `where="advantage > 1"`, `order_by="reward desc"`.
    Returns:
      A pyarrow.Table. `advantage`, `used` and `reason` are empty where the completion was not trained on yet.
    Raises:
      What `book.sql` raises for a column that is not there.
    """
    tasks = "select task_id, any_value(prompt) as prompt from tasks group by task_id"
    rows = "select * exclude (item), item as completion from rollouts_now"
    joined = f"(select * from ({rows}) left join ({tasks}) using (task_id)) as completions"
    return book.chosen(joined, where or None, order_by or None, limit, tables=["tasks"])
