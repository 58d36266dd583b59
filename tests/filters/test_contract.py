"""Every filter keeps the contract of filters."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollbook import testing
from rollbook.sinks import Memory, filters

FILTERS = [
    ("aggregate", {"keys": "return|loss"}),
    ("apply", {"function": "rollbook.testing.filters:every_row"}),
    ("clocked", {}),
    ("drop_none", {}),
    ("drop_non_finite", {}),
    ("every", {"seconds": 1}),
    ("every", {"seconds": 2, "per": "key"}),
    ("every", {"seconds": 1, "per": "all"}),
    ("every", {"steps": ["env_step", 1000]}),
    ("every", {"rows": 4, "per": "key"}),
    ("gate", {"when": "builtins:bool"}),
    ("merge", {}),
    ("merge", {"clock": "gradient_step"}),
    ("prefix", {"prefix": "seed3/"}),
    ("rename", {"names": {"train/return": "ret"}, "pattern": "^update/", "replace": "learner/"}),
    ("select", {"keys": "return|loss"}),
    ("smooth", {"keys": "return"}),
    ("smooth", {"keys": "loss", "coeff": 0.9, "mode": "bias_corrected"}),
]


@pytest.mark.parametrize("check", testing.FILTER_CHECKS.values(), ids=testing.FILTER_CHECKS)
@pytest.mark.parametrize(("name", "options"), FILTERS, ids=lambda part: str(part))
def test_a_filter_keeps_the_contract(name, options, check, tmp_path: Path) -> None:
    check(lambda to: filters.make(name, to, **options), tmp_path)


@pytest.mark.parametrize(("name", "options"), FILTERS, ids=lambda part: str(part))
def test_a_filter_can_be_made_again_from_its_options(name, options) -> None:
    first = filters.make(name, Memory(), **options)
    again = filters.make(first.name, Memory(), **first.options)
    assert type(again) is type(first)
    assert again.options == first.options


def test_all_filters_are_checked() -> None:
    assert {name for name, _ in FILTERS} == set(filters.names())
