"""Rollouts that other frameworks left on disk are rollouts here: asked, grouped and read turn by turn."""

from __future__ import annotations

from pathlib import Path

import rollbook
from rollbook.formats.importers import import_runs
from rollout_dumps import tinker_summaries, verl_dumps


def test_dumps_of_verl_are_rollouts_with_prompts_groups_and_what_the_reward_said(tmp_path: Path) -> None:
    source = verl_dumps(tmp_path)
    (done,) = import_runs(source, dir=tmp_path / "runs")
    book = rollbook.open(done.folder).one()
    table = book.rollouts(order_by="rollout_id")
    assert table.num_rows == 16
    assert book.sql('select gradient_step, "group", count(*), avg(reward) from rollouts group by all').fetchall()[0][
        2:
    ] == (
        2,
        0.5,
    )
    one = book.rollout("train-2-5")
    assert (one["item"], one["reward"], one["gradient_step"], one["gts"], one["acc"]) == ("5", 1.0, 2, "4", True)
    assert one.task() is not None
    assert one.turns()["text"].to_pylist() == ["5"]
    assert (one.group().num_rows, one.history().num_rows) == (2, 4)
    assert book.rollout_curves()["rollout/reward"].to_pylist() == [0.5, 0.5]
    assert import_runs(source, dir=tmp_path / "runs")[0].rows == 0


def test_summaries_of_tinker_are_rollouts_with_versions_and_a_turn_a_step(tmp_path: Path) -> None:
    (done,) = import_runs(tinker_summaries(tmp_path), dir=tmp_path / "runs")
    book = rollbook.open(done.folder).one()
    one = book.rollout("train-3-2-1")
    wanted = {"policy_version": 2, "gradient_step": 3, "reward": 5.5, "rewards/final": 5.0, "sampled_tokens": 4,
              "metrics/correct": 1.0, "stop_reason": "stop", "mode": "train", "group": "train-3-2"}  # fmt: skip
    assert {name: one[name] for name in wanted} == wanted
    (turn,) = one.turns().to_pylist()
    assert (turn["role"], turn["tokens"], turn["logs/answer"]) == ("assistant", 4, "4")
    assert one.group().num_rows == 2
