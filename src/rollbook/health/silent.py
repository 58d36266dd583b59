"""A run that is being written and logs nothing."""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.schema.records import Alert, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from rollbook.schema.columns import Columns, Where

_FEWEST_ROWS = 20
_SAME_MOMENT_SECONDS = 0.05


class Silent:
    """A run whose process lives and from which no row has come for far longer than ever before.

    Measured against the longest pause so far, so that slow evaluations and large updates count as usual. Reported once
    for each silence; a silence that ended counts as usual from then on.

    Args:
      times: how many times the longest pause so far.
      seconds: never before this many seconds.
    """

    name = "silent"
    source = "rollbook's own: a multiple of the run's longest pause"
    tables = frozenset({"metrics", "episodes", "timings", "samples"})

    def __init__(self, times: float = 10.0, seconds: float = 300.0) -> None:
        if not times >= 1 or not seconds > 0:
            raise BadInput(f"rule 'silent': times={times!r} must be at least 1 and seconds={seconds!r} above 0")
        self._times, self._seconds = times, seconds
        self.open(None)

    def open(self, run: RunInfo | None) -> None:
        """A run begins, or continues after a rewind."""
        self._total = dict(run.total) if run is not None else {}
        self._moments, self._longest = 0, 0.0
        self._last: Where | None = None
        self._heard: float | None = None
        self._reported = False

    def state(self) -> dict[str, Any]:
        """See `protocols.Stateful`. Without the time of the last rows: an outage of the keeper is no silence of the
        run."""
        return {"rows": self._moments, "longest": self._longest, "last": self._last, "said": self._reported}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """See `protocols.Stateful`."""
        self._moments, self._longest = int(state["rows"]), float(state["longest"])
        self._last, self._reported = state["last"], bool(state["said"])

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        if len(columns):
            if self._heard is not None:  # pauses as seen here: an outage of the keeper does not count
                self._longest = max(self._longest, self._pause_in(columns))
            self._moments += len(columns)
            self._heard, self._reported = now, False
            self._last = columns.last()
            return
        if (
            self._heard is None
            or self._last is None
            or self._reported
            or self._moments < _FEWEST_ROWS
            or self._is_done()
        ):
            return
        limit = max(self._seconds, self._times * self._longest)
        silence = now - self._heard
        if silence <= limit:
            return
        self._reported = True
        yield Alert(
            self.name,
            "warn",
            f"no row for {silence:,.0f} s while the process lives; the longest pause before was {self._longest:,.1f} "
            "s; look whether an environment, a worker or a lock waits",
            {
                "silent_seconds": silence,
                "longest_pause_seconds": self._longest,
                "limit_seconds": limit,
                "rows_seen": self._moments,
                "last_row": self._last["row"],
                "clocks": self._last["clocks"],
            },
            self.source,
            "",
            self._last["clocks"],
        )

    def _pause_in(self, columns: Columns) -> float:
        """The longest time between two rows, including the last one of the previous look; 0 if it is no new longest."""
        return columns.longest_pause(
            self._last["time"] if self._last is not None else None, max(self._longest, _SAME_MOMENT_SECONDS)
        )

    def _is_done(self) -> bool:
        """Whether the run has reached its planned length: what comes after that may take its time."""
        clocks = self._last["clocks"] if self._last is not None else {}
        return any(clocks.get(clock, 0) >= end for clock, end in self._total.items())
