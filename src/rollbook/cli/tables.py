"""`rollbook episodes` and `rollbook samples`."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option, find_book, format_options, run_argument
from rollbook.cli.output import print_arrow

_PLUMBING = ("time", "attempt", "writer", "lane", "seq", "index", "at")


@click.command()
@run_argument
@dir_option
@click.option("--where", default=None, help='SQL condition, such as "return > 100".')
@click.option("--order-by", default=None, help='SQL order, such as "return desc".')
@click.option("--limit", default=20, show_default=True, help="How many rows at most.")
@format_options
def episodes(
    run: str, root: str, where: str | None, order_by: str | None, limit: int, as_json: bool, as_csv: bool
) -> None:
    """List the episodes of a run.

    \b
    Examples:
      rollbook episodes last --order-by '"return" desc' --limit 5
      rollbook episodes cartpole/ppo --where truncated --csv
    """
    _list(run, root, "episodes", where, order_by, limit, as_json, as_csv)


@click.command()
@run_argument
@dir_option
@click.option("--where", default=None, help='SQL condition, such as "reward > 1 and is_new".')
@click.option("--order-by", default=None, help='SQL order, such as "reward desc".')
@click.option("--limit", default=20, show_default=True, help="How many rows at most.")
@format_options
def samples(
    run: str, root: str, where: str | None, order_by: str | None, limit: int, as_json: bool, as_csv: bool
) -> None:
    """Search and sort the samples of a run.

    \b
    Examples:
      rollbook samples last --where "reward > 1" --order-by "reward desc"
      rollbook samples last --where "item like '%sorry%'" --json
    """
    _list(run, root, "samples", where, order_by, limit, as_json, as_csv)


def _list(
    run: str,
    root: str,
    table: str,
    where: str | None,
    order_by: str | None,
    limit: int,
    as_json: bool,
    as_csv: bool,
) -> None:
    book = find_book(run, root)
    query = f"select * from {table}"
    query += f" where {where}" if where else ""
    query += f" order by {order_by}" if order_by else ""
    found = book.sql(f"{query} limit {int(limit) + 1}").to_arrow_table()
    if not (as_json or as_csv):
        useful = [
            name for name in found.column_names if name not in _PLUMBING and found[name].null_count < found.num_rows
        ]
        found = found.select(useful)
    more = found.num_rows > limit
    print_arrow(found.slice(0, limit), as_json=as_json, as_csv=as_csv)
    if more:
        click.echo(f"… more rows; --limit shows them (the table has {book.table(table).num_rows:,})", err=True)
