"""The verdict about two groups, as data and as a sentence. No other module makes these sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from rollbook.stats.judging import FEWEST
from rollbook.stats.plan import Plan
from rollbook.system.brief import brief
from rollbook.system.texts import amount, quantity


@brief
@dataclass(frozen=True)
class Verdict:
    """The verdict about two arms at this look.

    Attributes:
      a, b: the two arms.
      outcome: "better" (one of them is), "no difference larger than delta", "not decided", "plan over" (undecided
        at its end), "cannot decide" (no scores of so few seeds could), "all equal", "too few seeds" or "no scores".
      better: the name of the winner, or None.
      n_a, n_b: seeds of each, failed ones included; if paired, the pairs.
      failed_a, failed_b: how many of them failed; over several tasks, in at least one.
      ahead: the arm that wins more pairs of seeds; None if neither does.
      won, of: how many pairs of seeds it wins (ties count half, several tasks are averaged), and how many there are.
      p: the larger of `p_ranks` and `p_means`, two-sided.
      limit: what p must not exceed at this look, for this pair.
      look: the number of this look: 1 and the looks before it that did not decide.
      pairs: that share the error.
      any_shape: a bound on the p of `won` at one look that holds whatever the shapes of the two arms.
      holds: whether the winner would still be ahead at 5 % with one more failed seed; None without a winner.
      unseen: the share of failing seeds that the seeds of the winner (or of the arm ahead) can have missed, at 5 %.
      enough: the fewest seeds of each that can decide at the next look; None if none can.
      more: seeds of each that decide with a chance of 80 % if the difference is as it looks now; None: above 200, or
        beyond the end of the plan, or not known.
      difference: of the means, a minus b; NaN if unknown. Failed seeds count as the floor or the worst score.
      low, high: with `delta`, the interval of the difference that holds over all looks; else None.
      best: the best score, if at least half of all seeds have it (a task of one score each); else None.
      undone: the arm that won at an earlier look; None if it still does, or none did.
      mean_side: the arm with the better mean; None if equal.
      p_ranks, p_means: two-sided p of the two tests.
      plan: how they are compared.
    """

    a: str
    b: str
    outcome: str
    better: str | None = None
    n_a: int = 0
    n_b: int = 0
    failed_a: int = 0
    failed_b: int = 0
    ahead: str | None = None
    won: float = 0.0
    of: int = 0
    p: float | None = None
    limit: float | None = None
    look: int = 1
    pairs: int = 1
    any_shape: float | None = None
    holds: bool | None = None
    unseen: float | None = None
    enough: int | None = None
    more: int | None = None
    difference: float = math.nan
    low: float | None = None
    high: float | None = None
    best: float | None = None
    undone: str | None = None
    mean_side: str | None = None
    p_ranks: float | None = None
    p_means: float | None = None
    plan: Plan = field(default_factory=Plan, repr=False)

    @property
    def n(self) -> int:
        """Seeds of the smaller arm."""
        return min(self.n_a, self.n_b)

    def sentence(self) -> str:
        """The answer, how sure it is, and what would change it."""
        return _sentence(self)

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON, with the sentence; numbers that are not finite are None."""
        data = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "plan"}
        data = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in data.items()}
        return {**data, "sentence": self.sentence()}


TRAIN_MORE = ("not decided", "cannot decide", "too few seeds", "no scores")
"""The outcomes that more seeds may change."""


def _sentence(verdict: Verdict) -> str:
    """The whole answer about a pair."""
    return " ".join(filter(None, (statement(verdict), outlook(verdict), best_given(verdict))))


def remark(verdict: Verdict) -> str:
    """The answer about a pair in words for every reader: without the option that `best_given` names."""
    return " ".join(filter(None, (statement(verdict), outlook(verdict))))


def remark_of(data: Mapping[str, Any]) -> str:
    """The `remark` of a verdict that was stored as `Verdict.as_data`."""
    best, sentence = data.get("best"), str(data["sentence"])
    return sentence if best is None else sentence.removesuffix(_steps_to(best)).rstrip()


def statement(verdict: Verdict) -> str:
    """What is so and how sure it is, without advice: for pictures, which are shown without their program."""
    return _STATEMENTS[verdict.outcome](verdict)


def outlook(verdict: Verdict) -> str:
    """How many seeds would decide; "" for a final verdict."""
    v = verdict
    if v.outcome == "too few seeds":
        among = f" to decide among {v.pairs} pairs of groups" if v.pairs > 1 else ""
        return f"At least {v.enough or FEWEST} {_unit(v)}s of each are needed{among}."
    if v.outcome == "cannot decide":
        if v.enough is None:
            return "No further look of this plan can."
        return f"{v.enough} can." if v.plan.paired else f"{v.enough} of each can."
    if _has_best(v):
        equal = v.outcome == "all equal"
        many = "" if equal else f"At least half of all seeds have the score {v.best:g}. "
        given = "this is the best the task can give" if equal else "the task gives no better one"
        return f"{many}If {given}, compare the steps needed to reach it."
    if v.outcome != "not decided" or _is_split(v):
        return ""
    if v.more is not None:
        return f"If the difference is as it looks now, {v.more} {_unit(v)}s of each decide with a chance of 80 %."
    end = f"the {v.plan.seeds} of the plan" if v.plan.seeds is not None else f"200 {_unit(v)}s of each"
    return f"If the difference is as it looks now, {end} are not enough for a chance of 80 %."


def _has_best(v: Verdict) -> bool:
    """Whether most seeds have one score, which may be the best that the task can give."""
    return v.outcome in ("all equal", "not decided") and v.best is not None


def best_given(verdict: Verdict) -> str:
    """How to compare the steps to the best score; "" if there is none that most seeds have."""
    return _steps_to(verdict.best) if _has_best(verdict) and verdict.best is not None else ""


def _steps_to(best: float) -> str:
    return f'--score "steps to {best:g}" compares them.'


def cannot(verdict: Verdict, against_one: int = 0) -> str:
    """What is so for all pairs that cannot be decided, once, and what would change it.

    Args:
      verdict: one of them.
      against_one: how many pairs there would be if each group were compared with one alone; 0: no such advice.
    """
    v = verdict
    few = v.outcome == "too few seeds"
    among = f"among {amount(v.pairs, 'pair')} of groups"
    words = (
        f"No verdict {among} from {_counts(v)}" if few else f"{_counts(v)} cannot decide {among}, whatever they score"
    )
    ways = [f"it takes {v.enough} of each" if few else f"{v.enough} of each can"] if v.enough is not None else []
    if against_one and against_one < v.pairs and v.n >= FEWEST:
        ways.append(f"so can fewer pairs: --against GROUP compares each group with one alone ({against_one} pairs)")
    return f"{words}{': ' if ways else ''}{'; '.join(ways)}."


def short(verdict: Verdict) -> str:
    """Which arm is ahead, after a sentence that nothing can be decided."""
    v = verdict
    if v.ahead is None or v.p is None:
        return f"{v.a} and {v.b}: neither is ahead."
    return f"{v.ahead} is ahead of {_other(v, v.ahead)}: it wins {_pairs(v)} (p {_equals(v.p)} alone)."


def better_than(verdicts: Sequence[Verdict]) -> str:
    """The arms that one arm is better than, in one sentence for many pairs."""
    winner = verdicts[0].better or ""
    losers = ", ".join(_other(v, winner) for v in verdicts)
    at_most = "at most " if len(verdicts) > 1 else ""
    lower = ", lower is better" if verdicts[0].plan.lower_is_better else ""
    words = f"{winner} is better than {losers} (p {at_most}{number(max(v.p or 0.0 for v in verdicts))}{lower})."
    lost = ", ".join(_other(v, winner) for v in verdicts if v.holds is False)
    if verdicts[0].holds is None:
        return words
    return (
        f"{words} It would {f'not be so of {lost}' if lost else 'still be so'} if one more seed of {winner} had failed."
    )


def undecided(verdicts: Sequence[Verdict], of: int) -> str:
    """How many of many pairs are not decided, and how near they are to it."""
    p = [v.p for v in verdicts if v.p is not None]
    limits = [v.limit for v in verdicts if v.limit is not None]
    near = f" (p {number(min(p))} or more; {number(max(limits))} or less decides)" if p and limits else ""
    return f"Not decided: {len(verdicts)} of {of} pairs{near}."


def unseen(seeds: int, share: float) -> str:
    """What no test can know, once for an answer."""
    return (
        f"What no test can tell: a failure that strikes up to {100 * share:.0f} % of seeds can have been missed by "
        f"{seeds} of them."
    )


def _better(v: Verdict) -> str:
    winner = v.better or ""
    how = _ahead(v, winner)
    shapes = (
        f", at most {number(v.any_shape)} even if their scores spread differently" if v.any_shape is not None else ""
    )
    words = f"{winner} is better than {_other(v, winner)}: {how} ({_p(v, shapes)})."
    if v.holds is not None:
        words += f" It would {'still' if v.holds else 'not'} be so if one more seed of {winner} had failed."
    return words


def _not_decided(v: Verdict) -> str:
    words = f"{v.a} and {v.b}: not decided."
    if v.undone is not None:
        words = f"{v.a} and {v.b}: not decided any more; with fewer seeds {v.undone} was better."
    if v.ahead is None:
        return f"{words} Neither is ahead: each wins {_pairs(v)} ({_p(v)})."
    if _is_split(v):
        return (
            f"{words} {v.ahead} wins {_pairs(v)}, but {v.mean_side} has the better mean: a few seeds far from the "
            "others make it. Look at the seeds."
        )
    if v.p_ranks is not None and v.limit is not None and v.p_ranks <= v.limit:
        return (
            f"{words} {v.ahead} wins {_pairs(v)}, but a few seeds far from the others make most of the difference of "
            f"the means ({_p(v)}). Look at the seeds."
        )
    return f"{words} {v.ahead} is ahead: it wins {_pairs(v)} ({_p(v)})."


def _is_split(v: Verdict) -> bool:
    """Whether ranks and means name different arms."""
    return v.ahead is not None and v.mean_side is not None and v.ahead != v.mean_side


def _cannot_decide(v: Verdict) -> str:
    many = f" among {v.pairs} pairs of groups" if v.pairs > 1 else ""
    late = f" at look {v.look}" if v.look > 1 else ""
    plan = f" by a plan of {v.plan.seeds}" if v.plan.seeds is not None else ""
    return (f"{v.a} and {v.b}: {_counts(v)} cannot decide{many}{late}{plan}, whatever they score. {_leads(v)}").rstrip()


def _too_few(v: Verdict) -> str:
    return f"{v.a} and {v.b}: no verdict from {_counts(v)}. {_leads(v)}".rstrip()


def _no_scores(v: Verdict) -> str:
    if v.plan.paired and v.n_a == v.n_b == 0:
        return f"{v.a} and {v.b}: no verdict; they have no seed in common."
    without = [name for name, n in ((v.a, v.n_a - v.failed_a), (v.b, v.n_b - v.failed_b)) if not n]
    which = f"{without[0]} has no" if len(without) == 1 else "neither has a"
    return f"{v.a} and {v.b}: no verdict; {which} finished seed with a score."


def _all_equal(v: Verdict) -> str:
    what = f"all {v.n_a + v.n_b} scores are {v.best:g}" if v.best is not None else "all scores are equal"
    return f"{v.a} and {v.b}: no difference seen: {what}."


def _within_delta(v: Verdict) -> str:
    delta, low, high = (quantity(end or 0.0) for end in (v.plan.delta, v.low, v.high))
    return (
        f"{v.a} and {v.b}: no difference of the means larger than {delta}: it lies between {low} and {high} "
        f"({v.n_a} and {v.n_b} seeds)."
    )


def _plan_over(v: Verdict) -> str:
    return f"{_not_decided(v)} The plan of {v.plan.seeds} seeds is over; new seeds need a new plan."


_STATEMENTS: dict[str, Callable[[Verdict], str]] = {
    "better": _better,
    "not decided": _not_decided,
    "cannot decide": _cannot_decide,
    "too few seeds": _too_few,
    "no scores": _no_scores,
    "all equal": _all_equal,
    "no difference larger than delta": _within_delta,
    "plan over": _plan_over,
}


def _other(v: Verdict, one: str) -> str:
    return v.b if one == v.a else v.a


def _unit(v: Verdict) -> str:
    return "seed pair" if v.plan.paired else "seed"


def _ahead(v: Verdict, winner: str) -> str:
    """By how many pairs of seeds the winner is ahead."""
    side = "below" if v.plan.lower_is_better else "above"
    n_winner, n_other = (v.n_a, v.n_b) if winner == v.a else (v.n_b, v.n_a)
    if v.won == v.of and not v.plan.paired and not (v.failed_a or v.failed_b):
        lower = ", and lower is better" if v.plan.lower_is_better else ""
        return f"each of its {n_winner} seeds scores {side} each of {_other(v, winner)}'s {n_other}{lower}"
    return f"it wins {_pairs(v)}"


def _pairs(v: Verdict) -> str:
    what = "seeds" if v.plan.paired else "pairs of seeds"
    return f"{v.won:.4g} of {v.of} {what}{', lower is better' if v.plan.lower_is_better else ''}"


def _leads(v: Verdict) -> str:
    return f"So far {v.ahead} wins {_pairs(v)}." if v.ahead else ""


def _p(v: Verdict, bound: str = "") -> str:
    """p, and what it must not exceed."""
    if v.p is None or v.limit is None:
        return ""
    why = [f"look {v.look}"] if v.look > 1 else []
    why += [f"{v.pairs} pairs of groups"] if v.pairs > 1 else []
    why += [f"a plan of {v.plan.seeds} seeds"] if v.plan.seeds is not None else []
    with_ = f" at {' and '.join(why)}" if why else ""
    return f"p {_equals(v.p)}{bound}; {number(v.limit)} or less decides{with_}"


def _equals(p: float) -> str:
    return f"= {number(p)}" if p >= 1e-4 else "< 0.0001"


def number(p: float) -> str:
    """A p-value in two digits."""
    return f"{p:.2g}" if p >= 1e-4 else f"{p:.1g}"


def _counts(v: Verdict) -> str:
    """How many seeds there are: "5 seeds of each", "5 and 3 seeds"."""
    if v.n_a == v.n_b:
        return f"{amount(v.n_a, _unit(v))} of each" if not v.plan.paired else amount(v.n_a, _unit(v))
    return f"{v.n_a} and {v.n_b} {_unit(v)}s"
