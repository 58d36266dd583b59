"""`rollbook curves`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_runs, format_options
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import print_json, print_rows, print_sentence, remark
from rollbook.runs.questions import Curves


@click.command()
@click.argument("runs", default="", required=False)
@dir_option
@asks(Curves, short={"key": "-k", "x": "-x"})
@click.option("--where", default=None, help="Condition on runs, such as \"status = 'finished'\".")
@click.option("--limit", default=20, type=click.IntRange(min=1), show_default=True, help="How many rows at most.")
@format_options
def curves(runs: str, root: str, where: str | None, limit: int, as_json: bool, as_csv: bool, **options: Any) -> None:
    """Say how a key of groups of runs goes along an axis, in numbers; `rollbook plot` draws them.

    \b
    Examples:
      rollbook curves cartpole --key test/return --by algo --points 20
      rollbook curves cartpole --key test/return --by algo --csv > curves.csv
    """
    if options["key"] is None:
        raise click.UsageError("say --key, the metric, such as --key test/return")
    answer = find_runs(runs, root, where).curves(**options)
    rows = answer.table()
    if as_json:
        print_json({"key": answer.key, "axis": answer.axis, "sentences": answer.sentences(), "points": rows})
        return
    if as_csv:
        print_rows(rows, as_csv=True)
        return
    width = terminal_width() or 80
    for sentence in answer.sentences():
        print_sentence(sentence, width)
    if rows:
        print_fitted(rows[:limit], list(rows[0]), width=width)
    if len(rows) > limit:
        remark(f"… {len(rows) - limit:,} more rows; --limit shows them")
