"""`rollbook views`."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option


@click.command()
@dir_option
def views(root: str) -> None:
    """Print SQL that gives DuckDB a view of each table of all runs of a folder or place: every row that counts, once,
    with its project and run. Metrics are a line a value, whichever form they lie in. Needs no rollbook where it is run.

    Views of a folder also have the runs that come later. Those of a place name its files, so print them again then.

    \b
    Examples:
      rollbook views > views.sql && duckdb -init views.sql
      rollbook views --dir s3://bucket/lab > views.sql
    """
    from rollbook.runs.engine_views import view_sql

    click.echo(view_sql(root), nl=False)
