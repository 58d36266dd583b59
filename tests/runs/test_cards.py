"""What objects show of themselves in a notebook: escaped, small, and never an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook import compare

BAD = "<img src=x onerror=alert(1)>"


def record(root: Path) -> Any:
    with rollbook.init("cards", "a & b", seed=1, dir=root, sinks=[], keeper="inline", config={"algo": BAD}) as run:
        for step in range(30):
            run.log({"test/return": float("nan") if step == 3 else float(step), BAD[1:20]: 1.0}, env_step=step)
        run.log_episode(return_=3.0, length=2, env_step=5, episode_id="e1", note=BAD)
    return run


def test_everything_a_notebook_shows_is_escaped_and_small(tmp_path: Path) -> None:
    run = record(tmp_path)
    runs = rollbook.open(tmp_path)
    x = np.arange(5.0)
    curves = compare.curves({BAD: {"r": compare.RunCurve(x, x)}}, key=BAD, axis="x")
    entries = [compare.Entry(BAD, "r", seed, "", float(seed)) for seed in range(5)]
    comparison = compare.compare(entries, metric=BAD, by="config.algo", how="last")
    shown = {
        "run": run,
        "book": runs[0],
        "runs": runs,
        "series": runs[0].series("test/return"),
        "curves": curves,
        "comparison": comparison,
        "episode": runs[0].episode("e1"),
        "diff": runs.diff("test/return"),
    }
    for name, thing in shown.items():
        text = thing._repr_html_()
        assert "<img" not in text, name
        assert "a & b" not in text, name
        assert len(text) < 20_000, name
        assert "<script" not in text, name
    assert "&lt;img" in curves._repr_html_()
    assert "1 row NaN or infinite" in shown["series"]._repr_html_()


@pytest.mark.usefixtures("sealed")
def test_a_set_of_runs_shows_the_best_of_the_first_canonical_score_that_some_have(tmp_path: Path) -> None:
    record(tmp_path)
    with rollbook.init("cards", "silent", dir=tmp_path, sinks=[], keeper="inline"):
        pass
    text = rollbook.open(tmp_path)._repr_html_()
    assert "test/return.best" in text
    assert ">29<" in text
    assert "test/return" not in rollbook.open(tmp_path).where("name = 'silent'")._repr_html_()


def test_a_run_that_cannot_be_read_still_shows_itself(tmp_path: Path) -> None:
    run = record(tmp_path)
    (Path(run.folder) / "run.json").unlink()
    assert "cards" in run._repr_html_() or "code" in run._repr_html_()


def test_a_report_is_one_page_without_scripts_and_with_every_name_escaped(tmp_path: Path) -> None:
    from rollbook.runs.report import write

    record(tmp_path / "runs")
    record(tmp_path / "runs")
    runs = rollbook.open(tmp_path / "runs")
    for what, name in ((runs[0], "run.html"), (runs, "group.html")):
        page = Path(write(what, tmp_path / name, metric="test/return", by=None)).read_text()
        assert "<script" not in page
        assert "<img" not in page
        assert "<svg" in page
        assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
            "http://creativecommons.org", ""
        )
        assert "prefers-color-scheme:dark" in page
        assert "#292aab" not in page.partition("<body>")[2], "pictures take the colours of the page"
    page = Path(write(runs, tmp_path / "by.html", metric="test/return", by="config.algo")).read_text()
    assert "<img" not in page
    assert "&lt;img" in page


def test_a_report_and_a_plot_that_nobody_groups_draw_the_same_groups(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from rollbook.cli.app import app
    from rollbook.runs.report import write

    for name, lr in (("ppo", 0.1), ("ppo", 0.2), ("dqn", 0.1)):
        for seed in range(2):
            with rollbook.init(
                "p", name, seed=seed, config={"lr": lr}, dir=tmp_path / "runs", sinks=[], rules=()
            ) as run:
                run.log({"train/return": 1.0}, env_step=1)
                run.log({"train/return": 2.0}, env_step=2)
    report = Path(write(rollbook.open(tmp_path / "runs"), tmp_path / "report.html")).read_text()
    drawn = CliRunner().invoke(app, ["plot", "p", "--key", "train/return", "--dir", str(tmp_path / "runs")])
    assert drawn.exit_code == 0, drawn.output
    for name in ("ppo lr 0.1", "ppo lr 0.2", "dqn"):
        assert f"{name}: IQM of 2 seeds" in report
        assert f"{name}: IQM of 2 seeds" in drawn.output
