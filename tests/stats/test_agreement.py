"""Aggregates, profiles and probability of improvement equal rliable's to 1e-12."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

SPEC = importlib.util.spec_from_file_location("rliable_golden", Path(__file__).with_name("rliable_golden.py"))
assert SPEC is not None
assert SPEC.loader is not None
golden = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(golden)


@pytest.mark.parametrize("case", range(golden.CASES))
def test_numbers_equal_those_that_rliable_gave(case: int) -> None:
    """The stored numbers were written by rliable_golden.py."""
    expected = json.loads(golden.GOLDEN.read_text())[case]
    found = golden.of_rollbook(*golden.tables(case))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-12, abs=1e-12), name
