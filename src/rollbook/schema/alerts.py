"""Alerts: problems that were found, counted, reported once per cause and key, and stored in the table `alerts`.

    alerts = Alerts(run)
    alerts.report(Alert("reward_ledger", "warn", "the components add up to 3, the reward to 4", {"difference": 1.0}))

The health rules of the keeper, the episode auditor, the reward ledger and all other checks of a run report here, so
that the terminal, `rollbook show`, the page and `book.alerts()` show all alerts. Standard library only.
"""

from __future__ import annotations

import json
import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    class _Alert(Protocol):
        """A `protocols.Alert`, or what looks like one."""

        @property
        def rule(self) -> str: ...
        @property
        def level(self) -> str: ...
        @property
        def message(self) -> str: ...
        @property
        def evidence(self) -> Mapping[str, Any]: ...
        @property
        def clocks(self) -> Mapping[str, int]: ...
        @property
        def source(self) -> str: ...
        @property
        def key(self) -> str: ...

    class _Records(Protocol):
        """The part of `protocols.Recorder` that alerts need."""

        def record(self, table: str, columns: Mapping[str, object], **clocks: Any) -> int: ...
        def count(self, cause: str, n: int = 1, message: str = "") -> None: ...


_MOST_CAUSES = 10_000


class Alerts:
    """Reports alerts to one recorder. One thread at a time.

    Args:
      recorder: gets a row of `alerts` for each stored alert, and a count of every alert under its rule.
      every: the first `every` alerts of one rule, level, key and cause are stored; later ones only at 10, 100, … times
        that number.
    """

    def __init__(self, recorder: _Records, *, every: int = 1) -> None:
        self._recorder, self._every = recorder, every
        self._counts: dict[tuple[str, str], int] = {}
        self._untold: dict[tuple[str, str], _Alert] = {}  # the last alert that was only counted

    def report(self, alert: _Alert, cause: str = "", hint: str = "see the run's alerts") -> bool:
        """Count an alert, warn about the first of its rule, and store it unless enough similar ones are stored.

        Args:
          alert: what was found. Its `clocks` give the point in training; {} means the current clocks.
          cause: separates different problems with the same rule and key.
          hint: what to do, for the warning.
        Returns:
          Whether it was stored as a row of `alerts`.
        """
        like = (alert.rule, f"{alert.level}\0{alert.key}\0{cause}")
        known = like in self._counts or len(self._counts) < _MOST_CAUSES
        count = self._counts.get(like, 0) + 1
        is_reported = known and (count <= self._every or _is_power_of_ten(count / self._every))
        if known:
            self._counts[like] = count
            self._untold[like] = alert
        if is_reported:  # before counting, which raises with strict=True
            self._keep(like)
        self._recorder.count(alert.rule, 1, f"{alert.message}; {hint}")
        return is_reported

    def conclude(self) -> None:
        """Update the counts: write a last row for each alert that was counted since the last stored one."""
        for like in list(self._untold):
            self._keep(like)

    def _keep(self, like: tuple[str, str]) -> None:
        alert, count = self._untold.pop(like), self._counts[like]
        self._recorder.record(
            "alerts",
            {
                "rule": alert.rule,
                "level": alert.level,
                "message": alert.message if count <= self._every else f"{alert.message} ({count} times so far)",
                "evidence": json.dumps(_for_json({**alert.evidence, "count": count}), default=str),
                "source": alert.source,
                "key": alert.key,
            },
            **alert.clocks,
        )

    def counts(self) -> dict[str, int]:
        """The number of alerts by rule."""
        counts: dict[str, int] = {}
        for (rule, _cause), count in self._counts.items():
            counts[rule] = counts.get(rule, 0) + count
        return counts

    def state(self) -> list[list[object]]:
        """The reported alerts, as plain JSON data."""
        return [[rule, cause, count] for (rule, cause), count in self._counts.items()]

    def set_state(self, state: object) -> None:
        """Forget what was counted, and continue from `state`; invalid entries are ignored.

        Args:
          state: an earlier result of `state`.
        """
        self._counts.clear()
        self._untold.clear()
        for entry in state if isinstance(state, list) else ():
            if isinstance(entry, list) and len(entry) == 3 and type(entry[2]) is int:
                self._counts[(str(entry[0]), str(entry[1]))] = entry[2]


def _is_power_of_ten(number: float) -> bool:
    while number >= 10 and number % 10 == 0:
        number /= 10
    return number == 1


def _for_json(value: object) -> object:
    """JSON has no NaN and no infinity; they become texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(name): _for_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_for_json(item) for item in value]
    return value
