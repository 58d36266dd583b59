"""Episodes that do not end."""

from __future__ import annotations

from math import gcd
from operator import sub

from rollbook.health._config import number_in
from rollbook.health._keyed import meaning
from rollbook.health._pace import COPIES, Pace, PaceRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollbook.schema.columns import Column, Columns

_USUAL = 1_000
"""The time limit of most tasks of Gymnasium. Up to it, a policy that learns to survive may lengthen episodes much."""
_SOON = 0.05
_SHORT = 0.25
"""If one usual episode of each environment takes longer than this, this share of the run is waited for."""
_COPIES = 4
"""How many environments a run is assumed to have at most if it does not say."""
_LIMIT = 5
"""The longest length is a time limit if it came this often."""


class _Ends(Pace):
    """Ends of episodes.

    Attributes:
      first: environment steps at the first one; -1 before it.
      every: the greatest common divisor of the steps between two.
      longest, often: the length of the longest episode, and how often it came.
      lengths: of all episodes after the first, together.
      table: whether the run records its episodes.
    """

    first: int = -1
    every: int = 0
    longest: float = 0.0
    often: int = 0
    lengths: float = 0.0
    table: bool = False


class NoEpisode(PaceRule[_Ends]):
    """Training continues while no episode ends: "warn".

    After a 20th of the run, twice the longest stretch between two ends so far, and as many steps as all environments
    together need for the longest episode that is to be expected. That is twice the longest so far. While the longest is
    below 1,000 steps and came fewer than five times (so it is not the time limit), it is ten times that, up to 1,000: a
    policy that learns to survive lengthens the episodes of all environments at once. If lengths are not logged at each
    end: after five times the longest stretch. If none ever ended: after a tenth of the run, whose length must be known
    (`init(total=…)`); where the configuration has the number of environments (`num_envs`, `n_envs`), after a 20th. In
    both cases after 1,000 steps of each environment (of four if nothing tells how many), or a quarter of a run that is
    shorter than four times that. After the first end alone: no sooner than after three times the steps up to it.

    The number of environments is the greatest common divisor of the clock's steps: a vector of them advances it by one
    for each.
    """

    remembers = _Ends
    name = "no_episode"
    preferred = "train/length"
    times = 2.0
    source = "Stable-Baselines3 #1204, CleanRL #534 are of this kind; the multiples are rollbook's own"

    def _limit(self) -> float | None:
        if self.memory.gap or not self._total:
            return super()._limit()
        copies = number_in(self.run.config, *COPIES)
        share = self.never if copies is None else _SOON
        share = max(share, min(_USUAL * (copies or _COPIES) / self._total, _SHORT))
        began = max(0, self.memory.last)  # if something came: the first stretch, the only one that is known
        return float(began + max(share * self._total, self.times * began))

    def columns_of(self, columns: Columns) -> tuple[Column | None, Column | None]:
        """See `PaceRule`. Recorded episodes, if the run has them; else rows of metrics, each of which may be many."""
        it, other = super().columns_of(columns)
        ended = columns.of_episodes("length")
        table = self.memory.table = self.memory.table or ended is not None
        if table:
            it = ended
        self._is_length = it is not None and (table or meaning(it.key) == self.preferred)
        return it, other

    def patience(self) -> float:
        """See `PaceRule`."""
        memory = self.memory
        took = memory.last - memory.first
        if not took / 2 <= memory.lengths <= 2 * took:  # then a row is not an episode
            return max(self._most(), 5.0 * memory.gap, _USUAL)
        longest = memory.longest
        if memory.often >= _LIMIT:
            return max(self._most(), self._of_all(2 * longest))
        return max(self._most(), self._of_all(max(2 * longest, min(10 * longest, _USUAL))), _USUAL)

    def _of_all(self, expected: float) -> float:
        """The steps of all environments while each has an episode of this length."""
        every, longest = self.memory.every, self.memory.longest
        copies = every if every % longest else every / longest  # episodes of one length may all end together
        return copies * expected

    def _take(self, came: Sequence[int], values: Sequence[float]) -> None:
        memory = self.memory
        if came and self._is_length:
            if memory.first < 0:
                memory.first = came[0]
            else:
                memory.every = gcd(memory.every, came[0] - memory.last)
                memory.lengths += values[0]
            memory.every = gcd(memory.every, *set(map(sub, came[1:], came)))
            longest = max(values)
            if longest > memory.longest:
                memory.longest, memory.often = longest, 0
            memory.often += list(values).count(memory.longest)
            memory.lengths += sum(values[1:])
        super()._take(came, values)

    def is_it(self, name: str) -> bool:
        """See `PaceRule`."""
        return name in ("train/return", "train/length", "train/reward")

    def is_other(self, name: str) -> bool:
        """See `PaceRule`."""
        return name.startswith("update/")

    def speak(self, since: int, now: int) -> str:
        """See `PaceRule`."""
        if since < 0:
            return (
                f"no episode has ended in {now:,} environment steps: either none ends, or returns are not logged; "
                "usually the time limit or a wrapper that reports episodes is missing"
            )
        return (
            f"no episode has ended since env_step {since:,}, in {now - since:,} environment steps; the longest "
            f"stretch before was {self.memory.gap:,}: usually the time limit is missing, or the policy has found "
            "a state that never ends"
        )
