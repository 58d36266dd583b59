"""Modules that have moved answer under their old path for one release."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from rollbook.ground.moved import MOVED
from waiting import PATIENCE


@pytest.mark.parametrize("old", sorted(MOVED))
def test_an_old_path_is_the_module_of_today_and_says_so_once(old: str) -> None:
    code = (
        f"import warnings, sys; warnings.simplefilter('error', ImportWarning)\n"
        f"with warnings.catch_warnings(record=True) as heard:\n"
        f"    warnings.simplefilter('always')\n"
        f"    import {old} as before\n"
        f"    import {old}\n"
        f"import {MOVED[old]} as today\n"
        f"assert before is today and sys.modules[{old!r}] is today\n"
        f"assert today.__spec__.name == {MOVED[old]!r} == today.__name__\n"
        f"assert [w.category for w in heard] == [DeprecationWarning], heard\n"
        f"assert {MOVED[old]!r} in str(heard[0].message) and heard[0].filename == '<string>', heard[0]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


def test_a_module_inside_a_moved_one_answers_too() -> None:
    with pytest.warns(DeprecationWarning, match=r"rollbook\.sinks\.filters\.smooth"):
        before = importlib.import_module("rollbook.filters.smooth")
    assert before is importlib.import_module("rollbook.sinks.filters.smooth")


def test_a_module_that_never_was_is_missing_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"rollbook\.nonsense"):
        importlib.import_module("rollbook.nonsense")
    with pytest.raises(ModuleNotFoundError), pytest.warns(DeprecationWarning, match="nonsense"):
        importlib.import_module("rollbook.filters.nonsense")
