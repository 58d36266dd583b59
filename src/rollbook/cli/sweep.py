"""`rollbook sweep`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_runs, format_options
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import print_json, print_rows, print_sentence, remark
from rollbook.runs.questions import Sweep


@click.command()
@click.argument("runs", default="", required=False)
@dir_option
@asks(Sweep, short={"metric": "-m", "x": "-x"})
@click.option("--where", default=None, help="Condition on runs, such as \"status = 'finished'\".")
@click.option("--limit", default=20, type=click.IntRange(min=1), show_default=True, help="How many rows at most.")
@format_options
def sweep(runs: str, root: str, where: str | None, limit: int, as_json: bool, as_csv: bool, **options: Any) -> None:
    """Say which setting of a sweep matters, and which configuration may be the best.

    \b
    Examples:
      rollbook sweep cartpole
      rollbook sweep cartpole --metric test/return --score best
    """
    answer = find_runs(runs, root, where).sweep(**options)
    rows = answer.table()
    if as_json:
        print_json({"sentences": answer.sentences(), "settings": answer.settings(), "configurations": rows})
        return
    if as_csv:
        print_rows(rows, as_csv=True)
        return
    width = terminal_width() or 80
    for sentence in answer.sentences():
        print_sentence(sentence, width)
    for table in (answer.settings(), rows):
        if table:
            click.echo()
            print_fitted(table[:limit], list(table[0]), width=width)
        if len(table) > limit:
            remark(f"… {len(table) - limit:,} more rows; --limit shows them")
