"""Charts of several runs: the data of each chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rollbook.errors import BadInput, UnknownOption, did_you_mean
from rollbook.plots import CHARTS, Line, Panel, Picture, Threads, draw
from rollbook.plots._registry import chart_named, options_of
from rollbook.runs.comparing import compared
from rollbook.runs.curving import drawn
from rollbook.runs.fields import field_of, flat, value_at
from rollbook.runs.groups import begun_first, labels_of, looks_of
from rollbook.runs.questions import Compare, Fields
from rollbook.runs.questions import Curves as CurvesOf
from rollbook.runs.results import measures_of
from rollbook.runs.source import Files
from rollbook.runs.usual_score import usual_score
from rollbook.schema.question import options as question_options
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.compare import Comparison, Curves

Row = Mapping[str, Any]


class _Asked(NamedTuple):
    """The request for a chart: the runs, and the options that are not the chart's own."""

    rows: Sequence[Row]
    root: str
    keys: list[str]
    by: Fields | None
    x: str | None
    options: dict[str, Any]

    @property
    def task(self) -> str | None:
        """The field with a run's task; None: there are no tasks."""
        return self.options.get("task")


def kinds() -> dict[str, tuple[str, str]]:
    """Every chart: name -> (what it shows, whether of one "run", of several "runs" or of "both")."""
    return {name: (chart.says, chart.of) for name, chart in CHARTS.items()}


def picture_of(
    rows: Sequence[Row],
    root: str,
    key: str | Sequence[str],
    *,
    by: Fields | None,
    x: str | None,
    chart: str,
    theme: str,
    options: Mapping[str, object],
) -> Picture:
    """See `RunSet.plot`."""
    chart_named(chart, "runs")
    make, known = _MAKERS[chart]
    keys = [key] if isinstance(key, str) else [str(each) for each in key]
    keys = [each for each in keys if each]
    if not keys and rows:
        keys = [usual_score(Files(rows, root), rows, "plot").values["metric"]]
    if len(keys) > 1 and chart != "small_multiples":
        raise BadInput(f"{keys!r:.80}: this chart shows one key.", "Several go with chart='small_multiples'")
    of_chart = options_of(chart) | {"size"}
    for name in options:
        if name not in of_chart and name not in known:
            choices = sorted({*of_chart, *known})
            raise UnknownOption(f"{name}=: nobody takes this option for chart={chart!r}.", did_you_mean(name, choices))
    mine = {name: value for name, value in options.items() if name not in of_chart}
    of_its_own = {name: value for name, value in options.items() if name in of_chart}
    return make(_Asked(rows, root, keys, by, x, mine), theme, of_its_own)


def _curves(asked: _Asked, theme: str, options: dict[str, Any]) -> Picture:
    shown = _take(asked.options, "seeds", "extremes")
    return _numbers(asked).plot(theme=theme, **shown, **options)


def _small_multiples(asked: _Asked, theme: str, options: dict[str, Any]) -> Picture:
    """One panel per key if there are several keys, else one per value of the field `panels`, else one per group."""
    shown = _take(asked.options, "seeds", "extremes")
    field = asked.options.pop("panels", None)
    panels: list[Panel]
    if field is not None:
        panels = _panels_by(asked, str(field), shown)
    elif len(asked.keys) > 1:
        panels = [_numbers(asked._replace(keys=[key])).panel(**shown) for key in asked.keys]
    else:
        panels = _numbers(asked).panels(**shown)
        options = {"same_scale": True, **options}
    return draw("small_multiples", panels, theme=theme, **options)


def _panels_by(asked: _Asked, field: str, shown: Mapping[str, Any]) -> list[Panel]:
    """One panel per value of a field. A group has the same colour in all panels, and no line where it has no run."""
    field = field_of(field, asked.rows, f"plot(panels={field!r})")
    rows = begun_first(asked.rows)
    labels = list(dict.fromkeys(labels_of(rows, asked.by, f"plot(by={asked.by!r})", asked.task)))
    looks = looks_of(
        rows, asked.root, asked.by, asked.task, drawn=True
    )  # of all panels: no two groups get the same colour
    made: list[Panel] = []
    whose: list[str] = []
    for value in sorted({str(value_at(row, field)) for row in rows}):
        numbers = _numbers(asked._replace(rows=[row for row in rows if str(value_at(row, field)) == value]))
        panel = numbers.panel(**shown, title=value)
        drawn = dict(zip((group.label for group in numbers.groups), panel.lines, strict=True))
        none = np.zeros(0)
        lines = [
            replace(drawn[label], label=label) if label in drawn else Line(label, none, none, look=looks[label])
            for label in labels
        ]
        whose += [line.label.partition(": ")[2] for line in panel.lines]
        made.append(replace(panel, lines=tuple(lines)))
    reasons = "; ".join(list(dict.fromkeys(filter(None, whose)))[:3])
    return [replace(made[0], remarks=(f"{asked.keys[0]}: {reasons}.", *made[0].remarks)), *made[1:]]


def _efficiency(asked: _Asked, theme: str, options: dict[str, object]) -> Picture:
    level = asked.options.pop("level", None)
    return _numbers(asked).reached(level).plot(theme=theme, **options)


def _compared(chart: str) -> Callable[[_Asked, str, dict[str, object]], Picture]:
    def make(asked: _Asked, theme: str, options: dict[str, object]) -> Picture:
        of_chart = _take(asked.options, "resample", "against")
        return _comparison(asked, chart).plot(chart, theme=theme, **of_chart, **options)

    return make


def _parallel(asked: _Asked, theme: str, options: dict[str, Any]) -> Picture:
    """The settings that differ, in the order of the configuration; `by` is not needed."""
    (key,) = asked.keys
    score = asked.options.get("score", "mean of the last 10%")
    (results,) = measures_of(asked.rows, [(key, score)], asked.x)
    settings = [flat(row.get("config") or {}, "config.") for row in asked.rows]
    names = list(dict.fromkeys(name for each in settings for name in each))
    different = [name for name in names if len({repr(each.get(name)) for each in settings}) > 1]
    alike: dict[tuple[int, ...], list[str]] = {}  # settings that divide the runs in the same way become one column
    for name in different:
        alike.setdefault(_division([repr(each.get(name)) for each in settings]), []).append(name)
    columns = [names[0] for names in alike.values()]
    threads = Threads(
        f"{key} by configuration",
        tuple(columns),
        tuple(tuple(_cell(each.get(name)) for each in settings) for name in columns),
        np.array([np.nan if result is None else result for result in results], dtype=np.float64),
        f"{key} ({score})",
        (f"{amount(len(asked.rows), 'run')}.", *(_go_along(names) for names in alike.values() if len(names) > 1)),
    )
    return draw("parallel", threads, theme=theme, **options)


def _division(values: Sequence[str]) -> tuple[int, ...]:
    """Which runs have equal values: for each run, the index of the first run with its value."""
    first: dict[str, int] = {}
    return tuple(first.setdefault(value, index) for index, value in enumerate(values))


def _go_along(names: Sequence[str]) -> str:
    own, *others = (name.removeprefix("config.") for name in names)
    more = f" and {len(others) - 4} more" if len(others) > 4 else ""
    return f"Divide the runs as {own} does: {', '.join(others[:4])}{more}."


def _cell(value: object) -> object:
    return value if value is None or isinstance(value, (int, float, str)) else str(value)


def _numbers(asked: _Asked) -> Curves:
    looks_of(asked.rows, asked.root, asked.by, asked.task, drawn=True)
    options: dict[str, Any] = asked.options
    numbers = drawn(CurvesOf(key=asked.keys[0], by=asked.by, x=asked.x, **options), Files(asked.rows, asked.root))
    return replace(numbers, looks=looks_of(asked.rows, asked.root, asked.by, asked.task))


def _comparison(asked: _Asked, chart: str) -> Comparison:
    if asked.by is None:
        raise BadInput(f"plot(chart={chart!r}, by=None): one group is not compared.", "Say by='auto', or a field")
    looks_of(asked.rows, asked.root, asked.by, asked.task, drawn=True)
    options: dict[str, Any] = asked.options
    answer = compared(Compare(metric=asked.keys[0], by=asked.by, x=asked.x, **options), Files(asked.rows, asked.root))
    return replace(answer, looks=looks_of(asked.rows, asked.root, asked.by, asked.task))


def _take(options: dict[str, object], *names: str) -> dict[str, Any]:
    return {name: options.pop(name) for name in names if name in options}


_CURVES = tuple(option.name for option in question_options(CurvesOf) if option.name not in ("key", "by", "x"))
_COMPARED = tuple(option.name for option in question_options(Compare) if option.name not in ("metric", "by", "x"))
_MAKERS: dict[str, tuple[Callable[[_Asked, str, dict[str, object]], Picture], tuple[str, ...]]] = {
    "curves": (_curves, (*_CURVES, "seeds", "extremes")),
    "small_multiples": (_small_multiples, (*_CURVES, "seeds", "extremes", "panels")),
    "efficiency": (_efficiency, _CURVES),
    "intervals": (_compared("intervals"), _COMPARED),
    "aggregates": (_compared("aggregates"), (*_COMPARED, "resample")),
    "profiles": (_compared("profiles"), _COMPARED),
    "improvement": (_compared("improvement"), (*_COMPARED, "against")),
    "parallel": (_parallel, ("score",)),
}
"""Chart -> (function that draws it, options of its data)."""
