"""Possible columns of the table of runs: fields of the configurations and summaries, keys of metrics."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from rollbook.ground.aliases import canonical
from rollbook.ground.source import is_view
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import finite, plain
from rollbook.server.columns import config_paths
from rollbook.server.endpoint import Endpoint
from rollbook.server.schemas.runs import ColumnsAnswer, ColumnsAsk, ConfigColumn, MetricColumn
from rollbook.server.shared_state import Hall

__all__ = ["ENDPOINTS", "columns"]

_PATIENCE = 0.15
"""Seconds that the answer waits for runs whose keys were not read yet."""
_MOST_OF_A_STORE = 200
"""The newest runs of a store whose keys are read in advance: each one costs requests."""


def columns(hall: Hall, ask: ColumnsAsk) -> ColumnsAnswer:
    """The possible columns: the fields of the configurations and summaries, and the keys of metrics."""
    shot = hall.catalogue.snapshot()
    rows = hall.rows(ask.runs) if ask.runs is not None else list(shot.rows.values())
    until = time.perf_counter() + _PATIENCE
    alike: Counter[tuple[str, ...]] = Counter()  # most runs log the same keys: each set of keys is handled once
    for row in rows:
        facts = hall.facts.known(row)
        if facts is None and time.perf_counter() < until:
            try:
                facts = hall.facts.now(row)
            except Exception:  # a damaged run has no columns to offer
                continue
        if facts is not None:
            alike[tuple(facts.latest)] += 1
    have: Counter[str] = Counter()
    shared: Counter[str | None] = Counter()
    for logged, n in alike.items():
        have.update(dict.fromkeys(logged, n))
        shared.update(dict.fromkeys({canonical(key) for key in logged} - {None, *logged}, n))
    for name, n in shared.items():  # keys with different names in different frameworks are listed under the common name
        if name is not None and have[name]:
            have[name] += n
    unknown = [row for row in rows if hall.facts.known(row) is None]
    unknown.sort(key=lambda row: finite(row.about.get("created")) or 0.0, reverse=True)
    unknown = [row for n, row in enumerate(unknown) if n < _MOST_OF_A_STORE or not is_view(row.folder)]
    return ColumnsAnswer(
        pending=hall.facts.fetch(unknown, hurry=False) if unknown else 0,
        config=_config_columns_of(hall, rows, "config", None if ask.runs else shot.version),
        summary=_config_columns_of(hall, rows, "summary", None if ask.runs else shot.version),
        metrics=[MetricColumn(key=plain(key), runs=n) for key, n in sorted(have.items())],
    )


def _config_columns_of(hall: Hall, rows: Sequence[RunRow], part: str, version: int | None) -> list[ConfigColumn]:
    """The fields of all runs, kept until a run changes (`version`): the page requests them again while numbers are
    read."""
    kept: list[ConfigColumn] | None = None if version is None else hall.shelf.get(("columns", part), version)
    if kept is None:
        kept = _config_columns(rows, part)
        if version is not None:
            hall.shelf.put(("columns", part), version, kept, 1_000 * len(kept) + 100)
    return kept


def _config_columns(rows: Sequence[RunRow], part: str) -> list[ConfigColumn]:
    columns_of_config = []
    for path, values in sorted(config_paths(rows, part).items()):
        runs = sum(count for _, count in values.values())
        examples = [plain(value, 60) for value, _ in sorted(values.values(), key=lambda pair: -pair[1])[:5]]
        columns_of_config.append(
            ConfigColumn(
                column=plain(f"{part}.{path}"),
                runs=runs,
                distinct=len(values),
                varies=len(values) > 1 or runs < len(rows),
                examples=examples,
            )
        )
    return columns_of_config


ENDPOINTS = [
    Endpoint("POST", "/api/columns", ColumnsAsk, ColumnsAnswer, columns, "What can stand in the table of runs")
]
