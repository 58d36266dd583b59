"""`rollbook curves`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.cli.asking import asks
from rollbook.cli.find import find_runs, format_options, limit_option, runs_options
from rollbook.cli.fitted_table import print_answer
from rollbook.cli.output import print_json, print_rows
from rollbook.runs.questions import Curves


@click.command()
@runs_options
@asks(Curves, short={"key": "-k", "x": "-x"})
@limit_option(20)
@format_options
def curves(
    runs: tuple[str, ...], root: str, where: str | None, limit: int, as_json: bool, as_csv: bool, **options: Any
) -> None:
    """Print the curve of a key for groups of runs, in numbers; `rollbook plot` draws them.

    \b
    Examples:
      rollbook curves cartpole --key test/return --by algo --points 20
      rollbook curves cartpole --key test/return --by algo --csv > curves.csv
    """
    answer = find_runs(runs, root, where).curves(**options)
    rows = answer.table()
    if as_json:
        print_json({"key": answer.key, "axis": answer.axis, "sentences": answer.sentences(), "points": rows})
        return
    if as_csv:
        print_rows(rows, as_csv=True)
        return
    print_answer(answer.sentences(), rows, limit=limit)
