"""`rollbook series`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.cli.asking import asks
from rollbook.cli.find import find_runs, format_options, limit_option, runs_options
from rollbook.cli.fitted_table import print_answer
from rollbook.cli.output import print_json, print_rows
from rollbook.runs.questions import SeriesQuestion


@click.command()
@runs_options
@asks(SeriesQuestion, short={"keys": "-k --key", "x": "-x"})
@limit_option(20)
@format_options
def series(
    runs: tuple[str, ...], root: str, where: str | None, limit: int, as_json: bool, as_csv: bool, **options: Any
) -> None:
    """Print keys of runs along an axis, each run for itself, as rows or as points that keep extremes.

    \b
    Examples:
      rollbook series last --key train/return --points 20
      rollbook series cartpole --key test/return --csv > returns.csv
    """
    if options["keys"] is None:
        raise click.UsageError("say --key, the metric, such as --key test/return")
    answer = find_runs(runs, root, where).series(**options)
    if as_json:
        print_json(
            {"sentences": answer.sentences(), "series": [head for head, _ in answer.each()], "points": answer.table()}
        )
        return
    if as_csv:
        print_rows(answer.table(), as_csv=True)
        return
    total = sum(len(one) for _, one in answer.each())
    print_answer(answer.sentences(), answer.table(limit), limit=limit, total=total)
