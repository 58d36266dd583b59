"""`rollbook timings`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.book.questions import Stages
from rollbook.cli.asking import asks
from rollbook.cli.find import dir_option, find_book, format_options, run_argument_or_last
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import print_rows, remark, seconds


@click.command()
@run_argument_or_last
@dir_option
@asks(Stages)
@format_options
def timings(run: str, root: str, stretches: int, as_json: bool, as_csv: bool, **options: Any) -> None:
    """Show where the time of a run went: each stage that `run.timer` measured, the longest first.

    A stage inside another one is called outer/inner. Its own time is without the stages inside of it; shares are of the
    time of all stages.

    \b
    Examples:
      rollbook timings
      rollbook timings cartpole/ppo --json
      rollbook timings last --start 50000               from here of its axis on
      rollbook timings last --stretches 5               in each fifth of training
      rollbook sql last 'select * from timings'         every single measurement
    """
    book = find_book(run, root, lambda book: book.row_count("timings") > 0, "timings")
    rows = book.stages(**options, stretches=stretches).to_pylist()
    if as_json or as_csv:
        print_rows(rows, as_json=as_json, as_csv=as_csv)
        return
    if not rows:
        remark('this run measured nothing: with run.timer("collect"): ... does')
        return
    shown = [
        {
            "stage": row["name"],
            "calls": row["calls"],
            "took": seconds(row["seconds"]),
            "own": seconds(row["own"]),
            "share": f"{row['share']:.0%}",
            "median": _short(row["median"]),
            "longest": _short(row["longest"]),
        }
        for row in rows
    ]
    print_fitted(shown, list(shown[0]), width=terminal_width())
    if stretches and rows[0]["width"] is not None:
        remark(f"each stage's own time, from {rows[0]['begin']:g} on in stretches of {rows[0]['width']:g}:")
        print_fitted(_over(rows), ["stage", *map(str, range(1, stretches + 1))], width=terminal_width())


def _over(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The own time of each stage in each stretch, by the number of the stretch."""
    return [
        {"stage": row["name"], **{str(part["stretch"] + 1): seconds(part["own"]) for part in row["strip"]}}
        for row in rows
    ]


def _short(duration: float) -> str:
    return f"{1000 * duration:.3g} ms" if duration < 1 else seconds(duration)
