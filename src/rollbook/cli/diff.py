"""`rollbook diff`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_runs, format_options
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import print_arrow, print_json, print_sentence, remark
from rollbook.runs.questions import Diff


@click.command()
@click.argument("runs", default="", required=False)
@dir_option
@asks(Diff, short={"metric": "-m"})
@click.option("--where", default=None, help="Condition on runs, such as \"status = 'finished'\".")
@click.option("--limit", default=40, type=click.IntRange(min=1), show_default=True, help="How many rows at most.")
@format_options
def diff(runs: str, root: str, where: str | None, limit: int, as_json: bool, as_csv: bool, **options: Any) -> None:
    """Say what differs between runs or groups of them: configuration, code, packages, machine.

    \b
    Examples:
      rollbook diff cartpole
      rollbook diff cartpole --metric test/return
      rollbook diff cartpole --by config.algo
    """
    answer = find_runs(runs, root, where).diff(**options)
    if as_json:
        print_json(
            {"sentences": answer.sentences(), "equal": len(answer.equal), "differences": answer.table().to_pylist()}
        )
        return
    if as_csv:
        print_arrow(answer.table(), as_csv=True)
        return
    width = terminal_width() or 80
    for sentence in answer.sentences():
        print_sentence(sentence, width)
    rows = answer.table().to_pylist()
    names = ("kind", "name", "value", "n", "runs") if not answer.metric else (
        "name", "value", "n", "mean", "explained", "kind", "runs"
    )  # fmt: skip
    if rows:
        print_fitted([{name: row[name] for name in names} for row in rows[:limit]], list(names), width=width)
    if len(rows) > limit:
        remark(f"… {len(rows) - limit:,} more rows; --limit shows them")
