"""How many seeds decide between groups, and which difference a number of seeds can find: by the tests of `compare`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollbook import stats
from rollbook.compare.group_curve import Floats
from rollbook.errors import BadInput
from rollbook.stats import Plan, Study, Verdict
from rollbook.system.brief import brief
from rollbook.system.texts import amount

COUNTS = (4, 5, 7, 10, 15, 20, 30, 50)
"""Numbers of seeds for which the table states the difference that they find."""


@brief
@dataclass(frozen=True)
class SeedPlan:
    """Which difference a number of seeds can find.

    Attributes:
      std: standard deviation of the scores between seeds; pooled over the groups, if there are runs.
      power: the probability with which `compare` is to name the better group.
      difference: the difference to find, in units of the score; None if not given.
      needed: seeds of each group for it; None if no difference is given, or if more than 10,000 are needed.
      fewest: seeds of each group that can decide at all.
      pairs_compared: how many pairs of groups share the error.
      detectable: seeds of each group -> the smallest difference found with that power; infinity: none, however large.
      verdicts: for runs: the present verdict about each pair, with the number of seeds that would decide it.
      verdict_sentences: remarks about the runs, and the verdicts, in words.
    """

    std: float
    power: float
    difference: float | None
    needed: int | None
    fewest: int
    pairs_compared: int
    detectable: dict[int, float]
    verdicts: list[Verdict] = field(default_factory=list)
    verdict_sentences: list[str] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        rows = [
            {"seeds": n, "difference": size if math.isfinite(size) else None} for n, size in self.detectable.items()
        ]
        return {
            "std": self.std,
            "power": self.power,
            "difference": self.difference,
            "seeds_needed": self.needed,
            "fewest": self.fewest,
            "pairs_compared": self.pairs_compared,
            "detectable": rows,
            "pairs": [verdict.as_data() for verdict in self.verdicts],
        }

    def sentences(self) -> list[str]:
        """The result in words, the answer first."""
        lines = []
        among = f" among {self.pairs_compared} pairs of groups" if self.pairs_compared > 1 else ""
        if self.difference is not None:
            seeds = "More than 10,000" if self.needed is None else f"{self.needed:,}"
            lines.append(
                f"{seeds} seeds of each group find a difference of {self.difference:g}{among} with a chance of "
                f"{self.power:.0%}."
            )
        lines += self.verdict_sentences
        lines.append(
            f"Fewer than {self.fewest} seeds of each cannot decide{among}. The scores of seeds have a standard "
            f"deviation of {self.std:.4g}."
        )
        return lines


def as_planned(
    std: float,
    difference: float | None,
    power: float,
    counts: Sequence[int],
    pairs: int = 1,
    limit: Callable[[int], float] | None = None,
) -> SeedPlan:
    """A plan for scores with this standard deviation between seeds.

    Args:
      std: between seeds of one group.
      difference: to be found; None: only say which can be.
      power: wanted.
      counts: the numbers of seeds to report.
      pairs: of groups that share the error.
      limit: seeds of each -> what p must not exceed; None: that of a first look.
    """
    of = limit or (lambda n: Plan().limit([], n / 2, pairs))
    fewest = stats.fewest_that_decide(of) or stats.FEWEST
    needed = stats.seeds_for_difference(difference / std, of, power) if difference is not None else None
    found = {n: std * stats.detectable(n, of(n), power) for n in counts}
    return SeedPlan(std, power, difference, needed, fewest, pairs, found)


def as_seen(
    scores: Sequence[Floats],
    study: Study,
    verdicts: Sequence[Verdict],
    difference: float | None,
    power: float,
    counts: Sequence[int],
) -> SeedPlan:
    """A plan from the standard deviation between seeds that was seen, pooled over the groups, and the looks so far.

    Args:
      scores: of each group, [seeds].
      study: the looks so far.
      verdicts: of all pairs, now.
      difference, power, counts: as for `as_planned`.
    Raises:
      BadInput: no group has two seeds, or all scores of each group are equal.
    """
    freedom = sum(len(some) - 1 for some in scores if len(some) > 1)
    squares = sum(float(((some - some.mean()) ** 2).sum()) for some in scores if len(some) > 1)
    if not freedom or not squares > 0:
        raise BadInput(
            "the spread of scores within a group is not known: no group has two seeds of different scores, of "
            f"{amount(len(scores), 'group')}"
        )
    pairs = max((verdict.pairs for verdict in verdicts), default=1)
    before = sorted({look.information for look in study.looks if look.better is None})

    def limit(n: int) -> float:
        return study.plan.limit([each for each in before if each < n / 2], n / 2, pairs)

    return as_planned(math.sqrt(squares / freedom), difference, power, counts, pairs, limit)
