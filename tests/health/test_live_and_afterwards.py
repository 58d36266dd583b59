"""Every rule says of a finished run what it said while the run trained, however often that was interrupted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from rollbook.protocols import Row
from rollbook.runs.checking import AFTERWARDS, check
from trouble import TROUBLE
from waiting import PATIENCE

NO_TIME = "throughput"
"""It reports what lasts for minutes: test_rules.py."""

RULES = [name for name in AFTERWARDS if name not in ("below_earlier", "unlike_earlier")]
"""These two compare with other runs: test_earlier.py."""


def log(run: Any, rows: Sequence[Row]) -> None:
    for row in rows:
        if row.table == "metrics":
            run.log(row.values, **row.clocks)
        else:
            run.record(row.table, dict(row.values), **row.clocks)


def beyond(step: int) -> Row:
    """A row that is wrong in many ways, and is abandoned."""
    wrong = {"loss": math.nan, "losses/approx_kl": 99.0, "charts/learning_rate": 0.0, "charts/episodic_return": -1e9}
    return Row(0.0, {"env_step": step, "gradient_step": step}, wrong)


def attempts(root: Path, name: str, rows: Sequence[Row], how: Sequence[str]) -> Any:
    """A run that logs these rows in one attempt more than there are ways to go on, an equal share in each.

    "on": the next attempt resumes where the rows end; "again": it resumes and logs the last rows twice; "back": it has
    logged rows that the next one goes back over; "beside": a second writer logs the same rows, too.
    """
    options: dict[str, Any] = {"dir": root, "sinks": [], "keeper": "inline", "rules": RULES, "resume": "allow"}
    bounds = [len(rows) * n // (len(how) + 1) for n in range(len(how) + 2)]
    for number, way in enumerate([*how, ""]):
        first, end = bounds[number], bounds[number + 1]
        with rollbook.init("lived", name, **options) as run:
            before = how[number - 1] if number else ""
            last = rows[first - 1].clocks
            if before == "back":
                run.rewind(**dict([next(iter(last.items()))]))
            log(run, rows[max(0, first - 5) if before == "again" else first : end])
            if way == "beside":
                other = rollbook.attach(run.folder)
                log(other, rows[first:end])
                other.finish()
            if way == "back":
                log(run, [beyond(max(rows[end - 1].clocks.values()) + n) for n in range(1, 40)])
    return run.book


WAYS = [("on", "again"), ("back", "on"), ("again", "back", "again"), ("beside", "back"), ()]


def told(alerts: Any) -> set[tuple[object, ...]]:
    return {(a["rule"], a["level"], a["key"], a["message"]) for a in alerts}


FEW = {"kl": (0, 3, 4), "rollouts": (1,), "no_episode": (0, 2)}
"""`make test`: rule -> numbers of the ways. Rules of single values, of another table, of what does not come."""


@pytest.mark.parametrize(
    ("name", "how"),
    some_of(
        itertools.product(sorted(TROUBLE.keys() - {NO_TIME}), WAYS),
        lambda case: WAYS.index(case[1]) in FEW.get(case[0], ()),
    ),
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_is_reported_while_a_run_trains_is_reported_of_it_when_it_is_over(
    tmp_path: Path, name: str, how: tuple[str, ...], tuned: Any
) -> None:
    tuned(recall_end_seconds=PATIENCE)  # an attempt of milliseconds waits for its history
    book = attempts(tmp_path, name, TROUBLE[name], how)
    live = told(book.alerts().to_pylist())
    afterwards = {(a.rule, a.level, a.key, a.message) for a in check(book, RULES)}
    assert name in {alert[0] for alert in live}
    assert afterwards == live
