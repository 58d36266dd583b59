"""A policy that stops exploring before it has learned."""

from __future__ import annotations

import math

from rollbook.errors import BadInput
from rollbook.health._keyed import KeyedRule, Last, meaning, median, place
from rollbook.protocols import Alert, Row, RunInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Entropy"]

_FIRST = 5
_RETURNS = 20


class Entropy(KeyedRule):
    """The entropy of a discrete policy that all but vanishes while the return has not improved.

    Told relative to the run's own start, where a fresh policy chooses about evenly; in absolute nats it says nothing,
    and a fall alone is what learning looks like. "fail" when `rows` updates in a row are below `share` of the start and
    the return (`train/return` by any framework's name, or the table of episodes) is no better than at the start.
    Policies whose entropy is ever negative are continuous and are left alone, and so are runs without a return.

    Args:
      share: of the entropy of the start.
      rows: how many updates in a row.
      keys: further keys to look at.
    """

    name = "entropy"
    source = "Andy Jones, Debugging RL (about 1 at the start, about 0 is collapse); 0.05 with a return still low"
    tables = frozenset({"metrics", "episodes"})
    meanings = frozenset({"update/entropy", "update/loss/entropy", "train/return"})

    def __init__(self, share: float = 0.05, rows: int = 3, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        if not 0 < share < 1 or rows < 1:
            raise BadInput(f"rule 'entropy': share={share!r} must lie between 0 and 1, rows={rows!r} be at least 1")
        self._share, self._rows = share, rows

    def open(self, run: RunInfo) -> None:
        """A run, or a stretch of it after it went back, begins."""
        super().open(run)
        self._first: dict[str, list[float]] = {}
        self._last: dict[str, Last] = {}
        self._continuous: set[str] = set()
        self._early: list[float] = []
        self._late: list[float] = []

    def look(self, rows: Sequence[Row], now: float) -> Iterable[Alert]:
        """See `protocols.Rule`."""
        for row in rows:
            if row.table == "episodes":
                gained = row.values.get("return")
                if isinstance(gained, (float, int)):
                    self._take_return(float(gained))
        yield from super().look([row for row in rows if row.table == "metrics"], now)

    def take(self, key: str, value: float, row: Row) -> Iterable[Alert]:
        """One value of a key that is looked at."""
        name = meaning(key)
        if name == "train/return":
            self._take_return(value)
            return
        entropy = -value if name == "update/loss/entropy" else value
        if not math.isfinite(entropy) or key in self._continuous:
            return
        if entropy < 0:
            self._continuous.add(key)
            return
        first = self._first.setdefault(key, [])
        if len(first) < _FIRST:
            first.append(entropy)
            return
        start = median(first)
        last = self._last.setdefault(key, Last(self._rows))
        last.take(entropy, row)
        if not start > 0.01 or self._has_improved():
            return
        if not self.begins(key, last, lambda nats: nats < self._share * start):
            return
        yield Alert(
            self.name,
            "fail",
            f"the policy's entropy ({key}) is {entropy / start:.1%} of what it was at the start"
            f"{place(row.clocks)}, and the return is no better than then: it stopped exploring before it learned",
            last.evidence(
                start=start,
                share=entropy / start,
                limit=self._share,
                return_at_start=median(self._early),
                return_now=median(self._late),
            ),
            self.source,
            key,
            row.clocks,
        )

    def _take_return(self, gained: float) -> None:
        if not math.isfinite(gained):
            return
        if len(self._early) < _RETURNS:
            self._early.append(gained)
        self._late.append(gained)
        if len(self._late) > _RETURNS:
            del self._late[0]

    def _has_improved(self) -> bool:
        """Whether the newest returns lie above the first ones; also where too few are known to tell."""
        if len(self._early) < _RETURNS:
            return True
        spread = sorted(self._early)
        return median(self._late) > max(median(self._early), spread[int(0.9 * len(spread))])
