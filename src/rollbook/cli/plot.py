"""`rollbook plot`."""

from __future__ import annotations

from typing import Any

import click

from rollbook.cli.asking import asks, kind_of
from rollbook.cli.find import find_runs, runs_options
from rollbook.cli.fitted_table import has_colours, terminal_width
from rollbook.cli.output import clean, json_option, print_choices, print_json, remark
from rollbook.runs.questions import Curves
from rollbook.schema.question import options as question_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book

_LINES_OF_TEXT = 22


@click.command()
@runs_options
@click.option(
    "--key",
    "-k",
    "keys",
    multiple=True,
    help="The metric, such as test/return; may be repeated; default: the score that the runs have.",
)
@click.option(
    "--by",
    type=kind_of(Curves, "by"),
    default="auto",
    show_default=True,
    help="The fields whose values make the groups, such as config.algo; auto: what differs; none: one group.",
)
@click.option("-x", "--x", "axis", default=None, help="The axis: a clock such as env_step, a key, or time.")
@click.option("--chart", default="curves", show_default=True, help="Which chart; --charts lists them.")
@click.option("--charts", is_flag=True, help="List the charts.")
@click.option("--panels", default=None, help="For small_multiples: a panel for each value of this field.")
@click.option("--seeds", type=click.Choice(["auto", "always", "never"]), default=None, help="The runs as thin lines.")
@click.option("--limits", nargs=2, type=float, default=None, help="Lowest and highest value shown.")
@click.option(
    "--resample",
    type=click.Choice(["seeds", "runs"]),
    default=None,
    help="For aggregates: what the bootstrap resamples.",
)
@click.option(
    "--level",
    type=float,
    default=None,
    help="For efficiency: the score that counts as reached. For curves: the level of the intervals.",
)
@asks(Curves, arguments=("key", "by", "x", "level"), of="Of curves")
@click.option("--size", type=click.Choice(["column", "page", "slide"]), default=None, help="Width of the figure.")
@click.option(
    "--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True, help="Colours of figures."
)
@click.option("--title", default=None, help="The title of the figure; '' for none.")
@click.option("--no-notes", is_flag=True, help="Only the figure; its notes belong in the caption of your paper.")
@click.option("--output", "-o", "output", default=None, help="The file: .png, .svg or .pdf.")
@click.option("--text", is_flag=True, help="Draw in characters, as without -o.")
@json_option
def plot(
    runs: tuple[str, ...],
    root: str,
    keys: tuple[str, ...],
    by: str | None,
    axis: str | None,
    chart: str,
    charts: bool,
    where: str | None,
    theme: str,
    title: str | None,
    no_notes: bool,
    output: str | None,
    text: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Draw runs: curves with bands, intervals, stages and more.

    RUNS is a run, a project, project/name (all runs of that name), a folder of runs, or nothing for all. Without -o the
    chart is drawn in characters.

    \b
    Examples:
      rollbook plot cartpole --key test/return --by config.algo -o curves.png
      rollbook plot last --key train/return --text
      rollbook plot last --chart timeline -o time.svg
    """
    if charts:
        from rollbook.runs.charts import kinds

        subjects = {"run": "one run", "runs": "several runs", "both": "one or several runs"}
        listed = {name: f"{says} ({subjects[subject]})" for name, (says, subject) in kinds().items()}
        print_choices("chart", listed, as_json=as_json)
        return
    options = {name: value for name, value in options.items() if value is not None and value is not False}
    picture = _picture(runs, root, where, list(keys), by, axis, chart, theme, options)
    drawn = None
    if text or output is None:
        drawn = picture.text(min(terminal_width() or 80, 160), _LINES_OF_TEXT, colour=has_colours() and not as_json)
    wrote = None if output is None else picture.save(output, title=title, notes=not no_notes)
    if as_json:
        print_json({"text": drawn, "wrote": None if wrote is None else str(wrote)})
    elif drawn is not None:
        click.echo(drawn)
    if wrote is not None:
        remark(f"wrote {clean(wrote)}")


def _has(book: Book, keys: list[str]) -> bool:
    known = {*book.keys(), *book.canonical()}
    return known.issuperset(keys) if keys else bool(known)


def _picture(
    runs: tuple[str, ...],
    root: str,
    where: str | None,
    keys: list[str],
    by: str | None,
    axis: str | None,
    chart: str,
    theme: str,
    options: dict[str, object],
) -> Any:
    from rollbook.runs.charts import kinds

    chosen = find_runs(runs, root, where, having=lambda book: _has(book, keys), what=", ".join(keys) or "rows")
    _, about = kinds().get(chart, ("", "both"))
    of_several = {"seeds", "panels", *(option.name for option in question_options(Curves))} & options.keys()
    single = len(chosen) == 1 and by in ("auto", None) and not of_several
    if about == "run" or (single and about == "both"):
        if len(chosen) > 1:
            remark(f"{len(chosen)} runs fit; this chart is of one run, and the newest is taken")
        return chosen.last().plot(keys, x=axis, chart=chart, theme=theme, **options)
    return chosen.plot(keys, by=by, x=axis, chart=chart, theme=theme, **options)
