"""A comparison as a LaTeX table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from click.testing import CliRunner

import rollbook
from rollbook import compare
from rollbook.cli.app import app
from rollbook.compare.comparison import escaped


def test_a_table_has_a_line_a_group_with_as_many_digits_as_its_interval_knows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    entries = [
        compare.Entry(group=name, name=f"{name}{seed}", seed=seed, task="", score=float(score), unit=f"{name}{seed}")
        for name, scores in {"a_b & 50%": rng.normal(412.3, 20, 12), "few": [1.0, 2.0]}.items()
        for seed, score in enumerate(scores)
    ]
    answer = compare.compare(entries, metric="test/return", by="config.algo", how="last", statistic="mean")
    lines = answer.latex().splitlines()
    assert lines[0].startswith("% mean of test/return (last) by config.algo")
    assert lines[1] == "% interval: 95 % if no rare kind of seed was missed (12 seeds)"
    assert lines[2].startswith("% a_b & 50% and few: no verdict from 12 and 2 seeds.")
    lines[1:3] = []
    assert lines[3] == r"algo & seeds & mean & interval \\"
    assert lines[5] == r"a\_b \& 50\% & 12 & $412.7$ & $403.3$ to $422.2$ \\"  # half an interval is 9.4
    assert lines[6] == r"few & 2 & -- & -- \\" or lines[6].startswith(r"few & 2 & $1.5$ & --")
    assert (lines[1], lines[-1]) == (r"\begin{tabular}{lrrc}", r"\end{tabular}")


def test_a_name_cannot_become_a_command() -> None:
    assert escaped(r"\input{/etc/passwd} $x^2$" + "\x1b[2J") == (
        r"\textbackslash{}input\{/etc/passwd\} \$x\textasciicircum{}2\$[2J"
    )


def test_the_command_prints_it_alone(tmp_path: Path) -> None:
    for seed in range(5):
        with rollbook.init("p", "a", seed=seed, dir=tmp_path, sinks=[], keeper="import") as run:
            run.log({"test/return": float(seed)}, env_step=1)
    done = CliRunner().invoke(app, ["compare", "--dir", str(tmp_path), "-m", "test/return", "--by", "name", "--latex"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("% IQM of test/return")
    assert done.stdout.rstrip().endswith(r"\end{tabular}")
