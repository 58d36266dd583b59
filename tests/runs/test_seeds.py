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
from rollbook.compare.seeds import detectable


def asked(*words: str) -> dict:
    done = CliRunner().invoke(app, ["seeds", *words, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_difference_of_one_standard_deviation_takes_seventeen_seeds() -> None:
    """Cohen (1988), table 2.4.1: d = 1.0, power 0.80, two-sided 5 %: n = 17."""
    found = asked("--difference", "40", "--std", "40")
    assert found["seeds_needed"] == 17
    assert found["detectable"][1] == {"seeds": 5, "difference": pytest.approx(40 * 2.0244, rel=1e-3)}


@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("seeds", [2, 5, 50])
def test_the_difference_that_seeds_can_find_has_just_that_power(seeds: int, power: float) -> None:
    size = detectable(seeds, power)
    assert stats.power(seeds, size) == pytest.approx(power, abs=1e-4)


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
    assert found["seeds_needed"] == stats.seeds_for(0.8, 2 / found["std"])
    (pair,) = found["pairs"]
    assert (pair["seeds_a"], pair["seeds_b"], abs(pair["difference"])) == (3, 3, 5.0)
    assert pair["seeds_needed"] is None  # three seeds cannot say
    words = (
        CliRunner().invoke(app, ["seeds", "--dir", str(tmp_path), "-m", "test/return", "--by", "config.algo"]).stdout
    )
    assert "can be told from 10 seeds a group on" in words


@pytest.mark.parametrize("words", [[], ["--metric", "test/return"], ["--std", "1", "--by", "seed"]])
def test_a_question_without_its_halves_says_what_is_missing(words: list[str]) -> None:
    done = CliRunner().invoke(app, ["seeds", *words])
    assert done.exit_code == 2
    assert "--std" in done.output
