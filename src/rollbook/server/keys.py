"""What the chosen runs hold: their keys, possible x-axes, and the tables that have rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from rollbook.book import Book
from rollbook.errors import RollbookError
from rollbook.ground.tables import TABLES
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import plain
from rollbook.server.columns import axis_of
from rollbook.server.endpoint import Endpoint
from rollbook.server.schemas.runs import Axis, Key, KeysAnswer, KeysAsk
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS", "contents", "telling_first"]


class Contents(NamedTuple):
    """What one run holds."""

    keys: list[str]
    canonical: dict[str, str]
    clocks: list[str]
    tables: dict[str, int]


def contents(hall: Hall, row: RunRow) -> Contents:
    """What a run holds, kept until it changes."""
    known: Contents = hall.remembered("contents", row, _contents, lambda known: 100 * len(known.keys) + 1_000)
    return known


def _contents(book: Book) -> Contents:
    tables = book.files.read(
        list(_TABLES), lambda pieces: {name: sum(p.rows for p in pieces[name]) for name in _TABLES}
    )
    clocks = {clock for _, known, _ in book.latest().values() for clock in known}
    canonical = {key: name for name, key in book.canonical().items()}
    return Contents(book.keys(), canonical, [c for c in book.clocks if c in clocks], tables)


_TABLES = tuple(TABLES)
_TESTS, _SCORES = re.compile(r"(test|eval|evaluation|evaluate)/"), re.compile(r"return|reward|score|success")
_SPREAD = re.compile(r"(std|sd|min|max|length|seconds)$")


def telling_first(have: Mapping[str, int]) -> list[str]:
    """The keys to compare first: test scores, other scores, then those that most runs have.

    Args:
      have: key -> how many runs have it. Keys about the machine and rollbook are left out.
    """

    def rank(key: str) -> tuple[bool, bool, bool, int, str]:
        scored = _SCORES.search(key) is not None and _SPREAD.search(key) is None
        return not (scored and _TESTS.match(key)), not scored, not key.endswith("return"), -have[key], key

    return sorted((key for key in have if not key.startswith(("rollbook/", "host/"))), key=rank)


def keys(hall: Hall, ask: KeysAsk) -> KeysAnswer:
    """The keys, axes and tables of some runs together."""
    rows = hall.rows(ask.runs)
    have: Counter[str] = Counter()
    clocks: Counter[str] = Counter()
    tables: Counter[str] = Counter()
    usual: Counter[str] = Counter()
    names: dict[str, str] = {}
    shared: Counter[str] = Counter()
    for row in rows:
        try:
            of_run = contents(hall, row)
        except (RollbookError, OSError):  # its page shows what is wrong with it
            continue
        have.update(of_run.keys)
        clocks.update(of_run.clocks)
        tables.update(table for table, n in of_run.tables.items() if n)
        names.update(of_run.canonical)
        shared.update({*of_run.canonical.values()} - {*of_run.keys})
        axis = axis_of(row, None)
        usual[axis if axis in of_run.clocks else next(iter(of_run.clocks), "time")] += 1
    for name, n in shared.items():  # keys with different names are also listed under their common name
        if n + have[name] > max(have[key] for key, own in names.items() if own == name):
            have[name] += n
    axes = [Axis(x=plain(c), label=plain(c), kind="clock", runs=n) for c, n in clocks.most_common()]
    axes += [
        Axis(x="relative", label="time since start", kind="relative", runs=len(rows)),
        Axis(x="time", label="wall time", kind="time", runs=len(rows)),
    ]
    return KeysAnswer(
        keys=[
            Key(
                key=plain(key),
                scope=plain(key.partition("/")[0] if "/" in key else ""),
                name=plain(key.partition("/")[2] or key),
                runs=n,
                canonical=names.get(key),
            )
            for key, n in sorted(have.items())
        ],
        axes=axes,
        default_x=usual.most_common(1)[0][0] if usual else "time",
        tables=dict(tables),
    )


ENDPOINTS = [Endpoint("POST", "/api/keys", KeysAsk, KeysAnswer, keys, "The keys, axes and tables of some runs")]
