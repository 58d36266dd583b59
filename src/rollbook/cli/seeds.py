"""`rollbook seeds`."""

from __future__ import annotations

from math import inf

import click

from rollbook.cli.asking import asks
from rollbook.cli.find import find_runs, runs_options
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import number, print_json, print_sentence
from rollbook.runs.questions import Seeds


@click.command()
@runs_options
@asks(Seeds, short={"metric": "-m"})
@click.option(
    "--std",
    type=click.FloatRange(min=0, min_open=True),
    default=None,
    help="Standard deviation of the scores of seeds.",
)
@click.option(
    "--groups",
    type=click.IntRange(min=2),
    default=2,
    show_default=True,
    help="How many groups are compared, each with each.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def seeds(
    runs: tuple[str, ...],
    root: str,
    metric: str,
    by: str,
    score: str,
    where: str | None,
    difference: float | None,
    std: float | None,
    groups: int,
    against: str | None,
    power: float,
    as_json: bool,
) -> None:
    """Compute how many seeds each group needs, and which difference a number of seeds can find.

    Before a study, --difference and --std say what to plan for. Without --std, both come from what the seeds of the
    runs have shown, in the groups of --by. What is promised here is what `rollbook compare` decides: the same tests,
    at the limit of the next look.

    \b
    Examples:
      rollbook seeds --difference 50 --std 80
      rollbook seeds cartpole --metric test/return --by config.algo
    """
    from rollbook.compare.seeds import COUNTS, as_planned

    if std is not None and not metric and by == "auto":
        pairs = groups - 1 if against is not None else groups * (groups - 1) // 2
        found = as_planned(std, difference, power, COUNTS, pairs)
    elif std is None and (runs or where or metric or by != "auto"):
        found = find_runs(runs, root, where).seeds(
            metric, by, score=score, against=against, difference=difference, power=power
        )
    else:
        raise click.UsageError("say --std (and --difference) before a study, or runs with --metric and --by, not both")
    if as_json:
        print_json({**found.as_data(), "sentences": found.sentences()})
        return
    width = terminal_width() or 80
    for sentence in found.sentences():
        print_sentence(sentence, width)
    rows = [
        {"seeds of each": n, f"difference found with a chance of {power:.0%}": number(size) if size < inf else "none"}
        for n, size in found.detectable.items()
    ]
    click.echo()
    print_fitted(rows, list(rows[0]), width=width)
