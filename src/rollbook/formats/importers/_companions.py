"""Several files of one training as one run: values that several of them have are taken once."""

from __future__ import annotations

import array
import dataclasses
from collections import Counter

from rollbook.protocols import ForeignRun, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


def joined(run: ForeignRun, prefix: str, others: Sequence[tuple[ForeignRun, str, str]]) -> None:
    """Make one run of several: the first, with the values that only the others have.

    A key that both have, with the same numbers, is taken from the first. If the numbers differ, the later one keeps its
    key with the name of its format behind it, so that no curve mixes two files.

    Args:
      prefix: what the first one's keys begin with.
      others: (run, name of its format, what its keys begin with).
    """
    own, described = run.rows, [run.details, *(other.details for other, _name, _prefix in others)]
    parts: dict[str, Callable[[], Iterable[Row]]] = {}
    if run.tables:
        earlier: list[Callable[[], Iterable[Row]]] = [lambda: (row for row in own() if row.table == "metrics")]
    elif prefix:
        parts = {name: _under(prefix, rows) for name, rows in (run.parts or {"": own}).items()}
        earlier = list(parts.values())
    else:
        parts = dict(run.parts or {"": run.columns or own})  # type: ignore[dict-item]
        earlier = list(run.parts.values()) or [own]
    for n, (other, format_name, before) in enumerate(others):
        rows = _under(before, other.rows) if before else other.rows
        parts[f"{n}:{format_name}"] = _beyond(list(earlier), rows, format_name, run, other)
        earlier.append(rows)
        run.clocks = tuple(dict.fromkeys((*run.clocks, *other.clocks)))
        run.tables = tuple(dict.fromkeys((*run.tables, *(other.tables if run.tables or other.tables else ()))))

    def details() -> None:
        for read_own in described:
            if read_own is not None:
                read_own()
        for other, _format_name, _before in others:
            run.config = {**other.config, **run.config}
            run.seed = other.seed if run.seed is None else run.seed
            run.algo, run.env = run.algo or other.algo, run.env or other.env
            run.group, run.sources = run.group or other.group, {**other.sources, **run.sources}

    run.files = [*run.files, *(file for other, _name, _prefix in others for file in other.files)]
    run.details, run.columns = details, None
    if run.tables:
        held = (own, *(rows for name, rows in parts.items()))
        run.rows, run.parts = (lambda: (row for rows in held for row in rows())), {}
        run.tables = tuple(dict.fromkeys((*run.tables, "metrics", "episodes")))
        return
    run.parts = parts
    run.rows = lambda: _one_by_one(rows() for rows in parts.values())


def _one_by_one(each: Iterable[Iterable[Row]]) -> Iterator[Row]:
    for rows in each:
        for row in rows:
            if isinstance(row, Row):
                yield row
            else:
                yield from row.rows()


def _under(prefix: str, rows: Callable[[], Iterable[Row]]) -> Callable[[], Iterator[Row]]:
    """The rows with keys that begin with a prefix; those that do already stay as they are."""

    def prefixed() -> Iterator[Row]:
        for row in rows():
            if row.table == "metrics":
                values = {key if key.startswith(prefix) else f"{prefix}{key}": v for key, v in row.values.items()}
                yield dataclasses.replace(row, values=values)
            else:
                yield row

    return prefixed


def _beyond(
    earlier: Sequence[Callable[[], Iterable[Row]]],
    rows: Callable[[], Iterable[Row]],
    format_name: str,
    run: ForeignRun,
    other: ForeignRun,
) -> Callable[[], Iterator[Row]]:
    """The rows of one file without what earlier ones say, too."""

    def beyond() -> Iterator[Row]:
        mine, _ = _points(rows(), None)
        theirs, clocks = _points((row for source in earlier for row in source()), set(mine))
        same = {key for key in mine if key in theirs and not Counter(mine[key]) - Counter(theirs[key])}
        clash = (mine.keys() & theirs.keys()) - same
        renamed = _same_clock(rows(), {key for key in same if mine[key] == theirs[key]}, clocks)
        for row in rows():
            if row.table != "metrics":
                yield row
                continue
            values = {
                f"{key} ({format_name})" if key in clash else key: value
                for key, value in row.values.items()
                if key not in same
            }
            if values:
                at = {renamed.get(clock, clock): reading for clock, reading in row.clocks.items()}
                yield dataclasses.replace(row, values=values, clocks=at)
        for what, n in other.left_out.items():
            (run.lose if what in other.lost else run.leave_out)(what, n)

    return beyond


def _points(
    rows: Iterable[Row], wanted: set[str] | None
) -> tuple[dict[str, list[float]], dict[str, list[dict[str, int]]]]:
    """The numbers of each key, in the precision of event files, and the clocks of their rows."""
    numbers: dict[str, list[float]] = {}
    clocks: dict[str, list[dict[str, int]]] = {}
    for row in rows:
        if row.table != "metrics":
            continue
        for key, value in row.values.items():
            if isinstance(value, (int, float)) and (wanted is None or key in wanted):
                numbers.setdefault(key, []).append(_single(float(value)))
                if wanted is not None:
                    clocks.setdefault(key, []).append(dict(row.clocks))
    return numbers, clocks


def _single(number: float) -> float:
    """A number in single precision; all NaN as one value that equals itself."""
    if number != number:
        return 1.2345e38
    try:
        return array.array("f", [number])[0]
    except OverflowError:
        return number


def _same_clock(rows: Iterable[Row], keys: set[str], clocks: dict[str, list[dict[str, int]]]) -> dict[str, str]:
    """Which clock of the earlier files the step of this one counts, by the keys that both have; {} if none."""
    steps: dict[str, list[int]] = {}
    for row in rows:
        for key in keys & row.values.keys():
            if "step" in row.clocks:
                steps.setdefault(key, []).append(row.clocks["step"])
    for key, read in steps.items():
        if len(set(read)) < 2:
            continue
        for clock in clocks[key][0]:
            if clock != "step" and [at.get(clock) for at in clocks[key]] == read:
                return {"step": clock}
    return {}
