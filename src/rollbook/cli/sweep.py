"""`rollbook sweep`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.cli.asking import asks
from rollbook.cli.find import find_runs, format_options, limit_option, runs_options
from rollbook.cli.fitted_table import print_answer
from rollbook.cli.output import print_json, print_rows
from rollbook.runs.questions import Sweep


@click.command()
@runs_options
@asks(Sweep, short={"metric": "-m", "x": "-x"})
@limit_option(20)
@format_options
def sweep(
    runs: tuple[str, ...], root: str, where: str | None, limit: int, as_json: bool, as_csv: bool, **options: Any
) -> None:
    """Show which setting of a sweep matters, and which configuration may be the best.

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
    print_answer(answer.sentences(), answer.settings(), rows, limit=limit)
