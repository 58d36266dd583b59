"""`rollbook scores`."""

from __future__ import annotations

import click

from rollbook.cli.find import format_options
from rollbook.cli.fitted_table import has_colours, print_fitted, terminal_width
from rollbook.cli.output import clean, print_json, print_rows, remark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.compare import Comparison

_CHARTS = ("aggregates", "profiles", "improvement", "intervals")
_OF_STATISTIC = ("statistic", "estimate", "low", "high")


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--normalise", type=click.Choice(["atari", "d4rl"]), default=None, help="Put raw scores on one scale.")
@click.option(
    "--direction",
    type=click.Choice(["higher", "lower"]),
    default="higher",
    show_default=True,
    help="Which scores are better.",
)
@click.option(
    "--resample",
    type=click.Choice(["runs", "seeds"]),
    default="runs",
    show_default=True,
    help="What the bootstrap resamples.",
)
@click.option("--chart", type=click.Choice(_CHARTS), default="aggregates", show_default=True, help="For -o and --text.")
@click.option("--against", default=None, help="For improvement: only pairs with this algorithm.")
@click.option(
    "--size",
    type=click.Choice(["column", "page", "slide"]),
    default="page",
    show_default=True,
    help="Width of the figure.",
)
@click.option(
    "--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True, help="Colours of figures."
)
@click.option("--output", "-o", "output", default=None, help="The file: .png, .svg or .pdf.")
@click.option("--text", is_flag=True, help="Draw the chart in characters, too.")
@click.option("--latex", is_flag=True, help="Print a LaTeX table (booktabs).")
@format_options
def scores(
    files: tuple[str, ...],
    normalise: str | None,
    direction: str,
    resample: str,
    chart: str,
    against: str | None,
    size: str,
    theme: str,
    output: str | None,
    text: bool,
    latex: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Compare raw scores that a paper published: median, IQM, mean and optimality gap, each with its interval.

    FILES are JSON: {task: [score of each run]}, named after the algorithm, or {algorithm: {task: [scores]}}.
    Intervals are those of rliable: percentiles of a bootstrap stratified by task (--resample seeds: whole seeds).

    \b
    Examples:
      rollbook scores SPR.json IRIS.json --normalise atari -o aggregates.pdf
      rollbook scores SPR.json IRIS.json --chart improvement --against IRIS --text
      rollbook scores *.json --text
      rollbook scores *.json --latex
    """
    from rollbook.compare import published

    answer = published(files, normalise=normalise, direction=direction)
    rows = [] if latex and not as_json else _rows(answer, resample)
    drawn, wrote = None, None
    if output is not None or text:
        options = {"resample": resample} if chart == "aggregates" else {}
        options |= {"against": against} if chart == "improvement" and against is not None else {}
        picture = answer.plot(chart, theme=theme, size=size, **options)
        if text:
            drawn = picture.text(min(terminal_width() or 80, 160), 20, colour=has_colours() and not as_json)
        if output is not None:
            wrote = str(picture.save(output))
    if as_json and (latex or text):
        more = {"latex": answer.latex(resample) if latex else None, "text": drawn}
        print_json({"statistics": rows, **{name: words for name, words in more.items() if words is not None}})
    elif latex:
        click.echo(answer.latex(resample), nl=False)
    elif as_json or as_csv:
        print_rows(rows, as_json=as_json, as_csv=as_csv)
    else:
        _print_by_statistic(rows)
        for note in answer.notes:
            remark(clean(note))
    if drawn is not None and not as_json:
        click.echo("\n" + drawn)
    if wrote is not None:
        remark(f"wrote {clean(wrote)}")


def _rows(answer: Comparison, resample: str) -> list[dict[str, object]]:
    """A row for each statistic of each algorithm, with its interval."""
    counts = {group.label: len(group.seeds_R) for group in answer.groups}
    return [
        {"algorithm": label, "runs": counts[label], **{name: getattr(each, name) for name in _OF_STATISTIC}}
        for label, statistics in answer.aggregates(resample).items()
        for each in statistics
    ]


def _print_by_statistic(rows: list[dict[str, object]]) -> None:
    """Print rows with the algorithms of one statistic below each other, where they can be compared."""
    order = list(dict.fromkeys(row["statistic"] for row in rows))
    names = ["statistic", *(name for name in rows[0] if name != "statistic")]
    in_order = sorted(rows, key=lambda row: order.index(row["statistic"]))
    print_fitted([{name: row[name] for name in names} for row in in_order], names, width=terminal_width() or 80)
