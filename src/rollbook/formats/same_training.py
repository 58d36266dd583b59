"""Whether a run of another tool is one that rollbook recorded, too: a program may log to both.

Both then hold the same numbers of the same minutes. Such a training is one run, not two, so only rollbook's is shown.
"""

from __future__ import annotations

from rollbook.book import Book
from rollbook.errors import RollbookError
from rollbook.schema import manifest
from rollbook.schema.manifest import RunJson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SLACK_S = 60.0
"""A program may make its two loggers this far apart."""

_KEYS = 3
_ENOUGH, _MOST = 3, 50
"""How many first values of a key are compared. Fewer than three different ones may be equal by chance."""


def run_of_same_training(folder: str, own: Mapping[str, RunJson]) -> str | None:
    """The run of rollbook that recorded the same training; None if none of them did.

    Args:
      folder: the run of the other tool, as rollbook laid it out.
      own: folders of runs of rollbook, each with its run.json.
    """
    about = manifest.look(folder)
    values: dict[str, list[float]] = {}
    for path, other in own.items():
        if not _at_one_time(about, other):
            continue
        try:
            values = values or _first_values(Book(folder))
            theirs = _first_values(Book(path), values)
        except (RollbookError, OSError):
            continue
        if _same(values, theirs):
            return path
    return None


def _at_one_time(foreign: RunJson, own: RunJson) -> bool:
    """Whether both ran at the same time, with the same seed if both name one."""
    (start, stop), (own_start, own_stop) = _span(foreign), _span(own)
    seeds = {about.seed for about in (foreign, own)} - {None}
    return len(seeds) < 2 and own_start - _SLACK_S <= start and stop <= own_stop + _SLACK_S


def _span(about: RunJson) -> tuple[float, float]:
    return (
        float("-inf") if about.created is None else about.created,
        float("inf") if about.ended is None else about.ended,
    )


def _first_values(book: Book, wanted: Iterable[str] | None = None) -> dict[str, list[float]]:
    """The first values of some keys, in the precision of event files.

    Args:
      wanted: only these keys; None takes those that have several different values.
    """
    import numpy as np

    found: dict[str, list[float]] = {}
    there = book.keys()
    for key in there if wanted is None else [key for key in wanted if key in there]:
        numbers = np.asarray(book.series(key, x="time").mean, dtype=np.float32)
        numbers = numbers[np.isfinite(numbers)][:_MOST]
        if wanted is not None or len(np.unique(numbers)) >= _ENOUGH:
            found[key] = numbers.tolist()
    return found


def _same(values: dict[str, list[float]], others: dict[str, list[float]]) -> bool:
    """Whether the keys that both have begin with the same values, while both have some."""
    shared = [key for key in values if len(others.get(key, ())) >= _ENOUGH]
    return bool(shared) and all(
        mine == theirs
        for key in shared[:_KEYS]
        for n in [min(len(values[key]), len(others[key]))]
        for mine, theirs in [(values[key][:n], others[key][:n])]
    )
