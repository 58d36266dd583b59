"""Alerts and the rules that look."""

from __future__ import annotations

import msgspec

from rollbook.server.schemas.common import Alert, Answer, Ask

__all__ = [
    "AlertsAnswer",
    "AlertsAsk",
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


class AlertsAnswer(Answer, kw_only=True):
    """How many alerts there are.

    Attributes:
      by_run: run -> level -> how many.
    """

    total: int
    by_run: dict[str, dict[str, int]]
    newest: list[Alert]
