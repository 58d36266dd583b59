"""What is wrong with runs: alerts of health rules, and how runs ended; each thing once for all that have it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from rollbook.book import Book
from rollbook.book.questions import usual_axis_of
from rollbook.errors import Damaged, RollbookError
from rollbook.runs.groups import name_of
from rollbook.runs.questions import Alerts, Findings
from rollbook.runs.source import Row, Source
from rollbook.schema import manifest
from rollbook.schema.aliases import SCORES
from rollbook.schema.endings import why_ended
from rollbook.schema.run_files import journal_folder, part_folders
from rollbook.schema.source import is_view
from rollbook.schema.status import ENDED_BADLY
from rollbook.system.texts import amount
from rollbook.values.arrow import plain_rows

_WORST = ("crashed", "fail", "warn", "note")


class AlertOfRun(msgspec.Struct, frozen=True):
    """One alert of a run.

    Attributes:
      level, rule, key, message: as the rule gave them; key: the series that it is about, if that is known.
      seconds: when, in unix seconds; clocks: the readings that it knows.
      axis, x: the axis that its run is usually seen along, and the position on it; None: not known.
    """

    level: str
    rule: str
    key: str
    message: str
    seconds: float
    clocks: dict[str, int]
    axis: str
    x: float | None


class FoundIn(msgspec.Struct, frozen=True):
    """Where something was found.

    Attributes:
      path: of the run; run: project/name id; status: of the run.
      seconds, axis, x, key: as of `AlertOfRun`; when and where a run ended for its end.
      message: the finding's message about this run.
    """

    path: str
    run: str
    status: str
    seconds: float | None
    axis: str
    x: float | None
    key: str
    message: str


class Finding(msgspec.Struct, frozen=True):
    """What is wrong, once for all runs that have it.

    Attributes:
      rule: the health rule; "ended" where runs crashed, were killed or fell silent.
      level: crashed, fail, warn or note.
      found_in: the runs, the one where it was found last first.
    """

    rule: str
    level: str
    found_in: tuple[FoundIn, ...]

    @property
    def message(self) -> str:
        """The message about the newest run."""
        return self.found_in[0].message

    @property
    def sentence(self) -> str:
        """The finding in words."""
        first = self.found_in[0]
        more = f" and {amount(len(self.found_in) - 1, 'more run')}" if len(self.found_in) > 1 else ""
        what = first.status if self.rule == "ended" else f"{self.level} {self.rule}"
        return f"{what}: {self.message.rstrip('.')}. In {first.run}{more}."


class FindingsOfRuns(msgspec.Struct, frozen=True):
    """What is wrong with some runs.

    Attributes:
      findings: the worst first, then the newest.
      alerts: number of alerts; looked_at: number of runs; quiet: number of runs without alerts other than notes.
      unread: runs whose alerts cannot be read.
    """

    findings: tuple[Finding, ...]
    alerts: int
    looked_at: int
    quiet: int
    unread: tuple[str, ...] = ()

    def sentences(self) -> list[str]:
        """Each finding, then how many runs are quiet."""
        lines = [finding.sentence for finding in self.findings]
        lines.append(f"{self.quiet:,} of {amount(self.looked_at, 'run')} {'is' if self.quiet == 1 else 'are'} quiet.")
        if self.unread:
            lines.append(f"Alerts of {amount(len(self.unread), 'run')} cannot be read: {', '.join(self.unread[:3])}.")
        return lines

    def table(self) -> list[dict[str, Any]]:
        """One row per finding: level, rule, runs (how many), newest (which), message, key, axis, x, seconds."""
        return [
            {
                "level": each.level,
                "rule": each.rule,
                "runs": len(each.found_in),
                "newest": each.found_in[0].run,
                "message": each.message,
                **{name: getattr(each.found_in[0], name) for name in ("key", "axis", "x", "seconds")},
            }
            for each in self.findings
        ]

    def _repr_html_(self) -> str:
        from rollbook.plots.cards import card, grid, sentences

        return card(
            amount(len(self.findings), "finding"),
            "the worst first",
            grid(self.table()),
            sentences(self.sentences()[-1:]),
        )


def found(ask: Findings, source: Source) -> FindingsOfRuns:
    """The answer; see `RunSet.findings`."""
    alerts, unread = _alerts(source)
    at: dict[tuple[str, str], dict[str, FoundIn]] = {}
    for row in source.rows:
        path, status, ended = str(row["path"]), str(row["status"]), row.get("ended")
        if status in ENDED_BADLY:
            kind, message = _ending(row)
            when = float(ended) if isinstance(ended, (int, float)) else None
            if ask.since is None or (when is not None and when >= ask.since):
                at.setdefault(("crashed", kind), {})[path] = FoundIn(
                    path, name_of(row), status, when, "", None, "", message
                )
        for alert in alerts.get(path, ()):
            if ask.since is None or alert.seconds >= ask.since:
                at.setdefault((alert.level, alert.rule), {})[path] = FoundIn(
                    path, name_of(row), status, alert.seconds, alert.axis, alert.x, alert.key, alert.message
                )
    for (level, rule), of_run in at.items():  # a warning that became worse is shown once, at its present level
        if level == "warn":
            for path in at.get(("fail", rule), {}):
                of_run.pop(path, None)
    troubled = {path for (level, _), runs in at.items() if level != "note" for path in runs}
    many = sum(ask.since is None or alert.seconds >= ask.since for each in alerts.values() for alert in each)
    return FindingsOfRuns(_worst_first(at), many, len(source.rows), len(source.rows) - len(troubled), unread)


def alerted(ask: Alerts, source: Source) -> list[dict[str, Any]]:
    """The answer; see `RunSet.alerts`.

    Raises:
      Damaged: alerts of a run that cannot be read.
    """
    alerts, unread = _alerts(source)
    if unread:
        raise Damaged(
            f"alerts of {amount(len(unread), 'run')} cannot be read: {', '.join(unread[:3])}. rollbook verify says "
            "what is wrong; findings are of the others"
        )
    rows = [
        {
            "run": row["id"],
            "project": row["project"],
            "name": row["name"],
            "time": datetime.fromtimestamp(alert.seconds, UTC).isoformat(),
            "seconds": alert.seconds,
            **{name: getattr(alert, name) for name in ("level", "rule", "key", "message", "clocks")},
        }
        for row in source.rows
        for alert in alerts.get(str(row["path"]), ())
        if ask.since is None or alert.seconds >= ask.since
    ]
    return sorted(rows, key=lambda row: float(row["seconds"]))


def _alerts(source: Source) -> tuple[dict[str, list[AlertOfRun]], tuple[str, ...]]:
    """The alerts of each run, by path, oldest first; and the runs whose alerts cannot be read."""
    some = [row for row in source.rows if _may_have_alerts(str(row["path"]))]
    read = source.facts("alerts", alerts_in, some)
    return read, tuple(name_of(row) for row in some if str(row["path"]) not in read)


def _may_have_alerts(folder: str) -> bool:
    """Whether a run has sealed alerts, or a journal that may hold some: two file checks instead of opening it."""
    if is_view(folder) or any(os.path.isdir(parts) for parts in part_folders(folder, "alerts")):
        return True
    try:
        with os.scandir(journal_folder(folder)) as writers:
            return next(writers, None) is not None
    except OSError:
        return False


def alerts_in(book: Book) -> list[AlertOfRun]:
    """The alerts of a run, oldest first."""
    rows = plain_rows(book.alerts())  # `to_pylist` of times loads pandas
    if not rows:
        return []
    latest = book.latest()
    known = {clock for _, clocks, _ in latest.values() for clock in clocks}
    axis = usual_axis_of(book.info.x, book.info.total, [clock for clock in book.clocks if clock in known])
    made = []
    for row in rows:
        moment: datetime = row["time"]
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        clocks = {clock: row[clock] for clock in book.clocks if row.get(clock) is not None}
        x = seconds if axis == "time" else clocks.get(axis)
        key = key_of(row, latest)
        words = (str(row.get(name) or "") for name in ("rule", "message"))
        rule, message = words
        made.append(
            AlertOfRun(
                str(row.get("level") or "note"),
                rule,
                key,
                message,
                seconds,
                clocks,
                axis,
                None if x is None else float(x),
            )
        )
    return sorted(made, key=lambda alert: alert.seconds)


def key_of(row: Mapping[str, Any], known: Mapping[str, object]) -> str:
    """The key that an alert is about: that of its rule, or of its evidence; else the first that the user's message
    names."""
    if row.get("key"):
        return str(row["key"])
    evidence = row.get("evidence")
    try:
        evidence = json.loads(evidence) if isinstance(evidence, str) else evidence
    except (ValueError, RecursionError):
        evidence = None
    key = evidence.get("key") if isinstance(evidence, Mapping) else None
    if isinstance(key, str):
        return key
    if row.get("rule") in _ABOUT_RETURNS:
        return next((name for name in ("train/return", *SCORES) if name in known), "")
    return next((word for word in re.findall(r"[^\s,:;()]+", str(row.get("message") or "")) if word in known), "")


_ABOUT_RETURNS = ("below_earlier", "learns_nothing", "no_episode", "no_signal", "return_fall")
"""Rules that look at returns, whatever their key is called."""


def _ending(row: Row) -> tuple[str, str]:
    """Why a run ended early: the kind of end, and the reason in one line."""
    try:
        about = manifest.read(str(row["path"]))
    except (RollbookError, OSError):
        about = manifest.RunJson()
    return why_ended(about, str(row["status"])) or (str(row["status"]), str(row["status"]))


def _worst_first(at: Mapping[tuple[str, str], Mapping[str, FoundIn]]) -> tuple[Finding, ...]:
    """One finding for each rule and level, for any number of runs."""
    findings = [
        Finding(
            "ended" if level == "crashed" else rule,
            level,
            tuple(sorted(runs.values(), key=lambda found: found.seconds or 0.0, reverse=True)),
        )
        for (level, rule), runs in at.items()
        if runs
    ]
    findings.sort(key=lambda one: one.found_in[0].seconds or 0.0, reverse=True)
    findings.sort(key=lambda one: _WORST.index(one.level) if one.level in _WORST else len(_WORST))
    return tuple(findings)
