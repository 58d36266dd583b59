"""What can be said about the JAX adapter without JAX: its messages, and rows put together again from operands."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.adapters import _versions
from rollbook.adapters import jax as adapter
from rollbook.errors import MissingExtra
from rollbook.run.run import Run


@pytest.mark.skipif(importlib.util.find_spec("jax") is not None, reason="JAX is installed here")
def test_without_jax_the_line_that_installs_it_is_named(run: Run) -> None:
    adapter._jax.cache_clear()
    with pytest.raises(MissingExtra, match=r"pip install 'rollbook(-core)?\[jax\]'"):
        adapter.log(run, {"loss": 1.0})


def test_an_unknown_version_is_named_with_the_range(run: Run, installed: Callable[[str, str], None]) -> None:
    adapter._jax.cache_clear()
    installed("jax", "0.3.25")
    with pytest.raises(_versions.UnsupportedVersion, match=r"jax >=0\.4\.31,<1; found 0\.3\.25"):
        adapter.log(run, {"loss": 1.0})


def test_a_row_is_put_together_from_texts_numbers_vectors_and_arrays(run: Run, rows: Any) -> None:
    arrived = adapter._Arrived(
        run,
        ((("value", "lr"), 0.1), (("clock", "epoch"), 2)),
        ((("value", "loss"), ("value", "grad/norm")), (("clock", "env_step"), ("value", "n")), ("value", "weights")),
        (1, 1, 2),
    )
    arrived(np.array([0.5, 2.0], np.float32), np.array([64, 3], np.int32), np.arange(6.0).reshape(2, 3))
    assert rows(run, "loss", "grad/norm", "n", "lr", x="env_step") == [(64, 0.5, 2.0, 3, 0.1)]
    assert rows(run, "loss", x="epoch") == [(2, 0.5)]
    assert [row["key"] for row in run.book.histograms().to_pylist()] == ["weights"]


def test_calls_that_do_the_same_are_one_compilation(run: Run) -> None:
    def make(value: float, name: str = "a") -> adapter._Arrived:
        return adapter._Arrived(run, ((("value", "lr"), value),), ((("value", name),),), (1,))

    assert make(0.1) == make(0.1)
    assert hash(make(0.1)) == hash(make(0.1))
    assert make(0.1) != make(0.2)
    assert make(0.1) != make(0.1, "b")
    assert make(float("nan")) == make(float("nan"))


def test_a_row_that_cannot_be_logged_is_counted_and_ends_no_computation(run: Run) -> None:
    arrived = adapter._Arrived(run, (), ((("value", "a"),),), (1,))
    with pytest.warns(UserWarning, match="could not be logged"):
        arrived(np.ones(2), np.ones(1))
    assert run.bill()["drops"] == {"jax": 1}


def test_rows_of_siblings_come_with_the_seed_axis_in_front(tmp_path: Path) -> None:
    with rollbook.siblings(2, seeds=[4, 5], project="p", dir=tmp_path, sinks=[], keeper="inline", rules=()) as seeds:
        arrived = adapter._Arrived(
            seeds, ((("value", "word"), "go"),), ((("value", "a"), ("clock", "env_step")),), (1,)
        )
        assert arrived.seeds == 2
        arrived(np.array([[0.5, 7], [1.5, 7]]))
    assert [run.book.series("a", x="env_step").mean.tolist() for run in seeds] == [[0.5], [1.5]]
