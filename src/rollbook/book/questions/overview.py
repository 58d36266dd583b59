"""What is in a run: its identity and how it ended, where its time went, the last value of every key, what is wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from rollbook.book.retention import Retention
from rollbook.book.table_protocols import ReadRun
from rollbook.schema.addresses import backlog
from rollbook.schema.checkpoint_rows import CheckpointHistory, score_of
from rollbook.schema.endings import how_to_resume, why_ended
from rollbook.schema.manifest import worked
from rollbook.schema.problems import Problem
from rollbook.schema.run_files import RunFile
from rollbook.schema.source import is_view
from rollbook.system.files import read_json
from rollbook.values.arrow import plain_rows

OURS = ("host/", "rollbook/")
"""Scopes of keys that are not about the training."""
STATES = {"closed": "closed", "writing": "still writing", "died": "died", "unknown": "cannot be judged from here"}
"""Final state of a writer -> its words."""


@dataclass(frozen=True, slots=True)
class Overview:
    """What is in a run.

    Attributes:
      failure: what ended the run early; why: the same in a line, or what is known if the run recorded no reason.
      attempts: how many. config, summary: of the newest. worked: seconds in which attempts were at work.
      resume: how to continue a run that ended early: a command, and Python if its program calls `init`.
      writers: how many processes wrote ("all"), on how many hosts, and how many by their final state.
      seconds: in each stage, the longest first; nested stages as a/b.
      checkpoints: how many are kept, the best and the last; {} if none are.
      tables: rows of each table that has some.
      keys: key -> its last value and the clocks there; keys of the host and of rollbook come last.
      alerts: what was found wrong, oldest first.
      drops, remarks: what the writers counted as lost, and as changed without loss. reports: what the first
        warning of each said. retention: what was trimmed.
      silent_sinks: sinks that could not be fed, and why. remote: how much of the run is not there yet.
      problems: what cannot be read, and what cannot be right.
    """

    path: str
    project: str
    name: str
    id: str
    status: str
    failure: dict[str, str] | None
    why: str | None
    seed: int | None
    attempts: int
    created: float | None
    ended: float | None
    worked: float
    resume: list[str]
    config: dict[str, Any]
    summary: dict[str, Any]
    writers: dict[str, int]
    seconds: dict[str, float]
    checkpoints: dict[str, Any]
    tables: dict[str, int]
    keys: dict[str, dict[str, Any]]
    alerts: list[dict[str, Any]]
    drops: dict[str, int]
    remarks: dict[str, int]
    reports: dict[str, str]
    retention: dict[str, Any]
    silent_sinks: dict[str, str]
    remote: dict[str, Any]
    problems: list[Problem]

    def __repr__(self) -> str:
        return f"<Overview of {self.project}/{self.name} {self.id}, {self.status}>"

    def sentences(self) -> list[str]:
        """How it ended, what was lost or left out, and what is wrong."""
        end = [] if self.why is None else [self.why]
        return [*end, *remarks_of(self.drops, self.remarks, self.reports, self.retention, self.problems)]

    def as_data(self) -> dict[str, Any]:
        """The fields as plain data."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**own, "problems": [str(problem) for problem in self.problems]}


def overview(book: ReadRun) -> Overview:
    """What is in a run. Reads the metrics once, and the tables of timings, checkpoints and alerts."""
    info = book.info
    remarks = info.remarks or {}
    retention = info.retention or {}
    ended = why_ended(info, book.status)
    newest = sorted(book.latest().items(), key=lambda item: (item[0].startswith(OURS), item[0]))
    return Overview(
        path=str(book.path),
        project=book.project,
        name=book.name,
        id=book.id,
        status=book.status,
        failure=book.failure,
        why=None if ended is None else ended[1],
        seed=book.seed,
        attempts=len(book.attempts),
        created=info.created,
        ended=info.ended,
        worked=worked(info, time.time() if book.status == "running" else info.ended),
        resume=[] if ended is None else how_to_resume(info),
        config=dict(book.config),
        summary=dict(book.summary),
        writers=_writers(book.writers),
        seconds=_stages(book),
        checkpoints=_checkpoints(book),
        tables=book.table_rows(),
        keys={key: {"value": value, **clocks} for key, (value, clocks, _time) in newest},
        alerts=_alerts(book),
        drops=dict(info.drops),
        remarks=dict(remarks),
        reports=dict(info.reports or {}),
        retention=dict(retention),
        silent_sinks={
            name: str(trouble.get("words"))
            for name, trouble in read_json(book.path / RunFile.KEEPER / RunFile.TROUBLES).items()
            if isinstance(trouble, dict)
        },
        remote=_remote(book),
        problems=book.problems(deep=False),
    )


def remarks_of(
    drops: Mapping[str, int],
    remarks: Mapping[str, int],
    reports: Mapping[str, str],
    retention: Mapping[str, Any],
    problems: Sequence[Problem],
) -> Iterator[str]:
    """What a run lost or left out, and what is wrong with it. Losses that a problem counts are only in the problem.

    Args:
      drops, remarks, reports, retention: those of run.json.
      problems: what is wrong with its files.
    """
    for cause, n in drops.items():
        if sum(problem.n for problem in problems if problem.kind == cause) < n:
            yield _reported(cause, n, reports)
    for cause, n in remarks.items():
        yield _reported(cause, n, reports, "; nothing was lost")
    if trimmed := Retention.words(dict(retention)):
        yield f"rollouts: {trimmed}"
    for problem in problems:
        yield f"problem: {problem}"


def _reported(cause: str, n: int, reports: Mapping[str, str], then: str = "") -> str:
    """What was wrong, and how often; of a run whose run.json has no words for it, the bare cause."""
    often = "once" if n == 1 else f"{n:,} times"
    return f"{reports[cause].rstrip('.')} ({cause}, {often}{then})" if cause in reports else f"{cause}: {often}{then}"


def _writers(writers: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many processes wrote, by their final state, and on how many hosts."""
    states = [writer["state"] for writer in writers]
    counted = {state: states.count(state) for state in STATES if state in states}
    return {"all": len(writers), "hosts": len({writer["host"] for writer in writers}), **counted}


def _stages(book: ReadRun) -> dict[str, float]:
    """Seconds in each stage, the longest first; nested stages as a/b."""
    query = "select name, sum(seconds) as seconds from timings group by name order by 2 desc"
    spent = book.asked(["timings"], lambda db: db.table(query)).to_pylist()
    return {str(row["name"]): float(row["seconds"]) for row in spent if row["seconds"] is not None}


def _checkpoints(book: ReadRun) -> dict[str, Any]:
    """How many checkpoints are still there, and which are the best and the last."""
    rows = plain_rows(book.checkpoints())
    chosen = {"best": next((row for row in rows if row["is_best"]), None), "last": rows[-1] if rows else None}
    history = CheckpointHistory([], book.path)
    chosen = {
        which: {
            "id": str(row["checkpoint_id"]),
            "path": str(history.file_of(row).absolute()),
            "score": score_of(row),
            **{clock: row[clock] for clock in book.clocks if row.get(clock) is not None},
        }
        for which, row in chosen.items()
        if row is not None
    }
    return {"kept": len(rows), **chosen} if rows else {}


def _alerts(book: ReadRun) -> list[dict[str, Any]]:
    """What was found wrong, oldest first."""
    return [
        {
            **{name: row.get(name) for name in ("rule", "level", "message", "key", "source")},
            **{clock: row[clock] for clock in book.clocks if row.get(clock) is not None},
        }
        for row in book.alerts().drop_columns(["time"]).to_pylist()
    ]


def _remote(book: ReadRun) -> dict[str, Any]:
    """Where it is shipped to, and how much is not there yet; {} for a run that is read from a remote."""
    state = None if is_view(book.path) else backlog(book.path)
    return {} if state is None else {"url": book.info.remote, **state}
