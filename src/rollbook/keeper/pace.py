"""When a run is checked next: how late the last check was, what it waits for, and whether one is needed at all."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rollbook.keeper.child import Child

WOKEN_SECONDS = 0.25
"""How often to check while a child is at work whose end wakes us: a check costs 0.3 ms a writer."""


class Pace:
    """The times of one run's steps.

    Args:
      clock: seconds, monotonic.
    Attributes:
      is_woken_by_children: the end of a child that is waited for wakes this keeper.
      awaited: the child whose end wakes us.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due = clock()
        self._late = 0.0
        self._rests_until: float | None = None
        self.is_woken_by_children = True
        self.awaited: Child | None = None

    def begin(self) -> float:
        """A step begins. Returns when."""
        now = self._clock()
        self._late = max(self._late, now - self._due)
        self._rests_until, self.awaited = None, None
        return now

    def next(self, pause: float) -> float:
        """The next step is due in `pause` seconds. Returns those."""
        self._due = self._clock() + pause
        return pause

    def temporary(self, child: Child, otherwise: float) -> float:
        """How long the next step can wait while `child` is at work; `otherwise` if its end does not wake us."""
        if child.fileno() < 0 or not self.is_woken_by_children:
            return otherwise
        self.awaited = child
        return WOKEN_SECONDS

    def watch(self, child: Child) -> None:
        """Wake up when a child at work ends; nothing else waits for it."""
        if child.fileno() >= 0 and self.is_woken_by_children:
            self.awaited = child

    def rest(self, until: float) -> None:
        """The step left nothing to do until a writer writes, or this time comes."""
        self._rests_until = until

    def rests(self) -> bool:
        """Whether that still holds, by the clock alone."""
        return self._rests_until is not None and self._clock() < self._rests_until

    def take_late(self) -> float:
        """How many seconds late the latest step was, since the last call of this method."""
        late, self._late = self._late, 0.0
        return late
