"""Is A better than B? What a verdict says of the cases that users have, and what may not change it."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import examples, some_of
from rollbook import compare
from rollbook.errors import BadInput
from rollbook.stats import (
    Look,
    Plan,
    Study,
    Verdict,
    any_shape,
    detectable,
    fewest_that_decide,
    holds_with_one_more_failure,
    judge,
    least_p,
    open_ended,
    power_to_decide,
    seeds_for_difference,
    seeds_to_decide,
    unseen_share,
)
from rollbook.stats.verdict import short

BAD = -math.inf
PPO, DQN = [500.0, 487, 402, 398, 383], [291.0, 230, 165, 120, 110]


def of(a: Any, b: Any, *others: Any, looked: tuple[int, ...] = (), **plan: Any) -> Verdict:
    """The verdict about a and b beside other groups, after undecided looks at so many seeds of each."""
    before = tuple(Look("a", "b", n, n, 0.5, 0.03, None) for n in looked)
    arms = {"a": a, "b": b, **{f"c{n}": other for n, other in enumerate(others)}}
    return Study(Plan(**plan), before).look(arms).verdict("a", "b")


def ask(*arms: Any, **plan: Any) -> Callable[[], Verdict]:
    """The same when a test asks for it: each worker imports this file."""
    return functools.partial(of, *arms, **plan)


def far(times: int) -> list[float]:
    return [times * 10_000.0 + n for n in range(5)]


# case, verdict, outcome, winner, pairs of seeds won, p (by hand or by counting splits), holds with one more failure
CASES: list[tuple[str, Callable[[], Verdict], str, str | None, float, float, bool | None]] = [
    ("five, apart: 2 of 252 splits", ask(PPO, DQN), "better", "a", 25, 2 / 252, False),
    ("four, apart: 2 of 70", ask(PPO[:4], DQN[:4]), "better", "a", 16, 2 / 70, False),
    ("three, apart", ask(PPO[:3], DQN[:3]), "too few seeds", None, 9, 2 / 20, None),
    ("one each", ask([500.0], [230.0]), "too few seeds", None, 1, 1.0, None),
    ("two each", ask([500.0, 487], [230.0, 165]), "too few seeds", None, 4, 2 / 6, None),
    ("five, one inversion", ask([*PPO[:4], 280], DQN), "better", "a", 24, 4 / 252, False),
    ("five, two inversions", ask([500, 487, 402, 298, 280], [291, 285, 165, 120, 110]),
     "not decided", None, 23, 8 / 252, None),
    ("five, a leader's seed failed", ask([*PPO[:4], 9], DQN), "not decided", None, 20, 38 / 252, None),
    ("six, apart: 2 of 924", ask([*PPO, 380], [*DQN, 100]), "better", "a", 36, 2 / 924, True),
    ("ten, apart but four pairs", ask(range(9, 19), [1, 2, 3, 4, 5, 6, 7, 8, 9.5, 11.5]),
     "better", "a", 96, 0.00013, True),
    ("ten, overlapping", ask(range(9, 19), [5, 6, 7, 8, 10.5, 11.5, 12.5, 9.5, 16.5, 4]),
     "better", "a", 82, 0.0147, False),
    ("ceiling, both", ask([500] * 5, [500] * 5), "all equal", None, 12.5, 1.0, None),
    ("ceiling, one of them nearly", ask([500] * 5, [500, 500, 500, 430, 480]),
     "not decided", None, 17.5, 112 / 252, None),
    ("ceiling, one of them", ask([500] * 5, [499, 470, 499.5, 430, 480]), "better", "a", 25, 2 / 252, False),
    ("two constants", ask([200] * 5, [190] * 5), "better", "a", 25, 2 / 252, False),
    ("two of the loser crashed", ask(PPO, [391, 230, 165, BAD, BAD]), "better", "a", 24, 4 / 252, False),
    ("one of the leader crashed", ask([*PPO[:4], BAD], DQN), "not decided", None, 20, 38 / 252, None),
    ("the second look", ask(range(20, 30), range(5, 15), looked=(5,)), "better", "a", 100, 2 / 184_756, True),
    ("three groups of five: 0.01 decides", ask(PPO, DQN, far(1)), "better", "a", 25, 2 / 252, False),
    ("four groups of five: six pairs", ask(PPO, DQN, far(1), far(2)), "cannot decide", None, 25, 2 / 252, None),
    (
        "a loss, eight and six",
        ask([0.1, 0.12, 0.11, 0.13, 0.1, 0.09, 0.12, 0.14], [0.2, 0.22, 0.19, 0.3, 0.25, 0.135], lower_is_better=True),
        "better", "a", 47, 0.000999, True,
    ),
    ("ranks and means disagree", ask(range(10, 20), [5, 6, 7, 8, 9, 9.5, 9.6, 9.7, 9.8, 900]),
     "not decided", None, 90, 1.0, None),
    ("ranks decide, means do not", ask(range(10, 20), [5, 6, 7, 8, 9, 9.5, 9.6, 9.7, 9.8, 30]),
     "not decided", None, 90, 0.099, None),
    ("a baseline of twenty and four", ask([30, 31, 32, 33], range(1, 21)), "better", "a", 80, 2 / 10_626, True),
    # twenty more
    ("B wins", ask(DQN, PPO), "better", "b", 25, 2 / 252, False),
    ("no seed of one", ask(PPO, []), "no scores", None, 0, math.nan, None),
    ("neither ahead", ask([1, 2, 3, 4], [1, 2, 3, 4]), "not decided", None, 8, 1.0, None),
    ("all of both crashed", ask([BAD] * 5, [BAD] * 5), "no scores", None, 0, 1.0, None),
    ("all of one crashed: no mean to compare but the worst", ask([5, 6, 7, 8], [BAD] * 4),
     "better", "a", 16, 2 / 70, True),
    ("crashed below the worst finished", ask([9, 8, 7, 6, 5], [4, BAD, 4, BAD, 4]), "better", "a", 25, 2 / 252, True),
    ("a floor far below makes the means unsure", ask([9, 8, 7, 6, 5, BAD], [4, 3, 2, 1, 0, -1], floor=-1000),
     "not decided", None, 30, 1.0, None),
    ("scores of 0 and 1", ask([1] * 8, [0] * 8), "better", "a", 64, 2 / 12_870, True),
    ("0 and 1, three of eight against none", ask([1, 1, 1, 0, 0, 0, 0, 0], [0] * 8),
     "not decided", None, 44, 0.2, None),
    ("huge numbers", ask([1e300, 1.1e300, 1.2e300, 1.3e300], [1e290, 2e290, 3e290, 4e290]),
     "better", "a", 16, 2 / 70, False),
    ("tiny differences", ask([1 + 1e-12 * n for n in range(5, 10)], [1 + 1e-12 * n for n in range(5)]),
     "better", "a", 25, 2 / 252, False),
    ("five and four, apart: 2 of 126", ask(PPO, DQN[:4]), "better", "a", 20, 2 / 126, False),
    ("five and three", ask(PPO, DQN[:3]), "too few seeds", None, 15, 2 / 56, None),
    ("the look after an undecided one at 5 is stricter", ask([9, 8, 7, 6, 4.5, 3.5], [5, 4, 3, 2, 1, 0], looked=(5,)),
     "not decided", None, 33, 14 / 924, None),
    ("one lucky seed", ask([100, 1, 1.1, 1.2, 1.3], [1.4, 0.9, 0.8, 0.7, 0.6]), "not decided", None, 21, 0.1, None),
    ("negative scores", ask([-1, -2, -3, -4, -5], [-6, -7, -8, -9, -10]), "better", "a", 25, 2 / 252, False),
    ("against one group of four: three pairs", ask(PPO, DQN, far(1), far(2), against="a"),
     "better", "a", 25, 2 / 252, False),
    ("a plan of five, at its end: 0.05 decides", ask([500, 487, 402, 298, 280], [291, 285, 165, 120, 110], seeds=5),
     "better", "a", 23, 8 / 252, False),
    ("a plan of ten, at five", ask(PPO, DQN, seeds=10), "cannot decide", None, 25, 2 / 252, None),
    ("means within delta", ask(np.linspace(0, 1, 20), np.linspace(0.01, 1.01, 20), delta=5.0),
     "no difference larger than delta", None, 210, 0.9, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "verdict", "outcome", "better", "won", "p", "holds"), CASES, ids=[c[0] for c in CASES]
)
def test_the_verdict_of(
    case: str,
    verdict: Callable[[], Verdict],
    outcome: str,
    better: str | None,
    won: float,
    p: float,
    holds: bool | None,
) -> None:
    found = verdict()
    assert (found.outcome, found.better, found.holds) == (outcome, better, holds)
    if outcome == "no scores":
        return
    assert found.won == pytest.approx(won)
    if p < 0.05 or p == 1.0:
        assert found.p == pytest.approx(p, rel=0.35 if "floor" in case else 0.01, abs=2.5e-5)
    words = found.sentence()
    assert ("is better than" in words) == (better is not None)
    assert words.endswith(".")
    for mystery in ("evidence", "nominal", "repeated interval", "95 %", "≈", "nan", "None"):
        assert mystery not in words
    json.dumps(found.as_data(), allow_nan=False)


def test_what_a_student_reads() -> None:
    assert of(PPO, DQN).sentence() == (
        "a is better than b: each of its 5 seeds scores above each of b's 5 (p = 0.0079, at most 0.062 even if their "
        "scores spread differently; 0.03 or less decides). It would not be so if one more seed of a had failed."
    )
    assert of(PPO[:3], DQN[:3]).sentence() == (
        "a and b: no verdict from 3 seeds of each. So far a wins 9 of 9 pairs of seeds. At least 4 seeds of each are "
        "needed."
    )
    assert of(PPO, DQN, far(1), far(2)).sentence() == (
        "a and b: 5 seeds of each cannot decide among 6 pairs of groups, whatever they score. So far a wins 25 of 25 "
        "pairs of seeds. 6 of each can."
    )
    assert (
        of([500, 487, 402, 298, 280], [291, 285, 165, 120, 110])
        .sentence()
        .startswith(
            "a and b: not decided. a is ahead: it wins 23 of 25 pairs of seeds (p = 0.032; 0.03 or less decides). If "
            "the difference is as it looks now, 8 seeds of each decide"
        )
    )
    assert 'the steps needed to reach it. --score "steps to 500" compares them.' in of([500] * 5, [500] * 5).sentence()
    assert "b has the better mean" in of(range(10, 20), [5, 6, 7, 8, 9, 9.5, 9.6, 9.7, 9.8, 900]).sentence()


SCORES = st.lists(st.integers(-30, 30).map(float) | st.just(BAD), min_size=4, max_size=7)


@settings(max_examples=examples(12))
@given(SCORES, SCORES, st.randoms(use_true_random=False))
def test_the_order_of_seeds_and_of_groups_plays_no_part(a: list[float], b: list[float], chance: Any) -> None:
    found = of(a, b)
    shuffled = of(chance.sample(a, len(a)), chance.sample(b, len(b)))
    assert shuffled == found
    turned = Study().look({"b": b, "a": a}).verdict("a", "b")
    assert (turned.better, turned.p, turned.limit, turned.won, turned.ahead) == (
        found.better,
        found.p,
        found.limit,
        found.won,
        found.ahead,
    )
    assert turned.difference == pytest.approx(
        -found.difference, nan_ok=True
    )  # none where a group has failed as a whole


@settings(max_examples=examples(12))
@given(SCORES, SCORES, st.sampled_from([0.5, 2.0, 64.0]), st.integers(-4, 4))
def test_units_play_no_part_and_negated_scores_swap_the_winner(
    a: list[float], b: list[float], scale: float, shift: int
) -> None:
    found = of(a, b)
    same = of(scale * np.array(a) + shift, scale * np.array(b) + shift)
    assert (same.better, same.won) == (found.better, found.won)
    assert same.p == pytest.approx(found.p)
    lower = Study(Plan(lower_is_better=True)).look({"a": -np.array(a), "b": -np.array(b)}).verdict("a", "b")
    assert (lower.better, lower.p, lower.won) == (found.better, found.p, found.won)


@settings(max_examples=examples(12))
@given(SCORES, SCORES)
def test_p_is_that_of_a_count_of_all_splits(a: list[float], b: list[float]) -> None:
    pooled = [x if x > BAD else -1000.0 for x in (*a, *b)]

    def wins(chosen: tuple[int, ...]) -> float:
        rest = [pooled[n] for n in range(len(pooled)) if n not in chosen]
        return sum((pooled[n] > y) + (pooled[n] == y) / 2 for n in chosen for y in rest) - len(a) * len(b) / 2

    seen = abs(wins(tuple(range(len(a)))))
    splits = list(itertools.islice(itertools.combinations(range(len(pooled)), len(a)), 4000))
    if len(splits) < 4000:
        assert judge(a, b).p_ranks == pytest.approx(np.mean([abs(wins(s)) >= seen - 1e-9 for s in splits]))


def test_another_look_at_the_same_seeds_costs_nothing_and_one_at_more_seeds_has_a_lower_limit() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.3, 1, 20), rng.normal(0, 1, 20)
    study = Study()
    limits = []
    for n in (5, 5, 10, 10, 20):
        study = study.look({"a": a[:n], "b": b[:n]})
        limits.append(study.verdict("a", "b").limit)
    assert limits == pytest.approx([0.03, 0.03, 0.016, 0.016, 0.0083], rel=0.01)
    assert [(look.n_a, look.better) for look in study.looks] == [(5, None), (10, None), (20, None)]
    assert study.verdict("a", "b").look == 3
    assert sum(limits[::2][:1] + limits[2::2]) > 0.05 > 0.03 + 0.01 + 0.005, "what looks share is not spent twice"


def test_looks_that_cannot_decide_are_no_looks() -> None:
    study = Study().look({"a": PPO[:3], "b": DQN[:3]}).look({"a": PPO, "b": DQN, "c": far(1), "d": far(2)})
    assert [{look.a, look.b} for look in study.looks if {look.a, look.b} == {"a", "b"}] == []
    assert study.look({"a": PPO, "b": DQN}).verdict("a", "b").limit == pytest.approx(0.03)


def test_a_look_that_decided_takes_nothing_from_later_ones_and_one_that_no_longer_decides_says_so() -> None:
    study = Study().look({"a": PPO, "b": DQN})
    assert study.verdict("a", "b").better == "a"
    again = study.look({"a": [*PPO, 5.0, 4.0], "b": [*DQN, 480.0, 470.0]})
    found = again.verdict("a", "b")
    assert (found.better, found.undone, found.limit, found.look) == (None, "a", pytest.approx(0.03), 1)
    assert found.sentence().startswith("a and b: not decided any more; with fewer seeds a was better.")


def test_looks_belong_to_a_pair_whatever_groups_stand_beside_it() -> None:
    study = Study().look({"a": [1, 2, 3, 4, 5], "b": [1, 2, 3, 4, 6]})
    beside = study.look({"c": far(1), "b": [1, 2, 3, 4, 6, 7, 8], "a": [1, 2, 3, 4, 5, 6, 7]})
    assert beside.verdict("a", "b").look == 2
    assert beside.verdict("a", "c").look == 1


def test_pairs_share_the_error_by_holms_steps() -> None:
    """Three pairs at 0.01, and a winner passes its share on: of four groups of six, apart, each pair is decided."""
    six = {name: [place * 100.0 + n for n in range(6)] for place, name in enumerate("abcd")}
    study = Study().look(six)
    assert all(verdict.better for verdict in study.verdicts)
    near = Study().look({"a": PPO, "b": DQN, "c": [500, 487, 402, 298, 280]})
    assert near.verdict("a", "b").pairs == 3
    assert {near.verdict("a", "b").better, near.verdict("b", "c").better} == {"a", None}
    assert near.verdict("a", "c").pairs == 2, "one pair is decided"
    assert Plan(seeds=10).limit((), 5.0, left=3) == pytest.approx(0.05 / 3), "as they do at the end of a plan"


@pytest.mark.parametrize(("n", "groups", "first"), [(4, 2, 4), (5, 3, 5), (5, 4, 6), (6, 6, 7), (6, 5, 6), (7, 10, 7)])
def test_the_fewest_seeds_that_can_decide_follow_from_the_number_of_pairs(n: int, groups: int, first: int) -> None:
    """2 / C(2n, n) against 0.03 / pairs: 0.029, 0.0079, 0.0022, 0.00058 at 4, 5, 6, 7."""
    pairs = math.comb(groups, 2)
    assert Plan().first_look(pairs) == first
    apart = {str(g): [1_000.0 * g + seed for seed in range(n)] for g in range(groups)}
    verdicts = Study().look(apart).verdicts
    assert {v.outcome for v in verdicts} == ({"better"} if n >= first else {"cannot decide"})


@pytest.mark.parametrize(("end", "first"), [(4, 4), (5, 5), (6, 5), (10, 6), (22, 8), (40, 10)])
def test_a_plan_takes_any_end_and_says_its_first_look_that_can_decide(end: int, first: int) -> None:
    plan = Plan(seeds=end)
    assert plan.first_look() == first
    apart = Study(plan)
    for n in (*range(3, min(first + 2, end)), end):
        apart = apart.look({"a": [100.0 + k for k in range(n)], "b": [0.0 + k for k in range(n)]})
        assert (apart.verdict("a", "b").better == "a") == (n >= first)


def test_after_its_end_a_plan_has_no_further_look() -> None:
    study = Study(Plan(seeds=6)).look({"a": [1, 4, 5, 8, 9, 12], "b": [2, 3, 6, 7, 10, 11]})
    assert study.verdict("a", "b").outcome == "plan over"
    more = study.look({"a": np.arange(9) + 100, "b": np.arange(9)})
    assert more.verdict("a", "b").outcome == "plan over"
    assert "new seeds need a new plan" in more.verdict("a", "b").sentence()


def test_a_study_comes_back_from_json_as_it_was_and_goes_on_alike() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.5, 1, 12), rng.normal(0, 1, 12)
    for plan in (Plan(), Plan(seeds=12, arms=("a", "b"), delta=0.5, floor=-2.0, note="x")):
        study = Study(plan).look({"a": a[:6], "b": b[:6]}).look({"a": a[:8], "b": b[:8]})
        back = Study.from_data(json.loads(json.dumps(study.as_data())))
        assert (back.plan, back.looks) == (study.plan, study.looks)
        assert back.look({"a": a, "b": b}) == study.look({"a": a, "b": b})


@pytest.mark.parametrize(
    "bad",
    [{"arms": ("a",)}, {"arms": ("a", "a")}, {"seeds": 3}, {"alpha": 0.7}, {"delta": -1.0}, {"floor": math.nan},
     {"arms": ("a", "b"), "against": "c"}],
)  # fmt: skip
def test_a_plan_that_cannot_be_kept_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Plan(**bad)


def test_a_plan_of_another_version_is_refused_by_name() -> None:
    for found, words in ((1, "Take a new name"), (9, "Update rollbook")):
        with pytest.raises(BadInput, match=words):
            Study.from_data({"format": found, "plan": {}, "looks": []})


def test_nan_and_groups_that_a_plan_does_not_have_are_refused() -> None:
    with pytest.raises(BadInput, match="NaN"):
        Study().look({"a": [1.0, math.nan], "b": [1.0, 2.0]})
    with pytest.raises(BadInput, match="'z' is not among them"):
        Study(Plan(arms=("a", "b"))).look({"z": [1.0]})


# -- several tasks, equal seeds


def test_over_several_tasks_whole_seeds_change_sides_and_each_task_counts_alike() -> None:
    """By hand: a seed's rank is the sum of its ranks in each task; scales of tasks play no part in it."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(1, 1, (6, 3)), rng.normal(0, 1, (6, 3))
    found = judge(a, b)
    scaled = judge(a * [1, 1000, 0.001], b * [1, 1000, 0.001])
    assert scaled.p_ranks == found.p_ranks
    by_range, by_scaled = (
        judge(a * scales, b * scales, common_scale=False) for scales in (np.ones(3), np.array([1, 1000, 0.001]))
    )
    assert by_scaled.p_means == by_range.p_means
    assert by_scaled.difference == pytest.approx(by_range.difference)
    ranks = sum(np.argsort(np.argsort(task)) + 1 for task in np.concatenate([a, b]).T)
    sums = np.array([ranks[list(chosen)].sum() for chosen in itertools.combinations(range(12), 6)])
    far_off = np.abs(sums - sums.mean())
    assert found.p_ranks == pytest.approx((far_off >= abs(ranks[:6].sum() - sums.mean()) - 1e-9).mean())
    one_by_one = [np.mean(a[:, t, None] > b[None, :, t]) * 36 for t in range(3)]
    assert found.won == pytest.approx(np.mean(one_by_one))


@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_luck_that_a_seed_shares_over_tasks_makes_no_false_winners(shared: float) -> None:
    rng = np.random.default_rng(3)
    false = 0
    for _ in range(300):
        luck = rng.normal(size=(12, 1)) * shared**0.5 + rng.normal(size=(12, 5)) * (1 - shared) ** 0.5
        found = judge(luck[:6], luck[6:])
        false += found.p <= 0.05
    assert false <= 300 * 0.05 + 3 * (300 * 0.05 * 0.95) ** 0.5


def test_equal_seeds_are_compared_with_each_other_by_all_choices_of_signs() -> None:
    """Six pairs, all won: 2 of 64 choices of signs. Seven: 2 of 128, the fewest below 0.03."""
    luck = np.array([0.0, 100, 200, 300, 400, 500, 600])
    a, b = luck + 1, luck + np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.15])
    names = {"a": range(7), "b": range(7)}
    found = Study(Plan(paired=True)).look({"a": a, "b": b}, seeds=names).verdict("a", "b")
    assert (found.better, found.n_a, found.won, found.of, found.p) == ("a", 7, 7, 7, pytest.approx(2 / 128))
    assert judge(a[:6], b[:6], paired=True).p == pytest.approx(2 / 64)
    alone = Study().look({"a": a, "b": b}).verdict("a", "b")
    assert alone.better is None, "luck that both share hides the difference"
    moved = Study(Plan(paired=True)).look({"a": a, "b": b[::-1]}, seeds={"a": range(7), "b": range(6, -1, -1)})
    assert moved.verdict("a", "b").p == found.p
    assert Plan(paired=True).first_look() == 7
    with pytest.raises(BadInput, match="seeds="):
        Study(Plan(paired=True)).look({"a": a, "b": b})


@pytest.mark.parametrize("paired", [False, True])
def test_where_splits_are_drawn_the_clearest_scores_have_the_least_p_and_not_0(paired: bool) -> None:
    found = judge(np.arange(40.0, 70), np.arange(30.0)[::-1], paired=paired)
    assert found.p == found.p_means == least_p(30, 30, paired) == 1e-5


def test_means_of_equal_seeds_are_tested_with_all_signs() -> None:
    gaps = np.array([0.1, -0.2, 0.5, 0.9, 1.0, 0.4, 0.3])
    found = judge(gaps, np.zeros(7), paired=True)
    sums = [abs(np.dot(signs, gaps)) for signs in itertools.product([-1, 1], repeat=7)]
    assert found.p_means == pytest.approx(np.mean(np.array(sums) >= gaps.sum() - 1e-12))
    order = np.argsort(np.argsort(np.abs(gaps))) + 1
    ranks = [abs(np.dot(signs, order)) for signs in itertools.product([-1, 1], repeat=7)]
    assert found.p_ranks == pytest.approx(np.mean(np.array(ranks) >= abs(np.dot(np.sign(gaps), order))))


# -- what holds whatever the shapes, and one more failure


def test_the_bound_for_any_shapes_is_that_of_complete_separation_and_holds_at_its_worst() -> None:
    for n in range(2, 9):
        assert any_shape(1.0, n) == pytest.approx(2.0 ** (1 - n))
    assert any_shape(0.5, 10) == 1.0
    # the pairs of seeds that decide at 5 %: 36 of 36, 48 of 49, 61 of 64, 91 of 100, 126 of 144
    for n, won in ((6, 36), (7, 48), (8, 61), (10, 91), (12, 126)):
        assert any_shape(won / n**2, n) <= 0.05 < any_shape((won - 1) / n**2, n)
    # a constant beside two points, each as likely: all above all in 2 of 2 ** n studies
    rng = np.random.default_rng(0)
    sides = rng.integers(0, 2, (20_000, 5)) * 2 - 1
    assert (np.abs(sides.sum(axis=1)) == 5).mean() == pytest.approx(2 / 32, abs=0.006)


def test_a_winner_holds_if_one_more_failed_seed_leaves_ranks_apart() -> None:
    """Six above six, and one of seven below all: 36 of 42 pairs, 0.035 by count; five above five: 0.126."""
    assert holds_with_one_more_failure([6, 7, 8, 9, 10, 11], range(6), True)
    assert not holds_with_one_more_failure([5, 6, 7, 8, 9], range(5), True)
    assert holds_with_one_more_failure(range(6), [6, 7, 8, 9, 10, 11], False)
    assert [round(100 * unseen_share(n)) for n in (4, 5, 6, 7, 8, 10)] == [53, 45, 39, 35, 31, 26]


# -- how many seeds


def test_what_is_promised_before_a_study_is_what_it_decides() -> None:
    """The chance that `seeds` gives, against how often the verdict on such scores names the better group."""
    rng = np.random.default_rng(5)
    for n, d in ((5, 3.0), (8, 1.75), (12, 1.4)):
        promised = power_to_decide(n, d)
        decided = np.mean([of(rng.normal(d, 1, n), rng.normal(0, 1, n)).better == "a" for _ in range(100)])
        assert decided == pytest.approx(promised, abs=0.12)
    for power in (0.5, 0.8, 0.95):
        for d in (0.7, 1.0, 2.0, 4.0):
            n = seeds_for_difference(d, lambda n: 0.03, power)
            assert n is not None
            assert power_to_decide(n, d) >= power > power_to_decide(n - 1, d) or n == 4


def test_so_many_seeds_as_a_verdict_asks_for_decide_a_difference_as_it_looked() -> None:
    first = of([500, 487, 402, 298, 280], [291, 285, 165, 120, 110])
    assert first.more is not None
    assert first.enough == 6
    rng = np.random.default_rng(1)
    d = 2**0.5 * 1.405  # of which one wins 23 of 25 pairs
    won = 0
    for _ in range(150):
        a, b = rng.normal(d, 1, first.more), rng.normal(0, 1, first.more)
        won += of(a, b, looked=(5,)).better == "a"
    assert won / 150 == pytest.approx(0.8, abs=0.12)


def test_so_many_pairs_as_are_promised_decide_differences_within_a_seed() -> None:
    """A share of pairs won stands for a difference in units of the spread within pairs: 84 of 100 for one of them."""
    rng = np.random.default_rng(2)
    assert seeds_to_decide(0.8413, lambda n: 0.03, 7, paired=True, pairs=1_000) == seeds_for_difference(
        1.0, lambda n: 0.03, least=7, paired=True
    )
    for n, d in ((7, 1.3), (9, 1.3)):
        decided = np.mean([judge(rng.normal(d, 1, n), np.zeros(n), paired=True).p <= 0.03 for _ in range(100)])
        assert decided == pytest.approx(power_to_decide(n, d, paired=True), abs=0.1)


def test_where_nothing_can_be_decided_a_pair_says_in_short_who_is_ahead_if_anybody_is() -> None:
    assert short(of(PPO, DQN, far(1), far(2))) == "a is ahead of b: it wins 25 of 25 pairs of seeds (p = 0.0079 alone)."
    assert short(of([1, 2, 3, 4], [1, 2, 3, 4], far(1), far(2))) == "a and b: neither is ahead."


def test_no_difference_is_promised_to_seeds_that_decide_nothing() -> None:
    assert detectable(2) == math.inf
    assert 2.0 < detectable(5) < 4.0


def test_seeds_that_no_plan_allows_are_not_promised() -> None:
    assert seeds_to_decide(0.52, lambda n: 0.03, 4, 200) is None
    assert seeds_to_decide(0.9, lambda n: 0.03, None) is None
    assert fewest_that_decide(lambda n: 0.03) == 4
    assert least_p(5, 5) == pytest.approx(2 / 252)


# -- false winners


@pytest.mark.parametrize("studies", some_of([20, 600], 1))
@pytest.mark.parametrize("plan", [None, 12])
def test_looking_after_every_seed_names_few_false_winners(plan: int | None, studies: int) -> None:
    rng = np.random.default_rng(7)
    false = 0
    for _ in range(studies):
        failing = np.where(rng.random((2, 12)) < 0.2, 0.0, rng.normal(3, 1, (2, 12)))
        study = Study(Plan(seeds=plan))
        for n in range(5, 13):
            study = study.look({"a": failing[0, :n], "b": failing[1, :n]})
            if study.verdicts[0].better is not None:
                false += 1
                break
    assert false <= studies * 0.05 + 3 * (studies * 0.05 * 0.95) ** 0.5


def test_limits_of_an_open_end_spend_the_error_once_however_often_one_looks() -> None:
    assert open_ended([7]) == pytest.approx([0.03])
    assert open_ended([5, 10, 20]) == pytest.approx([0.03, 0.016, 0.0083], rel=0.01)
    assert open_ended([10, 20, 40]) == pytest.approx(open_ended([5, 10, 20]))
    looks = np.arange(5, 61)
    steps = np.random.default_rng(2).normal(size=(10_000, 60)).cumsum(axis=1)[:, 4:] / np.sqrt(looks)
    from scipy.stats import norm

    crossed = (2 * norm.sf(np.abs(steps)) <= open_ended(looks)).any(axis=1).mean()
    assert crossed == pytest.approx(0.03 + 0.02 * (1 - 5 / 60), abs=0.005)


def test_a_seed_that_crashed_in_one_task_and_lacks_the_others_is_said_to_be_left_out() -> None:
    entries = [
        compare.Entry(group, f"{group}{task}{seed}", seed, task, 1.0 + seed + (group == "a"))
        for group in "ab"
        for task in ("x", "y")
        for seed in range(5)
    ]
    alone = compare.Entry("a", "ax9", 9, "x", None, crashed=True)
    both = [
        compare.Entry("a", f"a{task}8", 8, task, None if task == "x" else 3.0, crashed=task == "x") for task in "xy"
    ]
    found = compare.compare([*entries, alone, *both], metric="m", by="algo", how="last")
    said = " ".join(found.sentences())
    assert "a: 1 run (ax9) did not finish, and its seed has no run of another task: no verdict counts it." in said
    assert "a: 1 run (ax8) did not finish. In the verdict it counts as worse" in said
    assert len(found.groups[0].judged_RT) == 6


def rows_of_the_docs() -> list[str]:
    """What docs/simulations.md says of each case."""
    rows = []
    for case, verdict, outcome, better, _won, _p, holds in CASES:
        found = verdict()
        share = "" if outcome == "no scores" else f"{found.won:g} of {found.n_a * found.n_b}"
        p = "" if found.p is None or math.isnan(found.p) else f"{found.p:.2g}"
        still = "" if holds is None else "yes" if holds else "no"
        rows.append(f"| {case} | {better or outcome} | {share} | {p} | {still} |")
    return rows


def test_the_docs_have_every_case() -> None:
    text = (Path(__file__).parents[2] / "docs" / "simulations.md").read_text(encoding="utf-8")
    assert [row for row in rows_of_the_docs() if row not in text.splitlines()] == []
