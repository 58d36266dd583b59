"""`rollbook export`."""

from __future__ import annotations

import sys

import click

from rollbook.cli.find import dir_option, find_book, find_runs, run_argument_or_last
from rollbook.cli.forward import option_of
from rollbook.cli.output import clean, json_option, print_choices, print_json, remark
from rollbook.system.texts import amount


@click.command()
@run_argument_or_last
@dir_option
@click.option("--table", default="metrics", show_default=True, help="The table.")
@click.option("--keys", default=None, help="Only these keys of metrics, comma-separated.")
@click.option("-x", "--x", "x", default=None, help="Order metrics by this clock.")
@click.option("--to", "kind", default=None, help="Format: csv, jsonl, parquet, arrow, or a tool; see --formats.")
@click.option("-o", "--out", default="-", help="File to write; - is the standard output. Its ending tells the format.")
@click.option(
    "--attempts",
    type=click.Choice(["effective", "all"]),
    default="effective",
    show_default=True,
    help='"all": also rows that a rewind or a resume abandoned.',
)
@click.option("--where", default=None, help="Only runs that meet this condition; for formats that take several.")
@click.option("-O", "--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of a tool's format.")
@click.option("--formats", is_flag=True, help="List the tools instead.")
@json_option
def export(
    run: str,
    root: str,
    table: str,
    keys: str | None,
    x: str | None,
    kind: str | None,
    out: str,
    attempts: str,
    where: str | None,
    options: tuple[str, ...],
    formats: bool,
    as_json: bool,
) -> None:
    """Write a table of a run to a file, or runs as a file of another tool.

    \b
    Examples:
      rollbook export last -o metrics.csv
      rollbook export last --keys train/return,test/return -x env_step --to csv
      rollbook export cartpole/ppo --table episodes -o episodes.parquet
      rollbook export last --to mcap -o episodes.mcap
      rollbook export cartpole --to rliable -o scores.npz -O metric=test/return
    """
    from rollbook.formats import exporters

    if formats:
        print_choices("format", {known: exporters.summary(known) for known in exporters.names()}, as_json=as_json)
        return
    if kind in exporters.names():
        counts = _to_a_tool(run, root, str(kind), out, where, dict(option_of(text) for text in options))
        if as_json:
            print_json({"wrote": out, "counts": counts})
        return
    if options or where:
        raise click.UsageError(f"-O and --where are for formats of other tools (--to {', '.join(exporters.names())})")
    if as_json and out == "-":
        raise click.UsageError(
            "--json is about a written file: say which with -o FILE (--to jsonl prints rows as JSON)"
        )
    rows = _table(run, root, table, keys, x, kind, out, attempts)
    if as_json:
        print_json({"wrote": out, "counts": {"rows": rows}})


def _to_a_tool(
    run: str, root: str, kind: str, out: str, where: str | None, options: dict[str, object]
) -> dict[str, int]:
    from rollbook.formats import exporters

    if out == "-":
        raise click.UsageError(f"--to {kind} writes a file: say which with -o FILE")
    table = exporters.make(kind, **options).table
    if table:
        has_it = (lambda book: book.row_count(table) > 0, f"rows of {table}")
        counts = exporters.export(find_book(run, root, *has_it), kind, out, **options)
    else:
        counts = exporters.export(find_runs(run, root, where), kind, out, **options)
    remark(f"{', '.join(f'{n:,} {clean(what)}' for what, n in counts.items())} in {clean(out)}")
    return dict(counts)


def _table(
    run: str, root: str, table: str, keys: str | None, x: str | None, kind: str | None, out: str, attempts: str
) -> int:
    from rollbook.book import export_table

    chosen = kind or (out.rpartition(".")[2] if out != "-" else "csv")
    book = find_book(run, root, lambda book: book.row_count(table) > 0, f"rows of {table}")
    unplaced = 0
    if table == "metrics":
        chosen_keys = keys.split(",") if keys else None
        if x is not None:  # counted before, so that there is one table in memory at a time
            unplaced = book.metrics(chosen_keys, attempts=attempts).num_rows
        data = book.metrics(chosen_keys, x=x, attempts=attempts)
        unplaced -= data.num_rows
    else:
        data = book.table(table, attempts=attempts)
    export_table(data, sys.stdout.buffer if out == "-" else out, chosen)
    if unplaced > 0:
        remark(f"left out: {amount(unplaced, 'row')} without a position on {x}, such as those before its first reading")
    for problem in book.files.damage.values():
        remark(f"left out: {problem}")
    remark(f"{amount(data.num_rows, 'row')} of {table} as {chosen}" + ("" if out == "-" else f" in {out}"))
    return int(data.num_rows)
