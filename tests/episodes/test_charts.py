"""Charts over what the recorder itself wrote, not over shapes made for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.book.table_charts import rewards


@pytest.fixture
def book(tmp_path: Path, make_env: Any) -> rollbook.Book:
    """Two episodes of two and three steps, each step 1.0 for being alive and -0.25 for energy."""
    parts = {"reward_components": {"alive": 1.0, "energy": -0.25}}
    with rollbook.init("charts", "rewards", dir=tmp_path, sinks=[], keeper="inline") as run:
        env = rollbook.RecordEpisodes(make_env([2, 3], reward=0.75, info=lambda t, over: parts), run.scope("train"))
        for episode in range(2):
            run.clock(env_step=10 * (episode + 1))
            env.reset()
            over = False
            while not over:
                *_, terminated, truncated, _ = env.step(0)
                over = terminated or truncated
    return run.book


def test_the_stack_of_rewards_is_of_the_components_and_its_total_is_the_return(book: rollbook.Book) -> None:
    stack = rewards(book, [], None)
    assert stack.names == ("alive", "energy")
    assert stack.total is not None
    np.testing.assert_allclose(np.sum(stack.parts, axis=0), stack.total)
    returns = [row["return"] for row in book.episodes().to_pylist()]
    assert returns == [1.5, 2.25]
    assert float(np.mean(stack.total)) == pytest.approx(np.mean(returns))
