"""Every rule of the registry keeps the contract of rules, and speaks where there is trouble."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from rollbook import health, testing
from rollbook.protocols import Row


def rows(n: int, **values: Any) -> list[Row]:
    """n rows a second apart; each value a function of its row's number."""
    return [
        Row(
            1.7e9 + i,
            {"env_step": 2000 * i},
            {key.replace("__", "/"): make(i) for key, make in values.items()},
            seq=i + 1,
        )
        for i in range(n)
    ]


TROUBLE: dict[str, list[Row]] = {
    "constant": rows(120, losses__value_loss=lambda i: math.sin(i) if i < 40 else 0.25),
    "entropy": rows(
        80, losses__entropy=lambda i: 0.69 if i < 40 else 0.01, charts__episodic_return=lambda i: 20.0 + i % 7
    ),
    "explained_variance": rows(60, losses__explained_variance=lambda i: 0.4 if i < 30 else -0.8),
    "kl": rows(60, losses__approx_kl=lambda i: 0.01 if i < 40 else 0.3),
    "non_finite": rows(60, loss=lambda i: 1.0 / (i + 1) if i < 50 else math.nan),
}
SILENCE = {"silent"}  # speaks of rows that do not come: see test_rules.py


@pytest.mark.parametrize("check", testing.RULE_CHECKS.values(), ids=testing.RULE_CHECKS)
@pytest.mark.parametrize("name", health.names())
def test_a_rule_keeps_the_contract(name: str, check: Any, tmp_path: Path) -> None:
    check(lambda: health.make(name), tmp_path, TROUBLE.get(name, ()))


def test_every_rule_of_the_registry_has_its_trouble_here() -> None:
    assert {*TROUBLE, *SILENCE} == set(health.names())
    assert set(health.DEFAULT) <= set(health.names())
