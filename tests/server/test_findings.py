"""What is wrong in any of the runs stands in one list: the worst first, each thing once, with the runs that have it."""

from __future__ import annotations

from typing import Any

import pytest

import rollbook
from page_server import client_of
from rollbook.schema.endings import one_line


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer about four runs: one without anything, two of one warning, one that grew worse."""
    folder = tmp_path_factory.mktemp("findings")
    said = {0: [], 1: [("kl", "warn")], 2: [("kl", "warn"), ("odd", "note")], 3: [("nan", "warn"), ("nan", "fail")]}
    for seed, alerts in said.items():
        with rollbook.init("cartpole", "ppo", seed=seed, dir=folder, sinks=[], rules=[]) as run:
            for step in range(5):
                run.log({"train/return": float(step)}, env_step=step)
            for rule, level in alerts:
                words = {"rule": rule, "level": level, "message": f"{rule} of {seed}", "source": "rule"}
                run.record("alerts", {**words, "evidence": '{"key": "train/return"}'}, env_step=3)
    with client_of(folder) as client:
        answer: dict[str, Any] = client.post("/api/findings", json={}).json()
    return answer


def test_the_worst_comes_first_and_each_thing_once(told: dict[str, Any]) -> None:
    assert [(one["level"], one["rule"], one["many"]) for one in told["findings"]] == [
        ("fail", "nan", 1),
        ("warn", "kl", 2),
        ("note", "odd", 1),
    ]


def test_a_finding_names_its_runs_the_newest_first_and_where_it_happened(told: dict[str, Any]) -> None:
    runs = told["findings"][1]["runs"]
    assert [at["seed"] for at in runs] == [2, 1]
    assert told["findings"][1]["message"] == "kl of 2"
    assert (runs[0]["axis"], runs[0]["x"], runs[0]["key"]) == ("env_step", 3.0, "train/return")


def test_runs_of_one_name_are_told_apart_by_their_settings(tmp_path: Any) -> None:
    for lr in (0.1, 0.9):
        with rollbook.init("cliff", "sarsa", seed=1, config={"lr": lr}, dir=tmp_path, sinks=[], rules=[]) as run:
            run.record("alerts", {"rule": "kl", "level": "warn", "message": "kl", "source": "rule"}, env_step=3)
    with client_of(tmp_path) as client:
        (finding,) = client.post("/api/findings", json={}).json()["findings"]
    assert [at["name"] for at in finding["runs"]] == ["sarsa lr 0.9", "sarsa lr 0.1"]


def test_runs_of_which_no_rule_warned_are_quiet(told: dict[str, Any]) -> None:
    assert (told["looked_at"], told["quiet"]) == (4, 1)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("expected Real(), but found invalid values:\ntensor([[nan, nan]])\nin a policy", "tensor([[nan, nan]])"),
        ("CUDA error: out of memory\nCUDA kernel errors might be reported later", "CUDA error: out of memory"),
        ("these are missing:\n\n  a:\n  b", "these are missing: a: b"),
        ("x" * 400, "x"),
        ("", "ValueError"),
    ],
)
def test_what_an_exception_says_after_a_colon_at_the_end_of_a_line_is_not_left_out(message: str, line: str) -> None:
    said = one_line({"type": "ValueError", "message": message})
    assert said.startswith("ValueError")
    assert said.endswith(line)
    assert len(said) <= 300
