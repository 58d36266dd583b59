"""Where the time of a run went: the stages that it timed, with and without the stages nested in them, for the whole
run and over training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rollbook.book.questions.asked import Stages
from rollbook.book.questions.positions import axis_of_run, check_range, position_in_sql
from rollbook.book.questions.source import Queries, Source
from rollbook.errors import UnknownKey, did_you_mean
from rollbook.schema.stages import own_seconds
from rollbook.values.arrow import table_of

SECONDS = "case when isfinite(try_cast(seconds as double)) then try_cast(seconds as double) else 0 end"
"""The seconds of a row of the timings, in SQL: values that are not finite count as 0."""


class Stage(NamedTuple):
    """A stage.

    Attributes:
      name: "a/b" is a part of "a". calls: how often it was timed.
      seconds: all of it; own: without the stages inside of it; share: what `own` is of the time of all stages.
      median, p99, longest: seconds of one call. first: when it was first begun, in unix seconds.
    """

    name: str
    calls: int
    seconds: float
    own: float
    share: float
    median: float
    p99: float
    longest: float
    first: float


class StagesPage(NamedTuple):
    """The stages of a run.

    Attributes:
      table: the columns of `Stage`. With stretches also `begin` and `width`, the same in each row, and `strip`, a list
        of {stretch, calls, seconds, own}, without the stretches in which the stage did not end.
      x: the axis.
    """

    table: pa.Table
    x: str


class Over(NamedTuple):
    """The time of stages over the axis.

    Attributes:
      x: the middle of each stretch in which a stage ended; width: of a stretch.
      own: name -> seconds in each of them, without the stages inside; in the order in which stages first began.
    """

    x: list[float]
    width: float
    own: dict[str, list[float]]


def over(stages: Sequence[Mapping[str, Any]]) -> Over:
    """The rows of a `StagesPage` with stretches, stretch by stretch."""
    used = sorted({part["stretch"] for stage in stages for part in stage["strip"]})
    rank = {stretch: n for n, stretch in enumerate(used)}
    own: dict[str, list[float]] = {}
    for stage in sorted(stages, key=lambda stage: (stage["first"], stage["name"])):
        cells = own[stage["name"]] = [0.0] * len(used)
        for part in stage["strip"]:
            cells[rank[part["stretch"]]] = part["own"]
    if not used:
        return Over([], 0.0, {})
    begin, width = stages[0]["begin"], stages[0]["width"]
    return Over([begin + (n + 0.5) * width for n in used], width, own)


_STRIP = pa.list_(
    pa.struct([("stretch", pa.int64()), ("calls", pa.int64()), ("seconds", pa.float64()), ("own", pa.float64())])
)
_NUMBERS = ("seconds", "own", "share", "median", "p99", "longest", "first")
_SCHEMA = pa.schema([("name", pa.string()), ("calls", pa.int64()), *((name, pa.float64()) for name in _NUMBERS)])
_OF_STRETCHES = [("begin", pa.float64()), ("width", pa.float64()), ("strip", _STRIP)]


def chosen_stages(question: Stages, source: Source) -> StagesPage:
    """The stages of a run.

    Raises:
      UnknownKey: the run has no such axis.
      BadInput: start or stop is not finite, or stop is before start.
    """
    check_range(question.start, question.stop)
    own, clocks, began = axis_of_run(source)
    if question.x is not None and question.x not in ("time", "relative", *clocks):
        raise UnknownKey(
            f"x={question.x!r:.80}: the run has no such clock.", did_you_mean(question.x, ["time", "relative", *clocks])
        )
    x = own if question.x is None else question.x

    def work(db: Queries) -> list[dict[str, Any]]:
        if "name" not in db.columns["timings"]:
            return []
        position = position_in_sql(x, began, db.columns["timings"])
        cells = f"cast(name as varchar) as stage, {SECONDS} as seconds, {position} as x, epoch_us(time) / 1e6 as stop"
        db.view("spent", f"select * from (select {cells} from timings) where stage is not null and {_within(question)}")
        stages = _stages_in(db)
        rows = [stage._asdict() for stage in stages]
        if question.stretches:
            parts = _stretches(db, [stage.name for stage in stages], question.stretches)
            rows = [row | own for row, own in zip(rows, parts, strict=True)]
        return rows

    rows = source.asked(["timings"], work, question.attempts) if source.rows("timings") else []
    schema = pa.schema([*_SCHEMA, *_OF_STRETCHES]) if question.stretches else _SCHEMA
    return StagesPage(table_of(rows, schema), x)


def _stages_in(db: Queries) -> list[Stage]:
    """The stages of the view `spent`, the one that took longest itself first."""
    numbers = (
        "count(*) as calls, sum(seconds) as seconds, median(seconds) as median, quantile_cont(seconds, 0.99) as p99, "
        "max(seconds) as longest, min(stop - seconds) as first"
    )
    rows = db.table(f"select stage, {numbers} from spent group by stage").to_pylist()
    names = [str(row["stage"]) for row in rows]
    own = own_seconds(names, np.array([row["seconds"] for row in rows], dtype=np.float64)).tolist()
    whole = sum(own)
    stages = [
        Stage(
            name,
            row["calls"],
            row["seconds"],
            mine,
            mine / whole if whole else 0.0,
            row["median"],
            row["p99"],
            row["longest"],
            row["first"],
        )
        for name, row, mine in zip(names, rows, own, strict=True)
    ]
    return sorted(stages, key=lambda stage: (-stage.own, stage.name))


def _stretches(db: Queries, names: list[str], many: int) -> list[dict[str, Any]]:
    """The seconds of each stage in each of `many` equal parts of the axis; a call counts where it ended."""
    placed = "from spent where isfinite(x)"
    (ends,) = db.table(f"select min(x) as low, max(x) as high {placed}").to_pylist()
    if ends["low"] is None:
        return [{"begin": None, "width": None, "strip": []} for _ in names]
    low, high = float(ends["low"]), float(ends["high"])
    width = (high - low) / many or 1.0
    stretch = f"least(cast(floor((x - {low!r}) / {width!r}) as bigint), {many - 1})"
    spent = db.table(
        f"select stage, {stretch} as n, count(*) as calls, sum(seconds) as seconds {placed} group by all"
    ).to_pylist()
    row = {name: n for n, name in enumerate(names)}
    sums, calls = np.zeros((len(names), many)), np.zeros((len(names), many), np.int64)
    for part in spent:
        at = row[part["stage"]], part["n"]
        sums[at], calls[at] = part["seconds"], part["calls"]
    own = own_seconds(names, sums)
    return [
        {
            "begin": low,
            "width": width,
            "strip": [
                {
                    "stretch": n,
                    "calls": int(calls[row[name], n]),
                    "seconds": float(sums[row[name], n]),
                    "own": float(own[row[name], n]),
                }
                for n in np.flatnonzero(calls[row[name]]).tolist()
            ],
        }
        for name in names
    ]


def _within(question: Stages) -> str:
    """The condition on the position of a timing, `x`."""
    bounds = ((">=", question.start), ("<", question.stop))
    there = [f"x {sign} cast('{float(at)!r}' as double)" for sign, at in bounds if at is not None]
    return " and ".join(there) or "true"
