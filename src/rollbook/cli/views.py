"""`rollbook views`."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option
from rollbook.cli.output import json_option, print_json


@click.command()
@dir_option
@json_option
def views(root: str, as_json: bool) -> None:
    """Print SQL that gives DuckDB a view of each table of all runs of a folder or remote.

    Each view has every row that counts, once, with its project and run. Metrics have one line per value. No rollbook
    is needed to run it. Views of a folder include later runs. Those of a remote name its files: print them again then.

    \b
    Examples:
      rollbook views > views.sql && duckdb -init views.sql
      rollbook views --dir s3://bucket/lab > views.sql
    """
    from rollbook.runs.engine_views import view_sql

    if as_json:
        print_json({"sql": view_sql(root)})
    else:
        click.echo(view_sql(root), nl=False)
