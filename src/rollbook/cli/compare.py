"""`rollbook compare`."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Any

import click

from rollbook.cli.asking import asks
from rollbook.cli.find import find_runs, format_options, runs_options
from rollbook.cli.fitted_table import print_answer
from rollbook.cli.output import clean, print_json, print_rows, remark
from rollbook.runs.questions import Compare
from rollbook.system.texts import amount


@click.command()
@runs_options
@asks(Compare, short={"metric": "-m", "x": "-x"})
@click.option("--output", "-o", "folder", default=None, help="A folder for the figures.")
@click.option(
    "--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True, help="Colours of figures."
)
@click.option("--latex", is_flag=True, help="Print a LaTeX table (booktabs).")
@click.option("--markdown", is_flag=True, help="Print a Markdown table, and the verdicts below it.")
@format_options
def compare(
    runs: tuple[str, ...],
    root: str,
    metric: str,
    by: str,
    where: str | None,
    folder: str | None,
    theme: str,
    latex: bool,
    markdown: bool,
    as_json: bool,
    as_csv: bool,
    **options: Any,
) -> None:
    """Say which group of runs is better, how sure that is, and what would decide it.

    \b
    Examples:
      rollbook compare cartpole
      rollbook compare cartpole --metric test/return --by config.algo
      rollbook compare cartpole -m test/return --by config.algo,config.lr
      rollbook compare cartpole -m test/return --by config.algo --against dqn
      rollbook compare cartpole -m test/return --by algo --plan mine --seeds 10
    """
    chosen = find_runs(runs, root, where)
    answer = chosen.compare(metric, by, **options)
    texts = [name for name, is_asked in (("latex", latex), ("markdown", markdown)) if is_asked]
    if as_json:
        print_json({**answer.as_data(), **{name: getattr(answer, name)() for name in texts}})
    elif as_csv:
        print_rows(answer.table(), as_csv=True)
    elif texts:
        for name in texts:
            click.echo(getattr(answer, name)(), nl=False)
    else:
        more = answer.next_seeds()
        todo = [_next(more, len(answer.groups))] if more else []
        table = answer.table()
        names = sorted(table[0], key=lambda name: name == "method") if table else None  # the sentences name the method
        print_answer([*answer.sentences(), *todo], table, names=names)
    if folder is not None:
        for path in _figures(chosen, answer, options, folder, theme):
            remark(f"wrote {clean(path)}")


def _next(more: dict[str, int], groups: int) -> str:
    """What to train, and what to type then."""
    counts = set(more.values())
    if len(counts) == 1 and len(more) == groups:
        what = f"{amount(counts.pop(), 'more seed')} of each group"
    else:
        what = " and ".join(f"{amount(n, 'more seed')} of {label}" for label, n in more.items())
    return f"Next: train {what}, then type again: rollbook {shlex.join(sys.argv[1:])}"


def _figures(chosen: Any, answer: Any, options: dict[str, Any], folder: str, theme: str) -> list[str]:
    """Curves, intervals, profiles, improvement and sample efficiency: those possible for this comparison."""
    of_tasks = {name: options[name] for name in ("task", "normalise")}
    curves = chosen.curves(answer.metric, x=options["x"], by=answer.by, statistic=answer.statistic, **of_tasks)
    pictures = {"curves": curves.plot(theme=theme)}
    if len(answer.tasks) == 1:
        pictures["efficiency"] = curves.reached().plot(theme=theme)
    pictures |= {
        "intervals": answer.plot("intervals", theme=theme),
        "profiles": answer.plot("profiles", theme=theme),
    }
    if answer.pairs:
        pictures["improvement"] = answer.plot("improvement", theme=theme)
    return [picture.save(os.path.join(folder, f"{name}.png")) for name, picture in pictures.items()]
