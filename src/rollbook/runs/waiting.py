"""Wait until a condition on one run is true: `last("test/return") > 475 or status != "running"`.

    waited = wait(book, 'last("test/return") > 475', timeout=3600)
    waited.outcome          # "met", "timeout" or "ended"

A condition is one of `runs.where`: SQL over the fields of a run and over numbers of its keys so far, such as
`last("loss")`, `mean("loss", last="10%")` and `steps_to(475, "test/return")`. Here `last` also takes a clock, and texts
may be in double quotes, too. The condition is parsed, never executed as Python: see `schema.expressions`.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rollbook.book import Book
from rollbook.errors import BadInput, did_you_mean
from rollbook.runs.conditions import holds
from rollbook.runs.measures import FUNCTIONS, Measure, calls_in, is_last, measured
from rollbook.schema import manifest
from rollbook.schema.expressions import literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow as pa

Outcome = Literal["met", "timeout", "ended"]

_ENDED = ("finished", "killed", "crashed", "stale", "part")
"""Statuses after which a run writes nothing more, as seen from this host."""
_CALL = re.compile(r"""(?<![\w.'"])([A-Za-z_]\w*)\s*\(\s*["'][^"']*["']\s*\)""")
"""A function of one text, where the measures are replaced already."""
_TEXT = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")


@dataclass(frozen=True, slots=True)
class Waited:
    """How waiting for a condition ended.

    Attributes:
      outcome: "met"; "timeout"; or "ended": the run ended and the condition is not true.
      status: of the run at that time.
      values: of each term such as `last("test/return")`; None if the run has no such value.
      seconds: the time waited.
      hint: a key of the condition that the run lacks, and the closest key that it has; "" if none is missing.
    """

    outcome: Outcome
    status: str
    values: Mapping[str, Any]
    seconds: float
    hint: str = ""


def wait(
    book: Book,
    until: str,
    *,
    timeout: float,
    poll_seconds: float = 0.5,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
    evaluate: Callable[[str, pa.Table], list[bool | None]] | None = None,
) -> Waited:
    """Poll a run until a condition is true, the run has ended, or the time is up.

    Text is quoted with ' or ". A comparison with a value that is missing or NaN is not true.

    Args:
      book: the run.
      until: the condition.
      timeout: seconds, at least 0; 0 checks once.
      poll_seconds: seconds between two checks, above 0.
      clock, sleep: of monotonic seconds; for tests.
      evaluate: see `conditions.holds`.
    Raises:
      BadInput: the condition is invalid, or names a field that no run has; raised by the first check.
    """
    if not timeout >= 0 or not poll_seconds > 0:
        raise BadInput(
            f"wait(timeout={timeout!r}, poll_seconds={poll_seconds!r}): the first is 0 seconds or more, "
            "the second above 0"
        )
    text, terms = calls_in(until)
    if unknown := _CALL.search(text):
        name = unknown[1].lower()
        raise BadInput(f"until={until!r:.200}: a key has no function {name!r}.", did_you_mean(name, list(FUNCTIONS)))
    text = _TEXT.sub(lambda word: literal(word[0][1:-1].replace(word[0][0] * 2, word[0][0])), text)
    began = clock()
    seen: Mapping[str, Any] | None = None
    while True:
        status = book.status  # read before the values: a run that has ended has written all of them
        found = {name: _value(book, measure) for name, measure in terms.items()}
        values = {str(measure): found[name] for name, measure in terms.items()}
        now = {**_fields_of(book), "status": status, **found}
        if now != seen and holds(text, [now], evaluate)[0]:
            return Waited("met", status, values, clock() - began)
        seen = now
        left = timeout - (clock() - began)
        if status in _ENDED or left <= 0:
            outcome: Outcome = "ended" if status in _ENDED else "timeout"
            return Waited(outcome, status, values, clock() - began, _missing(book, terms))
        sleep(min(poll_seconds, left))


def _fields_of(book: Book) -> dict[str, Any]:
    return {**manifest.listed(book.info), "summary": book.summary}


def _value(book: Book, measure: Measure) -> Any:
    """The current value of a measure; None if there is none, or none that can be compared."""
    key, how = measure
    if is_last(how):
        value = _newest(book, key)
    else:
        name = _key_of(book, key)
        if name is None:
            return None
        if how in ("min", "max", "mean"):  # from few numbers: this is asked again and again
            series = book.series(name, points=1)
            value = float(getattr(series, how)[0]) if len(series) else None
        else:
            series = book.series(name)
            value = measured(series.x, series.mean, how, name)
    return None if isinstance(value, float) and math.isnan(value) else value


def _newest(book: Book, key: str) -> Any:
    latest = book.latest()
    if key in latest:
        return latest[key][0]
    if key in book.clocks:
        return max((clocks[key] for _, clocks, _ in latest.values() if key in clocks), default=None)
    name = book.canonical().get(key)
    return None if name is None or name not in latest else latest[name][0]


def _key_of(book: Book, key: str) -> str | None:
    return key if key in book.keys() else book.canonical().get(key)  # noqa: SIM118 - of a book, not a dict


def _missing(book: Book, terms: Mapping[str, Measure]) -> str:
    known = [*book.keys(), *book.canonical(), *book.clocks]
    names = dict.fromkeys(measure.key for measure in terms.values())
    return " ".join(f"The run has no key {key!r}.{did_you_mean(key, known)}" for key in names if key not in known)
