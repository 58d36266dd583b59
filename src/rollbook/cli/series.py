"""`rollbook series`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_runs, format_options
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import print_json, print_rows, print_sentence, remark
from rollbook.runs.questions import Series


@click.command()
@click.argument("runs", default="", required=False)
@dir_option
@asks(Series, short={"keys": "-k --key", "x": "-x"})
@click.option("--where", default=None, help="Condition on runs, such as \"status = 'finished'\".")
@click.option("--limit", default=20, type=click.IntRange(min=1), show_default=True, help="How many rows at most.")
@format_options
def series(runs: str, root: str, where: str | None, limit: int, as_json: bool, as_csv: bool, **options: Any) -> None:
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
    rows, total = answer.table(limit), sum(len(one) for _, one in answer.each())
    width = terminal_width() or 80
    for sentence in answer.sentences():
        print_sentence(sentence, width)
    if rows:
        print_fitted(rows, list(rows[0]), width=width)
    if total > limit:
        remark(f"… {total - limit:,} more rows; --limit shows them")
