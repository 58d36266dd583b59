"""Ways to make one number of a key of a run: one language, one parser, one evaluator.

    last("test/return")        best("test/return")              mean("test/return", last="10%")
    max("loss", last=20)       steps_to(475, "test/return")     area("test/return")

Where the key is known already, as in `runs.table(metrics={"test/return": …})` and `compare(score=…)`, the same ways are
words: "last", "best", "mean of the last 10%", "steps to 475". `last:KEY`, as older links of the page say it, and
`KEY=best`, as `rollbook ls -m` takes it, are understood, too.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from rollbook.errors import BadInput, did_you_mean
from rollbook.schema.aliases import lower_is_better

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.values.array_types import NDArray

Score: TypeAlias = "Callable[[NDArray, NDArray], float]"
"""(x, values), both [rows] in order of x with finite values only -> one number."""

_SIMPLE = ("last", "first", "best", "max", "min", "mean", "median", "count", "area")
_WINDOWED = ("mean", "median", "max", "min")
_WINDOW = re.compile(rf"({'|'.join(_WINDOWED)}) of the last (\d+(?:\.\d+)?)\s*(%?)")
_NUMBER = r"-?\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?"
_STEPS = re.compile(rf"steps to ({_NUMBER})")
WORDS = (*_SIMPLE, "mean of the last 20", "mean of the last 10%", "steps to 475")
"""The ways, in words; of the last two kinds, examples."""

FUNCTIONS = (*_SIMPLE, "steps_to")
"""The same as functions of a key in a condition."""

_KEY = r"""(?P<key>"(?:[^"]|"")*"|'(?:[^']|'')*')"""
_CALL = re.compile(
    rf"""(?<![\w.])(?:(?P<way>{"|".join(_SIMPLE)})\s*\(\s*{_KEY}\s*
    (?:,\s*last\s*=\s*(?P<part>"[\d.]+\s*%"|'[\d.]+\s*%'|[\d.]+)\s*)?\)
    |steps_to\s*\(\s*(?P<level>{_NUMBER})\s*,\s*{_KEY.replace("<key>", "<reached>")}\s*\))""",
    re.VERBOSE | re.IGNORECASE,
)
_TEXT = r"""'(?:[^']|'')*'|"(?:[^"]|"")*\""""
_CALL_OR_TEXT = re.compile(f"{_CALL.pattern}|{_TEXT}", re.VERBOSE | re.IGNORECASE)
_COLON = re.compile(rf"({'|'.join(_SIMPLE)}):(.+)", re.DOTALL)


class Measure(NamedTuple):
    """One number of a key of a run.

    Attributes:
      key: a key, or a canonical name.
      how: the way in words, such as "mean of the last 10%".
    """

    key: str
    how: str = "last"

    def __str__(self) -> str:
        """As a column."""
        key = '"' + self.key.replace('"', '""') + '"'
        steps, window = _STEPS.fullmatch(self.how), _WINDOW.fullmatch(self.how)
        if steps is not None:
            return f"steps_to({steps[1]}, {key})"
        if window is not None:
            return (
                f"{window[1]}({key}, last={window[2]})" if not window[3] else f'{window[1]}({key}, last="{window[2]}%")'
            )
        return f"{self.how}({key})"


def measure_of(column: str) -> Measure | None:
    """The measure that a column is; None if it is none."""
    call = _CALL.fullmatch(column.strip())
    if call is not None:
        return _of_call(call)
    colon = _COLON.fullmatch(column)
    return None if colon is None else Measure(colon[2], colon[1])


def measure_of_option(text: str) -> Measure:
    """The measure of a word of a command line: a call, KEY=way, or a key, of which the last value is meant."""
    measure = measure_of(text)
    if measure is not None:
        return measure
    key, _, way = text.partition("=")
    return Measure(key, way or "last")


def _of_call(call: re.Match[str]) -> Measure:
    quoted = call["key"] or call["reached"]
    key = quoted[1:-1].replace(quoted[0] * 2, quoted[0])
    if call["level"] is not None:
        return Measure(key, f"steps to {call['level']}")
    if call["part"] is None:
        return Measure(key, call["way"].lower())
    return Measure(key, f"{call['way'].lower()} of the last {call['part'].strip(chr(34) + chr(39)).replace(' ', '')}")


def calls_in(condition: str) -> tuple[str, dict[str, Measure]]:
    """A condition with a column for each measure in it, and the measure of each of those columns."""
    measures: dict[str, Measure] = {}

    def named(call: re.Match[str]) -> str:
        if call["way"] is None and call["level"] is None:
            return call[0]  # a text
        measures[f"measure_{len(measures)}"] = _of_call(call)
        return f"measure_{len(measures) - 1}"

    return _CALL_OR_TEXT.sub(named, condition), measures


def split_columns(text: str) -> list[str]:
    """The columns of a list with commas; a comma inside a call or quotes divides nothing."""
    columns, depth, quote, start = [], 0, "", 0
    for index, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'" and depth:
            quote = letter
        elif letter in "()":
            depth += 1 if letter == "(" else -1
        elif letter == "," and depth <= 0:
            columns.append(text[start:index])
            start = index + 1
    return [column for each in (*columns, text[start:]) if (column := each.strip())]


def level_of(how: object) -> str | None:
    """The level if a score is the number of steps to reach it; else None. Fewer steps are better for every metric."""
    steps = _STEPS.fullmatch(how.strip().lower()) if isinstance(how, str) else None
    return None if steps is None else steps.group(1)


def score_named(how: object, key: str) -> Score:
    """The function that turns the finite rows of a metric into one number.

    Args:
      how: a way in words, or a function of (values) or of (x, values) that returns a number; see `RunSet.table`.
      key: the metric; "best" is its lowest value for losses, errors, costs and durations, else its highest.
    Raises:
      BadInput: an unknown way, or a function with other arguments.
    """
    return _score_of_function(how, key) if callable(how) else _score_of_words(str(how), key)


def measured(x: NDArray, values: NDArray, how: object, key: str) -> float | None:
    """One number of all rows of a run: of "last" the last row, NaN included; else the score of its finite rows.

    None: there are no such rows, or the score is not finite.
    """
    import numpy as np

    if is_last(how):
        return float(values[-1]) if len(values) else None
    score = score_named(how, key)
    finite = np.isfinite(values)
    if not finite.any():
        return None
    number = score(x[finite], values[finite])
    return number if np.isfinite(number) else None


def extreme_of(measure: Measure) -> str | None:
    """ "min" or "max" if that is what a measure is; None for all others."""
    how = measure.how.strip().lower()
    if how == "best":
        return "min" if lower_is_better(measure.key) else "max"
    return how if how in ("min", "max") else None


def is_last(how: object) -> bool:
    """Whether a way is the value of the last row."""
    return isinstance(how, str) and how.strip().lower() == "last"


def _score_of_function(how: Callable[..., Any], key: str) -> Score:
    """A user's function. With one required argument, such as `np.median`, it gets (values); with two, (x, values)."""
    try:
        parameters = inspect.signature(how).parameters.values()
    except (TypeError, ValueError):  # some C functions have no signature
        return lambda x, values: float(how(values))
    taken = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in taken)
    if required == 2 or (not taken and any(p.kind is p.VAR_POSITIONAL for p in parameters)):
        return lambda x, values: float(how(x, values))
    if required == 1:
        return lambda x, values: float(how(values))
    raise BadInput(
        f"{key}: a function that makes one number of it takes (values) or (x, values), both arrays; "
        f"{getattr(how, '__name__', how)!r} needs {required} arguments.",
        "Write for example lambda values: values[-5:].mean()",
    )


@functools.lru_cache(256)
def _score_of_words(how: str, key: str) -> Score:
    word = how.strip().lower()
    if word == "best":
        word = "min" if lower_is_better(key) else "max"
    made = _of_all_rows(word) or _first_at_level(word, key) or _over_window(word)
    if made is None:
        raise BadInput(f"{key}: {how!r} is not a way to make one number of it.", did_you_mean(word, list(WORDS)))
    return made


def _of_all_rows(word: str) -> Score | None:
    import numpy as np

    simple: Mapping[str, Score] = {
        "last": lambda x, values: float(values[-1]),
        "first": lambda x, values: float(values[0]),
        "max": lambda x, values: float(values.max()),
        "min": lambda x, values: float(values.min()),
        "mean": lambda x, values: float(values.mean()),
        "median": lambda x, values: float(np.median(values)),
        "count": lambda x, values: float(len(values)),
        "area": _area,
    }
    return simple.get(word)


def _first_at_level(word: str, key: str) -> Score | None:
    import numpy as np

    steps = _STEPS.fullmatch(word)
    if steps is None:
        return None
    level, sign = float(steps.group(1)), -1.0 if lower_is_better(key) else 1.0

    def first_at_level(x: NDArray, values: NDArray) -> float:
        """The first x where the level is reached, from the first row on; NaN if never."""
        there = np.flatnonzero(sign * values >= sign * level)
        return float(x[there[0]]) if len(there) else np.nan

    return first_at_level


def _over_window(word: str) -> Score | None:
    import numpy as np

    window = _WINDOW.fullmatch(word)
    if window is None or float(window.group(2)) <= 0:
        return None
    reduce: Any = getattr(np, window.group(1))
    amount = float(window.group(2))
    if not window.group(3):
        return lambda x, values: float(reduce(values[-max(1, int(amount)) :]))

    def over_last_part(x: NDArray, values: NDArray) -> float:
        """Over the rows in the last part of the axis, at least the last row."""
        from_here = x[-1] - (x[-1] - x[0]) * min(amount, 100.0) / 100
        return float(reduce(values[np.searchsorted(x, from_here) :]))

    return over_last_part


def _area(x: NDArray, values: NDArray) -> float:
    """The area under the piecewise linear curve, divided by the length of the axis: its mean height."""
    import numpy as np

    length = float(x[-1] - x[0])
    return float(values[-1]) if length <= 0 else float(np.diff(x) @ (values[1:] + values[:-1]) / 2 / length)
