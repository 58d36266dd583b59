"""Scores the health rules on the set: which rule speaks of which fault."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.health.faults import FAULTS

__all__ = ["alerts_of", "score", "wilson"]

LEFT_OUT = frozenset({"silent"})
ROWS_AT_ONCE = 64


def alerts_of(folder: Path) -> Iterator[Any]:
    """What the default rules say of a recorded run."""
    from rollbook import health
    from rollbook.ground.columns import columns_of
    from rollbook.journal.reader import JournalReader
    from rollbook.keeper.forward import run_info
    from rollbook.storage.sealed_rows import SealedRows

    rules = [health.make(name) for name in health.DEFAULT if name not in LEFT_OUT]
    for rule in rules:
        rule.open(run_info(str(folder)))
    tables = frozenset().union(*(rule.tables for rule in rules))
    with JournalReader(str(folder), sealed=SealedRows(folder), tables=tables) as reader:
        rows = [row for row in reader.rows_since({}) if not any(key.startswith("host/") for key in row.values)]
    rows.sort(key=lambda row: row.time)
    for first in range(0, len(rows), ROWS_AT_ONCE):
        columns = columns_of(rows[first : first + ROWS_AT_ONCE])
        for rule in rules:
            yield from rule.look(columns.of(rule.tables), rows[-1].time)


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share, by Wilson."""
    z = 1.959964
    middle, half = (hits + z * z / 2) / (n + z * z), z * math.sqrt(hits * (n - hits) / n + z * z / 4) / (n + z * z)
    return max(0.0, middle - half), min(1.0, middle + half)


def score(folder: Path) -> str:
    """The matrix as a table in Markdown, and the words beneath it."""
    import rollbook

    said: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    runs: dict[str, int] = defaultdict(int)
    named: dict[str, int] = defaultdict(int)
    false: list[str] = []
    pages = 0
    for path in sorted(path.parent for path in folder.rglob("run.json")):
        config = rollbook.Book(path).config
        fault = config["fault"]
        runs[fault] += 1
        alerts = list(alerts_of(path))
        spoken = {alert.rule for alert in alerts if alert.level != "note"}
        named[fault] += bool(spoken)
        for rule in {alert.rule for alert in alerts}:
            said[fault][rule] += 1
        if fault == "healthy" and spoken:
            pages += len({(alert.rule, alert.level, alert.key) for alert in alerts if alert.level != "note"})
            false += [f"{path.name}: {alert.message}" for alert in alerts if alert.level != "note"]
    rules = sorted({rule for row in said.values() for rule in row})
    lines = ["| fault | runs | spoken of | 95 % | " + " | ".join(f"`{rule}`" for rule in rules) + " |"]
    lines.append("|---|---|---|---|" + "---|" * len(rules))
    for fault in (fault for fault in FAULTS if runs[fault]):
        low, high = wilson(named[fault], runs[fault])
        cells = [str(said[fault][rule] or "") for rule in rules]
        lines.append(
            f"| {FAULTS[fault].words} | {runs[fault]} | {named[fault]} | {low:.0%} to {high:.0%} | "
            + " | ".join(cells)
            + " |"
        )
    healthy = runs["healthy"]
    faulty, found = sum(runs.values()) - healthy, sum(named.values()) - named["healthy"]
    if healthy:
        low, high = wilson(named["healthy"], healthy)
        lines += [
            "",
            f"False alerts: {pages} in {healthy} healthy runs ({pages / healthy:.2f} a run; runs with one: "
            f"{low:.0%} to {high:.0%}).",
        ]
    if faulty:
        low, high = wilson(found, faulty)
        lines += [f"Faulty runs spoken of: {found} of {faulty} ({low:.0%} to {high:.0%})."]
    return "\n".join([*lines, *(f"false: {words}" for words in false)])
