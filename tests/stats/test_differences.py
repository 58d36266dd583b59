"""Two groups side by side: the interval is that of the difference, over whole seeds, or there is a reason why not."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy  # its parts are imported when they are asked for

from rollbook.errors import BadInput
from rollbook.stats import (
    difference,
    improvement,
    interval,
    iqm,
    probability_of_improvement,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_difference_of_means_is_welchs_interval() -> None:
    a, b = rng(1).normal(1, 1, 7), rng(2).normal(0, 3, 12)
    found = difference(a, b, "mean", rng=rng())
    theirs = scipy.stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))
    assert found.sentence("ppo", "dqn").startswith("Mean of ppo less that of dqn: ")
    json.dumps(found.as_data())


def test_swapping_the_groups_turns_the_interval_round() -> None:
    a, b = rng(1).normal(1, 1, (6, 8)), rng(2).normal(0, 3, (9, 8))
    for statistic in ("mean", "iqm"):
        one, other = difference(a, b, statistic, rng=rng()), difference(b, a, statistic, rng=rng())
        assert one.low is not None
        assert other.high is not None
        assert (one.estimate, one.low) == pytest.approx((-other.estimate, -other.high))
    there, back = improvement(a, b), improvement(b, a)
    assert there.low is not None
    assert back.high is not None
    assert there.low == pytest.approx(1 - back.high)


@pytest.mark.parametrize(
    ("shape", "method"),
    [
        ((8,), "expanded percentile bootstrap"),
        ((8, 3), "expanded percentile bootstrap"),
        ((3, 6), "winsorised t by seed"),
    ],
)
def test_the_method_of_an_iqm_follows_seeds_and_tasks(shape: tuple[int, ...], method: str) -> None:
    a, b = rng(1).normal(size=shape) + 1, rng(2).normal(size=shape)
    found = difference(a, b, "iqm", rng=rng())
    assert found.method == method
    assert found.estimate == pytest.approx(iqm(a) - iqm(b))
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.estimate < found.high


def test_against_a_constant_the_difference_is_as_wide_as_the_interval_of_the_other() -> None:
    a = rng(1).normal(size=(9, 8))
    alone = interval(a, "iqm", rng=rng())
    found = difference(a, np.full((9, 8), 2.0), "iqm", rng=rng())
    assert alone.low is not None
    assert found.low == pytest.approx(alone.low - 2.0)


def test_few_seeds_and_no_spread_give_a_reason() -> None:
    assert "at least 5 seeds" in difference([1.0] * 4, rng().normal(size=9), "iqm", rng=rng()).reason
    assert "at least 3 seeds" in difference([1.0] * 2, rng().normal(size=9), "mean", rng=rng()).reason
    assert "no spread" in difference([1.0] * 6, [2.0] * 6, "iqm", rng=rng()).reason
    assert "no spread" in difference([1.0] * 6, [2.0] * 6, "mean", rng=rng()).sentence()
    assert "do not overlap" in improvement([5.0, 6, 7, 8, 9], [0.0, 1, 2, 3, 4]).reason
    assert improvement([5.0, 6, 7, 8, 9], [0.0, 1, 2, 3, 4]).estimate == 1.0
    with pytest.raises(BadInput, match="same tasks"):
        difference(np.zeros((5, 2)), np.zeros((5, 3)), rng=rng())


def test_improvement_on_one_task_is_brunner_and_munzels() -> None:
    a, b = rng(1).normal(0.5, 1, 9), rng(2).normal(0, 1, 7)
    test = scipy.stats.brunnermunzel(a, b)
    found = improvement(a, b, level=1 - test.pvalue)
    assert found.estimate == pytest.approx(probability_of_improvement(a, b))
    assert found.low == pytest.approx(0.5)  # at the level of its p an interval just touches "neither is better"


def test_luck_that_a_seed_shares_over_tasks_widens_the_interval() -> None:
    a, b = (rng(k).normal(size=(8, 10)) for k in (1, 2))
    lucky = [arm + 2 * rng(k).normal(size=(8, 1)) for k, arm in enumerate((a, b), 5)]
    free, shared = improvement(a, b), improvement(*lucky)
    assert free.low is not None
    assert free.high is not None
    assert shared.low is not None
    assert shared.high is not None
    assert shared.high - shared.low > 1.5 * (free.high - free.low)
