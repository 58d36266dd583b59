"""The charts by name. A new chart is a file with a function `draw(figure, data, style, …)` and one entry here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module

from rollbook.errors import UnknownOption, did_you_mean
from rollbook.plots._picture import Picture


@dataclass(frozen=True, slots=True)
class Chart:
    """The properties of a chart, known without loading it.

    Attributes:
      module: the module of its `draw`.
      of: its subject: "run", "runs", or "both".
      says: one phrase for lists.
      size: width and height in inches.
      in_characters: module:function of (data, width, height, colour) -> text, "" if there is none.
    """

    module: str
    of: str
    says: str
    size: tuple[float, float] = (7.0, 4.0)
    in_characters: str = ""


SIZES = {"column": (3.4, 2.6), "page": (7.0, 4.0), "slide": (10.0, 5.6)}
"""Width and height in inches: a column of a paper, its whole width, a slide."""

_TEXT = "rollbook.plots._characters:panel_in_characters"
_TEXTS = "rollbook.plots._characters:panels_in_characters"
_BARS = "rollbook.plots._bars_in_characters:bars_in_characters"
_PANELS_OF_BARS = "rollbook.plots._bars_in_characters:panels_of_bars_in_characters"

CHARTS: dict[str, Chart] = {
    "curves": Chart(
        "rollbook.plots.curves", "both", "a metric along training, its band, the runs behind it", in_characters=_TEXT
    ),
    "small_multiples": Chart(
        "rollbook.plots.small_multiples", "both", "a panel a key, a group or a task", (7.2, 4.0), in_characters=_TEXTS
    ),
    "intervals": Chart(
        "rollbook.plots.intervals", "runs", "scores of groups with their intervals", in_characters=_BARS
    ),
    "aggregates": Chart(
        "rollbook.plots.aggregates",
        "runs",
        "median, IQM, mean and optimality gap, with intervals",
        in_characters=_PANELS_OF_BARS,
    ),
    "profiles": Chart(
        "rollbook.plots.profiles", "runs", "the share of scores above each threshold", in_characters=_TEXT
    ),
    "efficiency": Chart(
        "rollbook.plots.profiles", "runs", "the share of seeds that reached a score, over training", in_characters=_TEXT
    ),
    "improvement": Chart(
        "rollbook.plots.improvement", "runs", "how often a seed of one group beats one of another", in_characters=_BARS
    ),
    "parallel": Chart("rollbook.plots.parallel", "runs", "settings of a sweep, coloured by the result"),
    "stages": Chart("rollbook.plots.stacks", "run", "time per stage, stacked along training"),
    "timeline": Chart("rollbook.plots.timeline", "run", "stages as they followed each other"),
    "histograms": Chart("rollbook.plots.histograms", "run", "logged distributions along training"),
    "episodes": Chart("rollbook.plots.episodes", "run", "the return of every episode, and how it ended"),
    "novelty": Chart("rollbook.plots.profiles", "run", "the share of samples never seen before", in_characters=_TEXT),
    "rewards": Chart("rollbook.plots.stacks", "run", "what the return is made of, stacked"),
}
"""By name."""


def chart_named(name: str, of: str | None = None) -> Chart:
    """A chart by its name.

    Raises:
      UnknownOption: there is none, or it has another subject.
    """
    fitting = {key: chart for key, chart in CHARTS.items() if of in (None, chart.of) or chart.of == "both"}
    if name not in fitting:
        about = {"run": "of one run", "runs": "of several runs"}.get(of or "", "of that name")
        elsewhere = (
            f" ({name!r} is a chart of {'one run' if of == 'runs' else 'several runs'})" if name in CHARTS else ""
        )
        raise UnknownOption(f"chart={name!r}: no such chart {about}{elsewhere}.", did_you_mean(name, list(fitting)))
    return fitting[name]


def options_of(name: str) -> frozenset[str]:
    """The options that a chart's `draw` takes."""
    return frozenset(import_module(chart_named(name).module).draw.__kwdefaults__ or ())


def draw(
    name: str, data: object, *, theme: str = "light", size: tuple[float, float] | str | None = None, **options: object
) -> Picture:
    """A picture of prepared data.

    Args:
      name: of the chart, see `CHARTS`.
      data: the chart's data type, see its file.
      theme: "light" or "dark", the default for saving.
      size: width and height in inches, or a name of `SIZES`.
      options: of the chart.
    Raises:
      UnknownOption: no such chart, size or option.
    """
    chart = chart_named(name)
    if isinstance(size, str):
        if size not in SIZES:
            raise UnknownOption(f"size={size!r}: there is no such size.", did_you_mean(size, list(SIZES)))
        size = SIZES[size]
    function = import_module(chart.module).draw
    known = options_of(name)
    for option in options:
        if option not in known:
            raise UnknownOption(
                f"{option}=: the chart {name!r} takes no such option.", did_you_mean(option, sorted(known))
            )

    def paint(figure: object, style: object) -> None:
        function(figure, data, style, **options)

    text: Callable[[int, int, bool], str] | None = None
    if chart.in_characters:
        home, _, word = chart.in_characters.partition(":")
        text = partial(getattr(import_module(home), word), data)
    return Picture(name, paint, size=size or chart.size, text=text, theme=theme)
