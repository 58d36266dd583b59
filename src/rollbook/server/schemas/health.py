"""Alerts and the rules that look."""

from __future__ import annotations

import msgspec

from rollbook.server.schemas.common import Alert, Answer, Ask, Num

__all__ = [
    "AlertsAnswer",
    "AlertsAsk",
    "Finding",
    "FindingRun",
    "HealthAnswer",
    "QuietRule",
]


class QuietRule(msgspec.Struct, kw_only=True):
    """A rule that looked and found nothing."""

    rule: str
    label: str
    checked: str


class HealthAnswer(Answer, kw_only=True):
    """What is wrong, what was looked at and is quiet.

    Attributes:
      promise: how often the rules raise a false alarm, where that was measured.
      host_keys: keys of metrics about the machine; their curves are asked for with x = "time".
    """

    alerts: list[Alert]
    quiet: list[QuietRule]
    rules: int
    promise: str | None
    host_keys: list[str]


class AlertsAsk(Ask, kw_only=True):
    """Of which runs; all without."""

    runs: list[str] | None = None


class FindingRun(msgspec.Struct, kw_only=True):
    """Where something was found: the place on the run's own axis, and the key that it is about, if they are known."""

    run: str
    name: str
    seed: int | None
    project: str
    status: str
    time: float | None
    axis: str
    x: Num
    key: str


class Finding(msgspec.Struct, kw_only=True):
    """What is wrong, once for all runs that have it.

    Attributes:
      rule: the health rule; "ended" where runs crashed, were killed or fell silent.
      level: crashed, fail, warn or note.
      message: of the newest run; runs: the newest first, at most 50; many: how many there are.
    """

    rule: str
    level: str
    message: str
    runs: list[FindingRun]
    many: int


class AlertsAnswer(Answer, kw_only=True):
    """How many alerts there are.

    Attributes:
      by_run: run -> level -> how many.
      findings: the worst first, then the newest; looked_at: runs; quiet: those of them that have none.
    """

    total: int
    by_run: dict[str, dict[str, int]]
    newest: list[Alert]
    findings: list[Finding] = []
    looked_at: int = 0
    quiet: int = 0
