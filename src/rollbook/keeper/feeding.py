"""When the sinks of a run are made, offered rows, and closed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rollbook.keeper.sinks import Sinks

_FEED_SECONDS = 60.0
"""In a keeper of many runs: how long the keeper's own rows of an idle run wait for sinks."""


class Feeding:
    """The sinks of one run. They are made when there is something for them: an idle keeper loads none of their code.

    Args:
      run_folder: the run's folder.
      clock: seconds, monotonic.
      report: takes (cause, words) for the log.
      in_turn: feed services in the caller's thread as well, one after the other.
    Attributes:
      changed_at: when rows of a trainer were last seen, by `clock`.
    """

    def __init__(
        self, run_folder: str, clock: Callable[[], float], report: Callable[[str, str], None], *, in_turn: bool
    ) -> None:
        self._folder, self._clock, self._report, self._in_turn = run_folder, clock, report, in_turn
        self._specs: Sequence[object] = ()
        self._x = ""
        self._sinks: Sinks | None = None
        self._last_troubles: dict[str, dict[str, object]] = {}
        self._flushing: frozenset[str] = frozenset()
        self._fed_at = -1e9
        self.changed_at = -1e9

    def use(self, specs: Sequence[object], x: str) -> None:
        """Use these sinks, objects or entries of the plan, from now on; close those made so far."""
        self.close(ended=False)
        self._specs, self._x = specs, x

    @property
    def is_open(self) -> bool:
        """Whether sinks have been made."""
        return self._sinks is not None

    @property
    def is_asked(self) -> bool:
        """Whether there are sinks to be made."""
        return bool(self._specs)

    def open(self) -> None:
        """Make the sinks."""
        from rollbook.keeper.sinks import Sinks

        self._sinks = Sinks(
            self._folder, self._specs, x=self._x, clock=self._clock, report=self._report, inline=self._in_turn
        )

    def close(self, *, ended: bool, seconds: float | None = None) -> None:
        """Close the sinks, if there are any; see `Sinks.close`."""
        sinks, self._sinks = self._sinks, None  # if two threads close, only one does it
        if sinks is not None:
            sinks.close(ended=ended, seconds=seconds)
            self._last_troubles = sinks.troubles()

    def ask_all_for(self, finished: frozenset[str]) -> None:
        """If one of these writers is new, nothing counts as drained before the threads have all of its rows."""
        if self._sinks is not None and finished - self._flushing:
            self._flushing = finished
            self._sinks.ask_all()

    def step(self, *, flush: bool) -> bool:
        """Deliver rows; with `flush` all of them, without thinning. True when nothing is left."""
        return self._sinks is None or self._sinks.step(flush=flush)

    def is_due(self, now: float, every_seconds: float) -> bool:
        """Whether to offer rows to sinks now, where rows wait for up to `every_seconds`."""
        fed = now - self._fed_at
        if self.changed_at < self._fed_at and not self.needs_time():
            return fed >= _FEED_SECONDS  # rows of the keeper's own
        return fed >= every_seconds

    def was_fed(self, now: float, drained: bool) -> None:
        """Sinks were offered all rows; `drained`: they have accepted them."""
        self._fed_at = now if drained else -1e9

    def has_news(self) -> bool:
        """Whether rows of a trainer came since the sinks had all."""
        return self.changed_at >= self._fed_at

    def needs_time(self) -> bool:
        """Whether a sink needs a step without new rows: it failed, or gets only the newest rows at intervals."""
        if self._sinks is None:
            return False
        slowest = max((f.every_seconds or 0.0 for f in self._sinks), default=0.0)
        return self.failing() or self._clock() - self.changed_at <= slowest

    def failing(self) -> bool:
        """Whether the last try of a sink failed."""
        return self._sinks is not None and bool(self._sinks.failing())

    def troubles(self) -> dict[str, dict[str, object]]:
        """See `Sinks.troubles`; after `close`, the troubles at the end."""
        return self._sinks.troubles() if self._sinks is not None else self._last_troubles

    def lag(self, now: float) -> Mapping[str, float]:
        """See `Sinks.lag`."""
        return self._sinks.lag(now) if self._sinks is not None else {}
