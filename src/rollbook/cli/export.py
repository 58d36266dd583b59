"""`rollbook export`."""

from __future__ import annotations

import sys

import click

from rollbook.cli.find import dir_option, find_book, run_argument_or_last
from rollbook.cli.output import remark


@click.command()
@run_argument_or_last
@dir_option
@click.option("--table", default="metrics", show_default=True, help="Which table.")
@click.option("--keys", default=None, help="Only these keys of metrics, comma-separated.")
@click.option("-x", "--x", "x", default=None, help="Order metrics by this clock.")
@click.option("--to", "kind", type=click.Choice(["csv", "jsonl", "parquet", "arrow"]), default=None, help="Format.")
@click.option("-o", "--out", default="-", help="File to write; - is the standard output. Its ending tells the format.")
@click.option("--attempts", type=click.Choice(["effective", "all"]), default="effective", show_default=True)
def export(
    run: str, root: str, table: str, keys: str | None, x: str | None, kind: str | None, out: str, attempts: str
) -> None:
    """Write a table of a run to a file.

    \b
    Examples:
      rollbook export last -o metrics.csv
      rollbook export last --keys train/return,test/return -x env_step --to csv
      rollbook export cartpole/ppo --table episodes -o episodes.parquet
    """
    from rollbook.book import export_table

    chosen = kind or (out.rpartition(".")[2] if out != "-" else "csv")
    book = find_book(run, root, lambda book: book.row_count(table) > 0, f"rows of {table}")
    if table == "metrics":
        data = book.metrics(keys.split(",") if keys else None, x=x, attempts=attempts)
    else:
        data = book.table(table, attempts=attempts)
    export_table(data, sys.stdout.buffer if out == "-" else out, chosen)
    for problem in book.files.damage.values():
        remark(f"left out: {problem}")
    remark(f"{data.num_rows:,} rows of {table} as {chosen}" + ("" if out == "-" else f" in {out}"))
