"""How groups are compared, and what may be spent at each look; fixed before the first one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from rollbook.errors import BadInput
from rollbook.stats.boundaries import nominal_levels, open_ended
from rollbook.stats.deciding import fewest_that_decide
from rollbook.stats.judging import FEWEST
from rollbook.system.brief import brief

FORMAT = 2
"""The version of plans and studies as plain data."""


@brief
@dataclass(frozen=True)
class Plan:
    """How arms are compared, fixed before the first look.

    Attributes:
      seeds: of each arm at the last look; None: no end is planned.
      arms: names of the groups of runs; () for whichever are given.
      against: compare each arm with this one alone; None: each with each.
      alpha: probability of a false winner over all looks and pairs, two-sided.
      delta: the largest difference of means that would not matter, in units of the score; None looks for winners only.
      floor: what a failed run counts as in means; None: as the worst score seen.
      lower_is_better: whether lower scores are better.
      paired: whether equal seeds are compared with each other.
      note: free text, such as the metric.
    """

    seeds: int | None = None
    arms: tuple[str, ...] = ()
    against: str | None = None
    alpha: float = 0.05
    delta: float | None = None
    floor: float | None = None
    lower_is_better: bool = False
    paired: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        arms = tuple(str(arm) for arm in self.arms)
        object.__setattr__(self, "arms", arms)
        if len(set(arms)) < len(arms) or len(arms) == 1:
            raise BadInput(f"A plan compares at least two arms of different names; given were {arms}.")
        if self.against is not None and arms and self.against not in arms:
            raise BadInput(f"against={self.against!r} has to be one of the arms {', '.join(arms)}.")
        if self.seeds is not None and self.seeds < FEWEST:
            raise BadInput(
                f"seeds={self.seeds!r}: a plan ends at {FEWEST} seeds of each or later; fewer decide nothing."
            )
        if not 0 < self.alpha < 0.5:
            raise BadInput(f"alpha={self.alpha!r} has to lie between 0 and 0.5.")
        if self.delta is not None and not (math.isfinite(self.delta) and self.delta > 0):
            raise BadInput(f"delta={self.delta!r} has to be above 0, in units of the score.")
        if self.floor is not None and not math.isfinite(self.floor):
            raise BadInput(f"floor={self.floor!r} has to be a number.")

    def pairs(self, arms: Sequence[str]) -> list[tuple[str, str]]:
        """The pairs that are compared, of these arms or of its own."""
        arms = self.arms or tuple(arms)
        pairs = list(itertools.combinations(arms, 2))
        return [pair for pair in pairs if self.against in pair] if self.against is not None else pairs

    def limit(self, before: Sequence[float], now: float, left: int = 1) -> float:
        """The p that a look must not exceed.

        Args:
          before: the information of earlier looks that did not decide: 1 / (1/n_a + 1/n_b), n / 2 if paired.
          now: that of this look, above all of them.
          left: the pairs that share the error.
        """
        if self.seeds is None:
            return round(float(open_ended((*before, now), self.alpha / left)[-1]), 12)
        end = self.seeds / 2
        fractions = sorted({min(each / end, 1.0) for each in (*before, now)})
        return round(float(nominal_levels(fractions, self.alpha / left)[-1]), 12)

    def first_look(self, pairs: int = 1, before: Sequence[float] = (), above: int = 0) -> int | None:
        """The fewest seeds of each arm that can decide, whatever they score; None: not before the plan's end.

        Args:
          pairs: that share the error.
          before: the information of earlier looks that did not decide.
          above: only numbers of seeds above this one.
        """
        most = self.seeds if self.seeds is not None else 200
        return fewest_that_decide(
            lambda n: self.limit([each for each in before if each < n / 2], n / 2, pairs), above, most, self.paired
        )

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"format": FORMAT, **asdict(self), "arms": list(self.arms)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Plan:
        """The plan from the output of `as_data`.

        Args:
          data: an earlier result of `as_data`.
        Raises:
          BadInput: the data is not a plan, or is from another version.
        """
        return cls(**known(cls, data, "plan") | {"arms": tuple(data["arms"])})


def known(cls: type, data: Mapping[str, object], what: str) -> dict[str, Any]:
    """The fields of a class in stored data, or an error about data of another version."""
    if what != "look":
        check_format(data, what)
    names = {f.name for f in fields(cls)}
    unknown = [key for key in data if key not in names and key != "format"]
    if unknown:
        raise BadInput(f"This {what} has a field {unknown[0]!r} that this version does not know.")
    return {key: value for key, value in data.items() if key in names}


def check_format(data: Mapping[str, object], what: str) -> None:
    """Raise if the data is of another version."""
    found = data.get("format", 1)
    if found != FORMAT:
        newer = isinstance(found, int) and found > FORMAT
        do = "Update rollbook." if newer else "Take a new name; its seeds count from the first look on."
        raise BadInput(f"This {what} has the format {found}; this version reads {FORMAT}. {do}")
