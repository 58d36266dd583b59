"""Groups of runs by a setting of any type: `group_by`, `compare`, `curves` and the page make the same groups."""

from __future__ import annotations

from typing import Any

import pytest

import rollbook
from rollbook.runs.fields import group_key, group_label

VALUES: list[list[Any]] = [[1, 1.0], [True], ["1"], [0.1, 1e-1], ["0.1"], [None], ["text"], [[1, 2], [1.0, 2.0]]]
VALUES += [[float("nan"), float("nan")], [{"a": 1}, {"a": 1.0}], ["true"]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> rollbook.RunSet:
    folder = tmp_path_factory.mktemp("groups")
    for n, values in enumerate(VALUES):
        for seed, value in enumerate(values * (2 // len(values))):
            with rollbook.init(
                "p", f"r{n}", dir=folder, seed=seed, config={"x": value}, sinks=(), keeper="inline", rules=()
            ) as run:
                run.log({"return": 1.0 + n + seed / 10}, env_step=1)
                run.log({"return": 2.0 + n + seed / 10}, env_step=2)
    return rollbook.open(folder)


def _names(some: rollbook.RunSet) -> set[str]:
    return {row["name"] for row in some.rows()}


def test_equal_numbers_are_one_group_and_other_types_are_others(runs: rollbook.RunSet) -> None:
    groups = runs.group_by("config.x")
    assert sorted(map(sorted, map(_names, groups.values()))) == sorted([f"r{n}"] for n in range(len(VALUES)))
    assert len(groups) == len(VALUES)
    assert _names(groups["1"]) == {"r2"}
    assert _names(groups[0.1]) == {"r3"}
    assert _names(groups["0.1"]) == {"r4"}


def test_curves_and_comparisons_have_the_same_groups(runs: rollbook.RunSet) -> None:
    labels = {group_label(values[0]) for values in VALUES}
    assert len(labels) == len(VALUES)
    curves = runs.curves("return", by="config.x")
    assert {group.label for group in curves.groups} == labels
    answer = runs.compare("return", by="config.x", direction="higher")
    assert {row["group"] for row in answer.table()} == labels
    assert {'"1"', "1", "true", '"true"', "0.1", '"0.1"', "text", "null", "NaN"} <= labels


def test_the_page_has_the_same_groups(runs: rollbook.RunSet) -> None:
    keys = {group_key(value) for values in VALUES for value in values}
    assert len(keys) == len(VALUES)
