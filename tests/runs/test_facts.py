"""Remarks of an answer: whoever reads them finds no option of another door."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rollbook.compare.facts import KINDS, Fact, together

VALUES: dict[str, Any] = {
    "groups": 2, "fields": ["config.lr"], "runs": 3, "metric": "test/return", "rows": 4, "in": 1, "of": 3, "key": "k",
    "stretches": 2048, "x": "env_step", "why": "no such file", "runs_of": {"a": 2}, "by": "algo", "alone": False,
    "tasks": 2, "a": "a", "b": "b", "span_a": (0, 1), "span_b": (2, 3), "axis": "env_step", "n": 1, "level": 475,
    "field": "config.env", "of_group": {"a": ["cart"]}, "of_environment": {"cart": ["a"]}, "all": ["cart", "pole"],
    "algorithms": ["ppo", "dqn"],
    "others": ["x"], "what": "differ", "instead": "solved", "first": 9, "last": 12, "at": "own end",
    "statistic": "iqm", "side": "higher", "own": 1.0, "own_leader": "a", "common": 2.0, "common_leader": "b",
    "common_end": 9, "least": 2, "most": 5, "running": 1, "how": "best", "rows_of": {"a": 9},
    "axes_of": {"a": ["env_step"], "b": ["epoch"]},
}  # fmt: skip
OPTION = re.compile(r"--\w|\w=|\brollbook \w|\w\(")


@pytest.mark.parametrize("at", ["own end", "common end"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_page_is_told_of_no_option_of_the_command_line_or_of_python(kind: str, at: str) -> None:
    fact = Fact(kind, "a", ("ppo seed 1",), VALUES | {"at": at})
    assert not OPTION.search(fact.remark), fact.remark
    assert fact.sentence.startswith(fact.remark), "the others are told the same, and how"
    assert fact.remark.startswith(fact.statement)


def test_what_holds_of_several_groups_is_said_once_and_told_to_programs_of_each() -> None:
    facts = [
        Fact("grouped by what differs", "", (), {"groups": 3, "fields": ["config.lr"]}),
        Fact("crashed", "a", ("a 1",)),
        Fact("running", "a", ("a 2",)),
        Fact("crashed", "b", ("b 1", "b 2")),
        Fact("crashed", "c", ("c 1",), {"floor": 0.0}),
        Fact("several algorithms", "a", (), {"algorithms": ["x", "y"]}),
        Fact("several algorithms", "b", (), {"algorithms": ["x", "y"]}),
    ]
    said = together(facts)
    assert [fact.kind for fact in said] == [
        *("grouped by what differs", "crashed", "running", "crashed", "several algorithms", "several algorithms")
    ]
    assert said[1].statement.startswith("a, b: 3 runs (a 1, b 1, b 2) did not finish. In the verdict they count")
    assert said[3].statement.startswith("c: 1 run"), "what a run is worth there is another number"
