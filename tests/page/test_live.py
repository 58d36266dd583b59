"""What the server pushes, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rollbook


def test_a_running_runs_new_rows_are_drawn_without_a_reload(page: Any, serve: Any, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    with rollbook.init("live", "ppo", seed=1, dir=folder, sinks=[]) as run:
        for i in range(50):
            run.log({"train/return": float(i)}, env_step=i)
        page.open(serve(folder)).drawn(1)
        last = page.tab.locator("[data-key='train/return'] .read b").first
        before = last.inner_text()
        for i in range(50, 120):
            run.log({"train/return": float(i)}, env_step=i)
        page.tab.wait_for_function(
            "old => document.querySelector(\"[data-key='train/return'] .read b\").textContent !== old",
            arg=before,
        )


def test_a_page_that_was_open_before_the_first_row_shows_the_return_in_the_table(
    page: Any, serve: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "runs"
    with rollbook.init("live", "grpo", seed=1, dir=folder, sinks=[]) as run:
        page.open(serve(folder)).settled()
        page.tab.locator(".grid.runs .runname").wait_for()
        heads = page.tab.locator(".grid.runs [role=columnheader]")
        assert "reward" not in heads.all_inner_texts()
        for i in range(20):
            run.log({"reward": float(i), "loss": 0.5}, env_step=i)
        heads.filter(has_text="reward").first.wait_for()
        page.tab.locator(".grid.runs .spark path[d]").first.wait_for(state="attached")
    assert page.errors == []
