"""Is A better than B? Exact tests, with limits that allow for every look that was taken before.

    study = Study().look({"ppo": ppo_N, "dqn": dqn_N})      # store study.as_data() after each look
    print(study.verdict("ppo", "dqn").sentence())

A test at 5 % that is repeated as seeds come in finds a false winner in far more than 5 % of studies. So a study keeps
its looks, and each further look has a lower limit: together they spend `alpha`. Without a planned end the first look
has 60 % of it, and the later ones share the rest as the seeds grow, however many looks there are. A `Plan` with an end
spends little at first and most at its end. With several pairs, Holm's steps share the error among them.

The tests are those of `judging`: ranks and means, of which the larger p counts. The order of seeds and of arms plays no
part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollbook.errors import BadInput
from rollbook.stats._checked_input import Floats, floats
from rollbook.stats._special import stdtrit
from rollbook.stats.deciding import seeds_to_decide
from rollbook.stats.judging import FEWEST, Tested, holds_with_one_more_failure, judge, least_p, unseen_share
from rollbook.stats.plan import FORMAT, Plan, check_format, known
from rollbook.stats.two_samples import welch
from rollbook.stats.verdict import Verdict
from rollbook.system.brief import brief


@brief
@dataclass(frozen=True)
class Look:
    """One look at one pair that could have decided.

    Attributes:
      a, b: the two arms.
      n_a, n_b: seeds of each, failed ones included; if paired, the pairs.
      p: the larger p of both tests.
      limit: what it must not exceed.
      better: the arm that won; None: not decided.
    """

    a: str
    b: str
    n_a: int
    n_b: int
    p: float
    limit: float
    better: str | None

    @property
    def information(self) -> float:
        """How much information the seeds have about a difference: half their number if the arms are equal."""
        return 1 / (1 / self.n_a + 1 / self.n_b)


@brief
@dataclass(frozen=True)
class Study:
    """A plan and its looks so far. Immutable; `look` returns a new study.

    Attributes:
      plan: how arms are compared; by default each with each, without a planned end.
      looks: in the order in which they were taken.
      verdicts: the present verdict for each pair; () before the first look.
    """

    plan: Plan = field(default_factory=Plan)
    looks: tuple[Look, ...] = ()
    verdicts: tuple[Verdict, ...] = ()

    def look(
        self,
        scores: Mapping[str, ArrayLike],
        *,
        seeds: Mapping[str, Sequence[object]] | None = None,
        floors: Sequence[float] | None = None,
        common_scale: bool = True,
        pairs: Sequence[tuple[str, str]] | None = None,
    ) -> Study:
        """Look at the scores of all seeds that have ended; leave out running ones.

        A look counts if it could decide and there is more information than at the last one. Another look at the same
        seeds costs nothing; nor does one at fewer than four seeds, or at so few that no scores of them could decide.

        Args:
          scores: arm -> [seeds] or [seeds, tasks], in any order; -inf (inf if lower is better) where a seed failed.
          seeds: arm -> [seeds] names, by which they are paired; only for a paired plan.
          floors: [tasks], instead of the plan's `floor`.
          common_scale: whether scores of several tasks are on one scale; see `judge`.
          pairs: those to look at; None: all of the plan.

        Returns:
          The study with this look.

        Raises:
          BadInput: an arm that the plan does not have, NaN, or a paired plan without `seeds`.
        """
        given = dict(scores)
        unknown = [arm for arm in given if self.plan.arms and arm not in self.plan.arms]
        if unknown:
            raise BadInput(
                f"the plan compares {', '.join(self.plan.arms)}; {unknown[0]!r} is not among them. "
                "A new group needs a new plan"
            )
        if self.plan.against is not None and self.plan.against not in (self.plan.arms or given):
            raise BadInput(f"against={self.plan.against!r}: there is no such group among {', '.join(given)}.")
        arms = {arm: self._oriented(given.get(arm, ()), arm) for arm in self.plan.arms or given}
        sign = -1 if self.plan.lower_is_better else 1
        given_floor = self.plan.floor if floors is None else floors
        how = {"floor": None if given_floor is None else sign * np.asarray(given_floor), "common_scale": common_scale}
        found = {
            (a, b): self._tested(a, b, arms, seeds, how)
            for a, b in (self.plan.pairs(tuple(arms)) if pairs is None else pairs)
        }
        won: dict[tuple[str, str], Verdict] = {}
        while True:  # Holm's steps: a pair that is decided passes its share of the error on
            left = max(len(found) - len(won), 1)
            fresh = {
                pair: verdict
                for pair, tested in found.items()
                if pair not in won and (verdict := self._judged(tested, left)).better is not None
            }
            if not fresh:
                break
            won |= fresh
        left = max(len(found) - len(won), 1)
        verdicts = [won.get(pair) or self._judged(tested, left) for pair, tested in found.items()]
        looks = [*self.looks]
        for verdict in verdicts:
            if verdict.outcome in ("better", "not decided", "no difference larger than delta", "plan over"):
                fresh_look = Look(
                    verdict.a,
                    verdict.b,
                    verdict.n_a,
                    verdict.n_b,
                    verdict.p or 0.0,
                    verdict.limit or 0.0,
                    verdict.better,
                )
                before = self._of(verdict.a, verdict.b)
                if all(fresh_look.information > one.information for one in before):
                    looks.append(fresh_look)
        return replace(self, looks=tuple(looks), verdicts=tuple(verdicts))

    def verdict(self, a: str, b: str) -> Verdict:
        """The verdict about two arms, in either order.

        Args:
          a, b: names of arms.
        Raises:
          BadInput: they are not compared, or were not looked at yet.
        """
        for verdict in self.verdicts:
            if {verdict.a, verdict.b} == {a, b}:
                return verdict
        raise BadInput(f"{a!r} and {b!r} are not compared, or were not looked at yet.")

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON: the plan and the looks."""
        return {"format": FORMAT, "plan": self.plan.as_data(), "looks": [asdict(look) for look in self.looks]}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Study:
        """The study from the output of `as_data`.

        Args:
          data: an earlier result of `as_data`.
        Raises:
          BadInput: the data is not a study, or is from another version.
        """
        check_format(data, "study")
        looks = tuple(Look(**known(Look, look, "look")) for look in data.get("looks", ()))
        return cls(Plan.from_data(data["plan"]), looks)

    def _of(self, a: str, b: str) -> list[Look]:
        return [look for look in self.looks if {look.a, look.b} == {a, b}]

    def _oriented(self, values: ArrayLike, arm: str) -> Floats:
        array = floats(values, f"scores[{arm!r}]")
        array = array[:, None] if array.ndim == 1 else array
        return -array if self.plan.lower_is_better else array

    def _tested(
        self,
        a: str,
        b: str,
        arms: Mapping[str, Floats],
        seeds: Mapping[str, Sequence[object]] | None,
        how: dict[str, Any],
    ) -> _Pair:
        of_a, of_b = arms[a], arms[b]
        if self.plan.paired:
            if seeds is None:
                raise BadInput("A paired plan needs seeds=: the names by which equal seeds are found.")
            of_a, of_b = _matched(of_a, seeds.get(a, ()), of_b, seeds.get(b, ()))
        tested = judge(of_a, of_b, paired=self.plan.paired, **how) if len(of_a) and len(of_b) else None
        return _Pair(a, b, of_a, of_b, tested)

    def _judged(self, pair: _Pair, left: int) -> Verdict:
        """The verdict about a pair if `left` pairs share the error."""
        tested = pair.tested
        before = sorted({look.information for look in self._of(pair.a, pair.b) if look.better is None})
        all_failed = pair.failed_a == len(pair.a_RT) and pair.failed_b == len(pair.b_RT)
        if tested is None or min(tested.n_a, tested.n_b) < 1 or all_failed:
            return Verdict(
                pair.a,
                pair.b,
                "no scores",
                None,
                len(pair.a_RT),
                len(pair.b_RT),
                pair.failed_a,
                pair.failed_b,
                pairs=left,
                enough=self.plan.first_look(left, before),
                plan=self.plan,
            )
        spending = _ErrorSpending.of_look(self.plan, tested, before, left)
        judged = self._undecided(pair, tested, spending)
        if tested.equal:
            return replace(judged, outcome="all equal")
        if spending.could_decide and not spending.plan_is_over and tested.side and tested.p <= spending.limit:
            a_wins = tested.side > 0
            holds = None if self.plan.paired else holds_with_one_more_failure(pair.a_RT, pair.b_RT, a_wins)
            return replace(judged, outcome="better", better=pair.a if a_wins else pair.b, holds=holds)
        return self._not_better(judged, pair, tested, spending)

    def _undecided(self, pair: _Pair, tested: Tested, spending: _ErrorSpending) -> Verdict:
        """What the tests of a pair say; the outcome is still open."""
        ahead = {1: pair.a, -1: pair.b}.get(tested.ahead)
        sign = -1 if self.plan.lower_is_better else 1
        return Verdict(
            pair.a,
            pair.b,
            "not decided",
            None,
            tested.n_a,
            tested.n_b,
            pair.failed_a,
            pair.failed_b,
            ahead=ahead,
            won=tested.won if tested.ahead >= 0 else tested.of - tested.won,
            of=tested.of,
            p=tested.p,
            limit=spending.limit,
            look=len(spending.past) + 1,
            pairs=spending.left,
            any_shape=tested.any_shape,
            unseen=unseen_share(tested.n_b if ahead == pair.b else tested.n_a),
            difference=sign * tested.difference,
            mean_side=None if tested.difference == 0 else pair.a if tested.difference > 0 else pair.b,
            p_ranks=tested.p_ranks,
            p_means=tested.p_means,
            best=_often(pair, sign),
            plan=self.plan,
        )

    def _not_better(self, judged: Verdict, pair: _Pair, tested: Tested, spending: _ErrorSpending) -> Verdict:
        """Why neither arm is better, and how many seeds would decide. What more seeds cannot change comes first."""
        plan, n = self.plan, min(tested.n_a, tested.n_b)
        earlier = self._of(pair.a, pair.b)
        undone = next((look.better for look in reversed(earlier) if look.better is not None), None)
        judged = replace(judged, undone=undone, enough=plan.first_look(spending.left, spending.spent, n))
        if n < FEWEST:
            return replace(judged, outcome="too few seeds")
        if plan.delta is not None and pair.a_RT.shape[1] == 1 and not pair.failed_a + pair.failed_b and not plan.paired:
            low, high, alike = _within(pair.a_RT[:, 0], pair.b_RT[:, 0], plan, spending.limit, spending.now)
            low, high = (-high, -low) if plan.lower_is_better else (low, high)
            judged = replace(judged, low=low, high=high)
            if alike:
                return replace(judged, outcome="no difference larger than delta")
        if spending.plan_is_over or (plan.seeds is not None and spending.now >= plan.seeds / 2):
            return replace(judged, outcome="plan over", enough=None)
        if not spending.could_decide:
            return replace(judged, outcome="cannot decide")
        more = seeds_to_decide(
            tested.won / tested.of,
            lambda each: plan.limit([one for one in spending.spent if one < each / 2], each / 2, spending.left),
            judged.enough,
            plan.seeds or 200,
            plan.paired,
            pairs=tested.of,
        )
        return replace(judged, more=more)


@dataclass(frozen=True)
class _ErrorSpending:
    """How much of the error the earlier looks at a pair have spent, and what this one may spend.

    Attributes:
      left: the pairs that share the error.
      past: the information of the earlier looks that did not decide and had less than this one, increasing.
      now: the information of this look.
      limit: what its p must not exceed.
      plan_is_over: whether an earlier look was at the plan's end.
      could_decide: whether the clearest result of so many seeds could pass the limit.
    """

    left: int
    past: list[float]
    now: float
    limit: float
    plan_is_over: bool
    could_decide: bool

    @classmethod
    def of_look(cls, plan: Plan, tested: Tested, before: Sequence[float], left: int) -> _ErrorSpending:
        """That of a look after looks with the information `before`."""
        now = max(1 / (1 / tested.n_a + 1 / tested.n_b), *before, 0.0)
        past = [each for each in before if each < now]
        limit = plan.limit(past, now, left)
        is_over = plan.seeds is not None and bool(past) and past[-1] >= plan.seeds / 2
        could = least_p(tested.n_a, tested.n_b, plan.paired) <= limit and min(tested.n_a, tested.n_b) >= FEWEST
        return cls(left, past, now, limit, is_over, could)

    @property
    def spent(self) -> list[float]:
        """The looks that have spent some of the error after this one; one that could not decide spends nothing."""
        return [*self.past, self.now] if self.could_decide else self.past


@dataclass(frozen=True)
class _Pair:
    """Two arms, higher is better, and the tests of them; None if one has no seed."""

    a: str
    b: str
    a_RT: Floats
    b_RT: Floats
    tested: Tested | None

    @property
    def failed_a(self) -> int:
        """How many seeds of a failed in at least one task."""
        return int(np.isneginf(self.a_RT).any(axis=1).sum())

    @property
    def failed_b(self) -> int:
        """How many seeds of b failed in at least one task."""
        return int(np.isneginf(self.b_RT).any(axis=1).sum())


def _often(pair: _Pair, sign: int) -> float | None:
    """The best score of a task, if at least half of all seeds have it."""
    if pair.a_RT.shape[1] != 1:
        return None
    every = np.concatenate([pair.a_RT[:, 0], pair.b_RT[:, 0]])
    best = float(every.max())
    return sign * best if math.isfinite(best) and 2 * int((every == best).sum()) >= len(every) else None


def _matched(a_RT: Floats, seeds_a: Sequence[object], b_RT: Floats, seeds_b: Sequence[object]) -> tuple[Floats, Floats]:
    """The rows of the seeds that both arms have, in the same order; a seed that an arm has twice counts once."""
    of_a, of_b = (
        {seed: row for seed, row in zip(seeds, rows, strict=True) if seed is not None}
        for seeds, rows in ((seeds_a, a_RT), (seeds_b, b_RT))
    )
    both = [seed for seed in of_a if seed in of_b]
    tasks = a_RT.shape[1] if a_RT.ndim == 2 else 1
    return (np.array([of[seed] for seed in both]).reshape(len(both), tasks) for of in (of_a, of_b))  # type: ignore[return-value]


def _within(a: Floats, b: Floats, plan: Plan, limit: float, now: float) -> tuple[float, float, bool]:
    """The interval of the difference of means that holds over all looks, and whether it is inside of delta.

    At the end of a plan a last test asks only for the ends that matter: one test at 5 % a side.
    """
    of_means = welch(a, b)
    delta = float(plan.delta or 0)
    reach = _reach(limit, of_means.freedom) * of_means.error
    low, high = of_means.difference - reach, of_means.difference + reach
    if of_means.error > 0 and -delta < low and high < delta:
        return low, high, True
    if plan.seeds is not None and now >= plan.seeds / 2 and of_means.error > 0:
        narrow = _reach(0.10, of_means.freedom) * of_means.error
        if abs(of_means.difference) + narrow < delta:
            return of_means.difference - narrow, of_means.difference + narrow, True
    return low, high, False


def _reach(level: float, freedom: float) -> float:
    """The two-sided t quantile: the number of standard errors to each side."""
    return float(stdtrit(min(freedom, 1e9), 1 - level / 2)) if level > 1e-15 else math.inf
