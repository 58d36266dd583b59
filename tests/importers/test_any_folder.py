"""Any folder of results: every value comes out once, in one run that can be told from all others."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rollbook
import wild
from rollbook.cli.app import app
from rollbook.formats.importers import import_runs


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def values_of(book: rollbook.Book) -> list[float]:
    """The numbers of a run above 1,000: those that a test has put there."""
    found = [
        value
        for row in book.metrics().to_pylist()
        for key, value in row.items()
        if isinstance(value, float) and value > 1000 and key not in ("time",) and not key.startswith("clock")
    ]
    told = {*found}
    return [*found, *(row["return"] for row in book.table("episodes").to_pylist() if row["return"] not in told)]


def command(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


NAMES = ("ppo", "Hopper-v4", "seed_0", "seed_1", "logs", "run_1", "a")
TREES = st.dictionaries(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(tuple),
    st.lists(st.sampled_from(sorted(wild.TOOLS)), min_size=1, max_size=2, unique=True),
    min_size=1, max_size=4,
)  # fmt: skip


def check_tree(tree: dict[tuple[str, ...], list[str]], root: Path) -> None:
    new = itertools.count(2000)
    numbers = (float(n) for n in new)
    put: list[float] = []
    for place, tools in tree.items():
        for tool in tools:
            put += wild.TOOLS[tool](root.joinpath(*place), numbers)
    runs = rollbook.open(root)
    assert not [problem for problem in runs.problems if "nobody understands" in problem]
    got = sorted(value for book in runs for value in values_of(book))
    assert got == sorted(put), (tree, runs.problems)
    names = [f"{row['project']}/{row['name']}" for row in runs.rows()]
    assert len(set(names)) == len(names)
    done = import_runs(root, dir=root.parent / "imported")
    brought = rollbook.open(root.parent / "imported")
    assert sorted((row["name"], row["seed"], row["group"], row["algo"], row["env"]) for row in runs.rows()) == sorted(
        (row["name"], row["seed"], row["group"], row["algo"], row["env"]) for row in brought.rows()
    ), str(done)
    assert sorted(value for book in brought for value in values_of(book)) == sorted(put)


@example({("ppo",): ["evaluations"], ("ppo", "run_1"): ["tensorboard"], ("ppo", "seed_1"): ["tensorboard"]})
@example({("a",): ["progress", "tensorboard"], ("a", "logs"): ["evaluations"]})
@example({("logs",): ["monitor"], ("logs", "ppo", "seed_0"): ["progress"], ("logs", "a"): ["d3rlpy", "table"]})
@settings(max_examples=12)
@given(TREES)
def test_of_folders_of_many_tools_every_value_comes_out_once_in_one_run(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[tuple[str, ...], list[str]]
) -> None:
    check_tree(tree, tmp_path_factory.mktemp("tree") / "study")


@pytest.mark.long
@settings(max_examples=150)
@given(TREES)
def test_of_many_more_folders_every_value_comes_out_once_in_one_run(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[tuple[str, ...], list[str]]
) -> None:
    check_tree(tree, tmp_path_factory.mktemp("tree") / "study")
