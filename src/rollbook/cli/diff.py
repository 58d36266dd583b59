"""`rollbook diff`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.cli.asking import asks
from rollbook.cli.find import find_runs, format_options, limit_option, runs_options
from rollbook.cli.fitted_table import print_answer
from rollbook.cli.output import print_arrow, print_json, print_patch
from rollbook.runs.questions import Diff
from rollbook.system.texts import amount


@click.command()
@runs_options
@asks(Diff, short={"metric": "-m"})
@limit_option(40)
@click.option("--patch", "as_patch", is_flag=True, help="Print how the uncommitted changes of code differ instead.")
@format_options
def diff(
    runs: tuple[str, ...],
    root: str,
    where: str | None,
    limit: int,
    as_patch: bool,
    as_json: bool,
    as_csv: bool,
    **options: Any,
) -> None:
    """Show what differs between runs or groups of them: configuration, code, packages, machine.

    \b
    Examples:
      rollbook diff cartpole
      rollbook diff cartpole --metric test/return
      rollbook diff cartpole --by config.algo
      rollbook diff cartpole --where "seed < 2" --patch
    """
    answer = find_runs(runs, root, where).diff(**options)
    if as_patch and not (as_json or as_csv):
        print_patch(answer.patch(), f"{amount(answer.runs, 'run')}: the same uncommitted changes, or none")
        return
    if as_json:
        print_json(
            {"sentences": answer.sentences(), "equal": len(answer.equal), "differences": answer.table().to_pylist()}
        )
        return
    if as_csv:
        print_arrow(answer.table(), as_csv=True)
        return
    of_metric = ("name", "value", "n", "mean", "explained", "kind", "runs")
    names = of_metric if answer.metric else ("kind", "name", "value", "n", "runs")
    print_answer(answer.sentences(), answer.table().to_pylist(), limit=limit, names=names)
