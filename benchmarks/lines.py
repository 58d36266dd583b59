"""Lines of the table: rollbook's figure beside a peer's, in turns, and whether a goal is met, missed or undecided."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

FORMER = "former"
"""The peer that is rollbook of another commit; see `python -m benchmarks --against`."""


class NotMeasured(Exception):
    """A row needs something that is not here. The text says what."""


@dataclass(frozen=True)
class Context:
    """What a row needs: where to write, which peers are installed, how often to repeat.

    Attributes:
      dry: a dry run shows that every row runs; its figures say nothing.
    """

    root: str
    peers: list[str]
    repeat: int
    dry: bool = False

    def size(self, n: int) -> int:
        """How many of something a row measures: `n`, in a dry run a hundredth."""
        return max(1, n // 100) if self.dry else n

    def has(self, *names: str) -> list[str]:
        """Those of `names` that are installed, and the former rollbook if it is measured."""
        return [name for name in (*names, FORMER) if name in self.peers]


def spread(values: Sequence[float]) -> tuple[float, float]:
    """An interval of the values that holds the median of what they are drawn from with at least 90 %; all, of a few.

    Between two order statistics, whatever the shape: with five values that is 94 % for all of them.
    """
    ordered, n = sorted(values), len(values)
    cut, outside = 0, 2.0 * 0.5**n
    while outside + 2.0 * math.comb(n, cut + 1) * 0.5**n <= 0.1:
        cut += 1
        outside += 2.0 * math.comb(n, cut) * 0.5**n
    return ordered[cut], ordered[n - 1 - cut]


@dataclass(frozen=True)
class Line:
    """One line: rollbook's figures, a peer's, their ratio, and the goal for either.

    Attributes:
      ours, theirs: one figure, or one for each turn. The machine's speed changes within minutes, so figures of one turn
        are compared with each other, and the ratio is the median of these.
    """

    number: int | str
    what: str
    ours: float | Sequence[float]
    unit: str
    peer: str = ""
    theirs: float | Sequence[float] | None = None
    goal_ratio: float | None = None
    goal: float | None = None
    note: str = ""

    @property
    def figure(self) -> float:
        """Our figure: the median of the turns."""
        return statistics.median(_each(self.ours))

    @property
    def ratios(self) -> list[float]:
        """Ours over theirs in each turn; infinite if noise has made a cost of either negative, which says nothing."""
        if self.theirs is None:
            return []
        pairs = zip(_each(self.ours), _each(self.theirs), strict=True)
        return [ours / theirs if theirs > 0 and ours >= 0 else math.inf for ours, theirs in pairs]

    @property
    def met(self) -> bool | None:
        """Whether the goal holds; None without one, and where the turns disagree."""
        judged = [(self.ratios, self.goal_ratio), (_each(self.ours), self.goal)]
        for values, goal in judged:
            if goal is not None and values:
                low, high = spread(values)
                return True if high <= goal else None if low <= goal else False
        return None

    def cells(self) -> list[str]:
        """The line's cells, as text."""
        goal = ""
        if self.goal_ratio is not None:
            goal = f"<= {_ratio(self.goal_ratio)}"
        elif self.goal is not None:
            goal = f"<= {self.goal:g} {self.unit}"
        theirs = None if self.theirs is None else statistics.median(_each(self.theirs))
        peer = "" if theirs is None else f"{self.peer} {theirs:,.4g} {self.unit}"
        ratio = ""
        if self.ratios:
            low, high = spread(self.ratios)
            ratio = _ratio(statistics.median(self.ratios))
            ratio += f" ({_ratio(low)} to {_ratio(high)})" if len(self.ratios) > 1 else ""
        state = {True: "met", False: "MISSED", None: "undecided" if goal else ""}[self.met]
        note = f"{state}{'; ' if state and self.note else ''}{self.note}"
        return [str(self.number), self.what, f"{self.figure:,.4g} {self.unit}", peer, ratio, goal, note]

    def text(self) -> str:
        """For the terminal."""
        number, what, ours, peer, ratio, goal, note = self.cells()
        return f"{number:>3} {what:42s} {ours:>16s}  {peer:28s} {ratio:>24s}  {goal:14s} {note}"


def _each(figures: float | Sequence[float]) -> Sequence[float]:
    return [figures] if isinstance(figures, (int, float)) else figures


def _ratio(ratio: float) -> str:
    return f"1/{1 / ratio:.3g}" if 0 < ratio < 0.8 else f"{ratio:.2f}"
