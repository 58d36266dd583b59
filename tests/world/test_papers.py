"""Comparisons as papers make them, of runs whose truth is known: the verdict, its words, and tables to paste."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from page_server import client_of
from rollbook.cli.app import app

SPREAD = (0.00, 0.03, -0.02, 0.01, -0.03, 0.02, -0.01)
"""What the luck of a seed adds to its score."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("papers")


def record(root: Path, project: str, name: str, seed: int, config: dict[str, Any], rows: Iterable[Any]) -> None:
    options: dict[str, Any] = {"dir": root, "sinks": [], "rules": (), "keeper": "import", "clocks": ("tokens",)}
    with rollbook.init(project, name, seed=seed, config=config, **options) as run:
        for values, clocks in rows:
            run.log(values, **clocks)


def said(root: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["compare", *words, "--dir", str(root)])
    assert done.exit_code == 0, done.output
    return done.stdout


SCALE = {"Hopper": (0.0, 3_000.0), "Cheetah": (-300.0, 9_000.0)}


@pytest.fixture(scope="module")
def benchmark(root: Path) -> str:
    """Two algorithms, two environments, five seeds: sac reaches 0.9 of the scale, ppo 0.5."""
    for algo, share in {"sac": 0.9, "ppo": 0.5}.items():
        for env, (low, high) in SCALE.items():
            for seed in range(5):
                end = low + (high - low) * (share + SPREAD[seed])
                rows = [({"eval/return": end}, {"env_step": 1_000})]
                record(root, "benchmark", algo, seed, {"algo": algo, "env": env}, rows)
    return "benchmark"


def test_a_table_of_algorithms_over_environments_has_normalised_scores_in_markdown_latex_and_csv(
    root: Path, benchmark: str
) -> None:
    scale = ["--by", "config.algo", "--normalise", json.dumps(SCALE)]
    text = " ".join(said(root, benchmark, *scale).split())
    assert "sac is better than ppo: each of its 5 seeds scores above each of ppo's 5" in text
    # Of ten scores of 0.9 + (0, 0.03, -0.02, 0.01, -0.03), twice each, floor(10 / 4) = 2 a side are left out: the mean
    # of 0.9 + (-0.02, 0, 0.01), twice each, is 0.8967.
    assert "IQM: sac 0.8967" in text
    markdown = said(root, benchmark, *scale, "--markdown").splitlines()
    assert markdown[0] == "| algo | seeds | IQM | interval |"
    assert [line.split(" | ")[:2] for line in markdown[2:4]] == [["| sac", "5"], ["| ppo", "5"]]
    assert any(line.startswith("sac is better than ppo") for line in markdown)
    both = said(root, benchmark, *scale, "--latex", "--markdown")
    assert r"\begin{tabular}" in both
    assert "| algo |" in both
    assert said(root, benchmark, *scale, "--csv").startswith("group,n,iqm,")


@pytest.mark.parametrize("wrong", ["{Hopper: 1}", "{}", "[1, 2]", '{"Hopper": 1}'])
def test_a_scale_that_cannot_be_read_is_answered_with_one_that_can(root: Path, benchmark: str, wrong: str) -> None:
    done = CliRunner().invoke(app, ["compare", benchmark, "--dir", str(root), "--normalise", wrong])
    assert done.exit_code == 1
    assert '{"Hopper": [0, 3000]' in done.stderr or "Available: atari, d4rl" in done.stderr


def test_an_ablation_with_equal_seeds_is_decided_in_pairs_and_speaks_of_the_pairs_that_were_asked(root: Path) -> None:
    """The seed decides the level, from 100 to 400; without normalisation each loses 30."""
    for seed in range(8):
        for variant, lost in {"full": 0.0, "no_norm": 30.0, "no_clip": 0.0}.items():
            noise = 100 * SPREAD[(seed + (3 if variant == "no_clip" else 0)) % 7]
            rows = [({"charts/episodic_return": 100.0 + 50 * seed - lost + noise}, {"env_step": 1_000})]
            record(root, "ablation", f"ppo-{variant}", seed, {"variant": variant}, rows)
    asked = ["ablation", "--by", "config.variant", "--against", "full"]
    apart = " ".join(said(root, *asked).split())
    assert "full and no_norm: not decided" in apart
    pairs = " ".join(said(root, *asked, "--paired").split())
    assert "full is better than no_norm: it wins 8 of 8 seeds" in pairs
    assert "full minus no_norm within a seed: 30 on average" in pairs
    assert "full and no_clip: not decided" in pairs or "no_clip and full: not decided" in pairs
    assert "no_norm minus no_clip" not in pairs


def test_language_models_are_compared_by_the_held_out_score_at_equal_tokens_and_not_by_the_reward(root: Path) -> None:
    """Long answers need twice the tokens for an update, and gain half as much again by it: at equal tokens less."""
    for algo, (gain, tokens) in {"short": (0.01, 1_000), "long": (0.015, 2_000)}.items():
        for seed in range(5):
            rows: list[Any] = []
            for update in range(1, 21):
                at = {"gradient_step": update, "tokens": update * tokens}
                rows.append(({"reward": 0.9 if algo == "long" else 0.1}, at))
                if update % 2 == 0:
                    rows.append(({"eval/math500/pass@1": 0.4 + gain * update + SPREAD[seed] / 10}, at))
            record(root, "llm", algo, seed, {"algo": algo}, rows)
    at_end = " ".join(said(root, "llm").split())
    assert at_end.startswith("By eval/math500/pass@1, the score that these runs have. long is better than short")
    equal = " ".join(said(root, "llm", "-x", "tokens", "--at", "common end").split())
    assert "short is better than long" in equal
    assert "Careful: which of" in equal


def test_python_the_command_line_and_the_page_give_one_verdict(root: Path, benchmark: str) -> None:
    answer = rollbook.open(root).named(benchmark).compare(by="config.algo")
    with client_of(root) as client:
        asked = {"filter": f"project = '{benchmark}'", "sections": False}
        runs = [row["run"] for row in client.post("/api/runs", json=asked).json()["rows"]]
        page = client.post("/api/compare", json={"by": "config.algo", "runs": runs}).json()
    assert page["sentences"] == answer.sentences()
    words = said(root, benchmark, "--by", "config.algo", "--json")
    assert json.loads(words)["sentences"] == answer.sentences()
    assert any(sentence.startswith("sac is better than ppo") for sentence in answer.sentences())
