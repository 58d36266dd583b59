"""Where the time of a run went: the stages that it timed, each with and without the stages inside of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rollbook.book.questions.asked import Stages
from rollbook.book.questions.positions import position_in_sql, usual_axis_of
from rollbook.book.questions.source import Queries, Source
from rollbook.book.table_protocols import ReadRun
from rollbook.errors import UnknownKey, did_you_mean
from rollbook.schema.stages import own_seconds

SECONDS = "case when isfinite(try_cast(seconds as double)) then try_cast(seconds as double) else 0 end"
"""The seconds of a row of the timings, in SQL: what is no number took none."""


class Stage(NamedTuple):
    """A stage.

    Attributes:
      name: "a/b" is a part of "a". calls: how often it was timed.
      seconds: all of it; own: without the stages inside of it; share: what `own` is of the time of all stages.
      median, p99, longest: seconds of one call.
    """

    name: str
    calls: int
    seconds: float
    own: float
    share: float
    median: float
    p99: float
    longest: float


_SCHEMA = pa.schema([
    ("name", pa.string()), ("calls", pa.int64()),
    *((name, pa.float64()) for name in ("seconds", "own", "share", "median", "p99", "longest")),
])  # fmt: skip


def stages_in(db: Queries, timed: str) -> list[Stage]:
    """The stages of some timings, the one that took longest itself first.

    Args:
      timed: a relation with the columns stage and seconds.
    """
    numbers = (
        "count(*) as calls, sum(seconds) as seconds, median(seconds) as median, "
        "quantile_cont(seconds, 0.99) as p99, max(seconds) as longest"
    )
    rows = db.table(f"select stage, {numbers} from {timed} where stage is not null group by stage").to_pylist()
    names = [str(row["stage"]) for row in rows]
    own = own_seconds(names, np.array([row["seconds"] for row in rows], dtype=np.float64)).tolist()
    whole = sum(own)
    stages = [
        Stage(name, row["calls"], row["seconds"], mine, mine / whole if whole else 0.0, row["median"], row["p99"],
              row["longest"])
        for name, row, mine in zip(names, rows, own, strict=True)
    ]  # fmt: skip
    return sorted(stages, key=lambda stage: (-stage.own, stage.name))


def stages_of(question: Stages, source: Source) -> pa.Table:
    """The stages of a run as a table with the columns of `Stage`."""
    with source.book() as book:
        about, clocks = book.info, list(book.clocks)
        if question.x is not None:
            check_axis(question.x, book)
    x = question.x
    if x is None and (question.start is not None or question.stop is not None):
        read = {clock for known in source.newest().values() for clock in known}
        x = usual_axis_of(about.x, about.total, [clock for clock in clocks if clock in read])

    def work(db: Queries) -> list[Stage]:
        if "name" not in db.columns["timings"]:
            return []
        position = position_in_sql(x or "time", float(about.created or 0.0), db.columns["timings"])
        cells = f"cast(name as varchar) as stage, {SECONDS} as seconds, {position} as x"
        return stages_in(db, f"(select * from (select {cells} from timings) where {within(question)})")

    stages = source.asked(["timings"], work, question.attempts) if source.rows("timings") else []
    return pa.Table.from_pylist([stage._asdict() for stage in stages], schema=_SCHEMA)


def check_axis(x: str, book: ReadRun) -> None:
    """Raises: UnknownKey: the run has no such axis."""
    known, keys = ["time", "relative", *book.clocks], book.keys()
    if x not in known and x not in keys:
        raise UnknownKey(f"x={x!r:.80}: the run has no such clock.", did_you_mean(x, known))


def within(question: Stages) -> str:
    """The condition on the column `x` of timings."""
    bounds = ((">=", question.start), ("<", question.stop))
    there = [f"x {sign} cast('{float(at)!r}' as double)" for sign, at in bounds if at is not None]
    return " and ".join(there) or "true"
