"""`rollbook sql`."""

from __future__ import annotations

import shlex

import click

from rollbook.cli.find import dir_option, find_book, format_options, run_argument
from rollbook.cli.output import print_arrow


@click.command()
@run_argument
@click.argument("query", required=False)
@dir_option
@click.option(
    "--limit", default=1000, type=click.IntRange(min=1), show_default=True, help="Print at most this many rows."
)
@click.option("--unlocked", is_flag=True, help="Let the query reach other files, write, and change settings.")
@format_options
def sql(run: str, query: str | None, root: str, limit: int, unlocked: bool, as_json: bool, as_csv: bool) -> None:
    """Ask a run a question in SQL (DuckDB). Every table is a view: metrics, episodes, steps, samples, timings, …

    \b
    Examples:
      rollbook sql 'select count(*) from metrics'          the last run
      rollbook sql last 'select max("train/return") from metrics'
      rollbook sql last 'select name, sum(seconds) from timings group by all'
      rollbook sql last 'from episodes order by "return" desc limit 3' --json
    """
    if query is None and " " in run.strip():  # only a query: use the last run
        run, query = "last", run
    if query is None:
        raise click.UsageError(
            f"the query is missing; pass one, such as: rollbook sql {shlex.quote(run)} 'select * from metrics limit 3'"
        )
    import duckdb

    try:
        table = find_book(run, root).sql(query, unlocked=unlocked).to_arrow_table()
    except duckdb.Error as err:
        raise click.ClickException(f"DuckDB says: {err}") from None
    print_arrow(table, as_json=as_json, as_csv=as_csv, limit=limit)
