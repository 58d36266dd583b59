"""The alerts of a health rule on healthy trainings, and what it costs on them.

The trainings come with rollbook: one of each kind of the public set (docs/health.md), PPO, A2C, DQN, SAC and GRPO on
small tasks, each of which reached the return of a good policy. `python -m benchmarks.health --ship FOLDER` writes the
file; it is under rollbook's licence.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

from rollbook.protocols import Alert, Row, Rule, RunInfo
from rollbook.schema.columns import Columns, RowsPiece
from rollbook.testing.rows import START

PATH = Path(__file__).with_name("healthy.jsonl.gz")
"""A line of JSON for each training: name, config, keys (sets of keys), rows (number of the set of keys, env_step,
gradient_step, values)."""

_MANY, _ALONE = 200, 40
"""Rows that a look is at, where they are many; rows of a training that are looked at one by one."""

Training: TypeAlias = "tuple[RunInfo, Sequence[Row]]"


@dataclass(frozen=True, slots=True)
class RuleMeasure:
    """What a rule reported about the healthy trainings that come with rollbook, and what it cost.

    Attributes:
      trainings: how many.
      rows: how many rows the rule was shown: those of `metrics`, if it reads that table.
      pages: its alerts at level "warn" or "fail", each a false alarm: "training: message".
      notes: those at level "note".
      lines_a_row: lines of Python that it ran for a row when many came together. A loop over the values of a key that
        is in each row runs two or more. Not a time, so a busy machine changes nothing.
      lines_a_look: those that it ran for a look at one row.
    """

    trainings: int
    rows: int
    pages: tuple[str, ...]
    notes: tuple[str, ...]
    lines_a_row: float
    lines_a_look: float

    def __str__(self) -> str:
        return (
            f"{len(self.pages)} false alarms and {len(self.notes)} notes in {self.trainings} healthy trainings of "
            f"{self.rows:,} rows; {self.lines_a_row:.2f} lines of Python a row, {self.lines_a_look:.0f} a look"
        )


def measure_rule(make_rule: Callable[[], Rule]) -> RuleMeasure:
    """What a rule says of healthy trainings, and what it costs on them.

    Args:
      make_rule: makes a new rule.
    """
    pages: list[str] = []
    notes: list[str] = []
    lines, looks, rows = {1: 0, _MANY: 0}, {1: 0, _MANY: 0}, 0
    for run, all_rows in _trainings():
        own = all_rows if "metrics" in make_rule().tables else ()
        rows += len(own)
        for size, some in ((_MANY, own), (1, own[:_ALONE])):
            rule = make_rule()
            rule.open(run)
            alerts: list[Alert] = []
            for first in range(0, len(some), size):
                columns = _read(some[first : first + size])
                lines[size] += _lines(lambda: alerts.extend(rule.look(columns, columns.last()["time"])))  # noqa: B023
                looks[size] += 1
            for alert in alerts if size == _MANY else ():
                (notes if alert.level == "note" else pages).append(f"{run.name}: {alert.message}")
    a_row, a_look = lines[_MANY] / max(1, rows), lines[1] / max(1, looks[1])
    return RuleMeasure(len(_trainings()), rows, tuple(pages), tuple(notes), a_row, a_look)


@cache
def _trainings() -> Sequence[Training]:
    with gzip.open(PATH, "rt", encoding="utf-8") as lines:
        return tuple(_training(json.loads(line)) for line in lines)


def _training(it: dict[str, Any]) -> Training:
    name, config = it["name"], it["config"]
    rows = []
    for n, (of, env_step, gradient_step, *values) in enumerate(it["rows"]):
        clocks = {"env_step": env_step, "gradient_step": gradient_step}
        rows.append(Row(START + n, clocks, dict(zip(it["keys"][of], values, strict=True)), seq=n + 1))
    total = {"env_step": config["steps"]}
    run = RunInfo(Path("healthy"), "health", name, name, clocks=tuple(rows[0].clocks), config=config, total=total)
    return run, rows


def _read(rows: Sequence[Row]) -> Columns:
    """Rows as columns that were read before; what reading them costs is shared by all rules."""
    columns = Columns([RowsPiece("metrics", rows)])
    for key in columns.keys("metrics"):
        columns.column(key)
    return columns


def _lines(work: Callable[[], object]) -> int:
    """How many lines of Python run during `work`, without those of `schema.columns`."""
    n = 0

    def line(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal n
        n += event == "line"
        return line

    def call(frame: FrameType, _event: str, _argument: object) -> Any:
        return None if frame.f_globals.get("__name__") == Columns.__module__ else line

    before = sys.gettrace()
    sys.settrace(call)
    try:
        work()
    finally:
        sys.settrace(before)
    return n
