"""`rollbook report`."""

from __future__ import annotations

import click

from rollbook.cli.asking import kind_of
from rollbook.cli.find import find_runs, runs_options
from rollbook.cli.output import clean, json_option, print_json, remark
from rollbook.runs.questions import Curves


@click.command()
@runs_options
@click.option(
    "--metric",
    "-m",
    "metrics",
    multiple=True,
    help="The metric; may be repeated. Without it, the score that the runs have.",
)
@click.option(
    "--by",
    type=kind_of(Curves, "by"),
    default="auto",
    show_default=True,
    help="The fields whose values are compared, such as config.algo; auto: what differs; none: nothing is compared.",
)
@click.option("-x", "--x", "axis", default=None, help="The axis of curves.")
@click.option("--plan", default=None, help="Name of a comparison plan; see `rollbook compare`.")
@click.option("--floor", type=float, default=None, help="The score of a crashed run.")
@click.option("--output", "-o", "output", default="report.html", show_default=True, help="The page.")
@json_option
def report(
    runs: tuple[str, ...],
    root: str,
    metrics: tuple[str, ...],
    by: str | None,
    axis: str | None,
    where: str | None,
    plan: str | None,
    floor: float | None,
    output: str,
    as_json: bool,
) -> None:
    """Write one page about a run or a group of runs: pictures and style inside, no scripts; it can be mailed.

    \b
    Examples:
      rollbook report last -o report.html
      rollbook report cartpole -m test/return --by config.algo -o report.html
    """
    from rollbook.runs.report import write

    chosen = find_runs(runs, root, where)
    more: dict[str, object] = {name: value for name, value in (("plan", plan), ("floor", floor)) if value is not None}
    what = chosen.last() if len(chosen) == 1 and by in ("auto", None) else chosen
    wrote = write(what, output, metric=metrics, by=by, x=axis, **more)
    remark(f"wrote {clean(wrote)}")
    if as_json:
        print_json({"wrote": str(wrote)})
