"""Two runs on the prompts that both have: whether a gain is more than chance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rollbook
from rollbook.runs.shared_prompts import FEWEST_PROMPTS, PromptsOfTwo
from rollbook.stats import student_t


def compared(root: Path, rewards: dict[str, np.ndarray]) -> PromptsOfTwo:
    for name, of_prompts in rewards.items():
        with rollbook.init("p", name, dir=root, sinks=[], keeper="import", rules=()) as run:
            for number, four in enumerate(of_prompts):
                run.rollouts.log_many(
                    prompts=[f"question {number}"] * len(four),
                    completions=["answer"] * len(four),
                    rewards={"accuracy": [float(reward) for reward in four]},
                )
    return rollbook.open(root).shared_prompts(*rewards)


@pytest.mark.parametrize(("gain", "words"), [(0.0, "it may be chance"), (0.3, "on prompts like these new is better")])
def test_a_gain_over_shared_prompts_comes_with_the_interval_of_the_differences_within_a_prompt(
    tmp_path: Path, gain: float, words: str
) -> None:
    rng = np.random.default_rng(0)
    share = rng.uniform(0.1, 0.6, 40)
    old, new = (rng.random((40, 4)) < p[:, None] for p in (share, share + gain))
    found = compared(tmp_path, {"old": old, "new": new})
    (low,), (high,) = student_t(new.mean(axis=1) - old.mean(axis=1))
    assert found.gain == pytest.approx((low, high))
    (line,) = (each for each in found.sentences() if each.startswith("new minus old: "))
    assert words in line
    assert "over prompts" in line
    assert "other seeds may differ" in line


def test_few_prompts_do_not_tell_and_equal_ones_need_no_interval(tmp_path: Path) -> None:
    few = compared(tmp_path / "few", {"old": np.zeros((5, 2)), "new": np.ones((5, 2))})
    assert few.gain is None
    assert f"Fewer than {FEWEST_PROMPTS} prompts do not tell a gain from chance." in few.sentences()
    equal = compared(tmp_path / "equal", {"old": np.ones((30, 2)), "new": np.ones((30, 2))})
    assert (equal.gain, len(equal.sentences())) == (None, 1)
