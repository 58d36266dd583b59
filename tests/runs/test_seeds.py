"""`rollbook seeds`: how many seeds, before a study and from what its seeds have shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import rollbook
from rollbook import stats
from rollbook.cli.app import app


def asked(*words: str) -> dict:
    done = CliRunner().invoke(app, ["seeds", *words, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_what_is_promised_is_what_the_verdict_finds() -> None:
    """The power of the tests of `compare`: simulated in tests/stats/test_verdict.py."""
    found = asked("--difference", "60", "--std", "40")
    assert found["seeds_needed"] == stats.seeds_for_difference(1.5, lambda n: 0.03)
    assert stats.power_to_decide(found["seeds_needed"], 1.5) >= 0.8
    of_five = next(row for row in found["detectable"] if row["seeds"] == 5)
    assert stats.power_to_decide(5, of_five["difference"] / 40) == pytest.approx(0.8, abs=1e-3)


def test_more_groups_need_more_seeds_and_so_few_that_nothing_can_be_decided_find_none() -> None:
    """Five groups are ten pairs: 6 seeds of each can decide, 5 cannot (2 / 252 is above 0.03 / 10)."""
    found = asked("--difference", "200", "--std", "40", "--groups", "5")
    assert (found["fewest"], found["pairs_compared"]) == (6, 10)
    assert {row["seeds"]: row["difference"] is None for row in found["detectable"]}[5]
    assert asked("--difference", "200", "--std", "40", "--groups", "5", "--against", "a")["pairs_compared"] == 4


@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("seeds", [4, 7, 50])
def test_the_difference_that_seeds_can_find_has_just_that_power(seeds: int, power: float) -> None:
    size = stats.detectable(seeds, 0.03, power)
    assert stats.power_to_decide(seeds, size) == pytest.approx(power, abs=1e-4)


def test_of_runs_the_spread_of_their_seeds_is_taken(tmp_path: Path) -> None:
    scores = {"a": [1.0, 2.0, 3.0], "b": [5.0, 7.0, 9.0]}
    for algo, values in scores.items():
        for seed, value in enumerate(values):
            with rollbook.init(
                "p", algo, seed=seed, config={"algo": algo}, dir=tmp_path, sinks=[], keeper="import"
            ) as r:
                r.log({"test/return": value}, env_step=1)
    found = asked("--dir", str(tmp_path), "--metric", "test/return", "--by", "config.algo", "--difference", "2")
    assert found["std"] == pytest.approx(np.sqrt((2 + 8) / 4))
    assert found["seeds_needed"] == stats.seeds_for_difference(2 / found["std"], lambda n: 0.03)
    (pair,) = found["pairs"]
    assert (pair["n_a"], pair["n_b"], abs(pair["difference"])) == (3, 3, 5.0)
    assert (pair["outcome"], pair["enough"]) == ("too few seeds", 4)
    words = (
        CliRunner().invoke(app, ["seeds", "--dir", str(tmp_path), "-m", "test/return", "--by", "config.algo"]).stdout
    )
    assert "no verdict from 3 seeds of each" in words
    judged = (
        CliRunner().invoke(app, ["compare", "--dir", str(tmp_path), "-m", "test/return", "--by", "config.algo"]).stdout
    )
    assert "no verdict from 3 seeds of each" in judged
    assert "Next: train 1 more seed of each group, then type again: rollbook" in " ".join(judged.split())


@pytest.mark.parametrize("words", [[], ["--metric", "test/return", "--std", "1"], ["--std", "1", "--by", "seed"]])
def test_a_question_without_its_halves_says_what_is_missing(words: list[str]) -> None:
    done = CliRunner().invoke(app, ["seeds", *words])
    assert done.exit_code == 2
    assert "--std" in done.output
