"""Rollouts that other frameworks left on disk are rollouts here: asked, grouped and read turn by turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rollbook
from foreign_samples import SAMPLES
from rollbook.formats import importers
from rollbook.formats.importers import _registry as importers_registry
from rollbook.formats.importers import import_runs
from rollbook.schema import manifest
from rollout_dumps import nemo_batches, prime_traces, slime_dumps, tinker_summaries, torch_file, verl_dumps


def test_dumps_of_verl_are_rollouts_with_prompts_groups_and_what_the_reward_reported(tmp_path: Path) -> None:
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
    wanted = {"policy_version": 2, "gradient_step": 3, "reward": 5.5, "rewards/final": 5.0, "sampled_tokens": 9,
              "metrics/correct": 1.0, "stop_reason": "stop", "mode": "train", "group": "train-3-2"}  # fmt: skip
    assert {name: one[name] for name in wanted} == wanted
    (turn,) = one.turns().to_pylist()
    assert (turn["role"], turn["tokens"], turn["logs/answer"]) == ("assistant", 9, "4")
    assert one.group().num_rows == 2


def test_texts_of_tinker_come_from_version_3_or_from_the_transcript_of_that_group(tmp_path: Path) -> None:
    (done,) = import_runs(tinker_summaries(tmp_path), dir=tmp_path / "runs")
    book = rollbook.open(done.folder).one()
    told = book.rollout("train-3-1-1")  # of the logtree's only group with its lengths
    assert told.task()["prompt"] == "user: 1 & 2?"
    assert told.turns()["text"].to_pylist() == ["1.1", "ok"]
    assert told.turns()["role"].to_pylist() == ["assistant", "tool"]
    assert told.turns()["tokens"].to_pylist() == [7, None]
    failed = book.rollout("train-3-3-1")
    assert (failed["status"], failed["error"], failed["item"]) == ("failed", "TimeoutError", "5")
    assert book.rollout("train-3-0-0").turns()["text"].to_pylist() == [None]
    assert list(done.left_out.values()) == [2]  # the transcripts of a group that was filtered out


def test_batches_of_nemo_rl_are_rollouts_with_the_numbers_of_each_token(tmp_path: Path) -> None:
    (done,) = import_runs(nemo_batches(tmp_path), dir=tmp_path / "runs")
    book = rollbook.open(done.folder).one()
    one = book.rollout("train-2-1")
    wanted = {"reward": 1.0, "gradient_step": 2, "used": True, "advantage": 0.5, "gap_mean": 0.25, "gap_max": 0.5,
              "sampled_tokens": 2, "other_tokens": 2}  # fmt: skip
    assert {name: one[name] for name in wanted} == wanted
    (lists,) = one.tokens().to_pylist()
    assert (lists["ids"], lists["mask"]) == ([1, 2, 3, 4], [0, 0, 1, 1])  # without the padding
    assert lists["trainer_logprobs"] == [0.0, 0.0, -1.5, -2.0]
    assert book.rollouts("not used")["reason"].to_pylist() == ["masked"] * 2


def test_episodes_of_prime_rl_are_rollouts_with_what_was_learned_later(tmp_path: Path) -> None:
    (done,) = import_runs(prime_traces(tmp_path), dir=tmp_path / "runs")
    book = rollbook.open(done.folder).one()
    one = book.rollout("train-3-e1-t1")
    wanted = {
        "policy_version": 2, "policy_version_end": 3, "reward": 1.1, "rewards/short": 0.1, "metrics/turns": 2.0,
        "status": "completed", "group": "g", "item": "4", "prompt_tokens": 2, "sampled_tokens": 3, "tool_calls": 1,
        "seconds/model": 3, "seconds/reward": 0.5, "used": True, "advantage": 0.75, "trained_version": 4,
        "gradient_step": 4, "staleness": 2,
    }  # fmt: skip
    assert {name: one[name] for name in wanted} == wanted
    assert one.turns()["role"].to_pylist() == ["assistant", "tool", "assistant"]
    assert one.turns()["seconds"].to_pylist() == [None, None, 2.5]
    tokens = one.tokens()
    first, *others = tokens["sampler_logprobs"].to_pylist()
    assert (str(first), others) == ("[nan, -0.5]", [None, [-1.0, -2.0]])
    assert tokens["trainer_logprobs"].to_pylist() == [[0.0, -0.6], [0.0], [-1.0, -2.5]]
    assert book.rollout("train-3-e1-t2")["used"] is None
    assert book.rollouts("status = 'failed'")["error"].to_pylist() == ["SandboxError: gone"]
    assert done.left_out == {"token exports of no trace": 1}


class Harmful:
    """What a pickle executes when it is loaded as one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_nodes_of_verifiers_have_what_the_trainer_gave_their_sampled_tokens(tmp_path: Path) -> None:
    (file,) = prime_traces(tmp_path).rglob("traces.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for trace in lines[0]["traces"]:
        trace["nodes"][1] |= {"trainer_logprobs": [-0.75], "entropies": [0.5], "advantages": [2.0]}
        trace["nodes"][3]["advantages"] = [1.0, -1.0]
    alone = tmp_path / "alone" / "step_3" / "train"  # without exports
    alone.mkdir(parents=True)
    (alone / "traces.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run,) = importers.make("prime_rl").runs(tmp_path / "alone")
    names = ("trainer_logprobs", "entropy", "advantages")
    first, _tool, last = [[row.values.get(name) for name in names] for row in run.rows() if row.table == "tokens"][:3]
    assert repr(first) == "[[nan, -0.75], [nan, 0.5], [nan, 2.0]]"
    assert last == [None, None, [1.0, -1.0]]


def test_dumps_of_slime_are_rollouts_and_a_pickle_of_more_than_data_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    source = slime_dumps(tmp_path)
    torch_file(source / "rollout_8.pt", {"rollout_id": 8, "samples": [Harmful(tmp_path / "executed")]})
    (done,) = import_runs(source, dir=tmp_path / "runs")
    book = rollbook.open(done.folder).one()
    one = book.rollout("train-7-2")
    wanted = {"policy_version": 3, "policy_version_end": 4, "status": "truncated", "group": "train-7-1", "label": "4",
              "prompt_tokens": 2, "sampled_tokens": 1, "other_tokens": 1, "seconds/tools": 0.25}  # fmt: skip
    assert {name: one[name] for name in wanted} == wanted
    assert one.tokens()["ids"].to_pylist() == [[7, 8]]
    assert book.rollouts("used is not null")["reason"].to_pylist() == ["removed"]
    assert list(done.left_out.values()) == [1]
    assert not (tmp_path / "executed").exists()


def test_logged_completions_of_trl_are_rollouts_with_rewards_and_advantages(tmp_path: Path) -> None:
    from pyarrow import parquet

    source = Path(__file__).parent / "samples" / "trl" / "completions"
    (done,) = import_runs(source, dir=tmp_path / "runs")
    book = rollbook.open(done.folder).one()
    theirs = [row for file in sorted(source.glob("*.parquet")) for row in parquet.read_table(file).to_pylist()]
    ours = book.rollouts(order_by="rollout_id").to_pylist()
    names = ("gradient_step", "item", "reward", "short", "advantage")
    assert [tuple(row[name] for name in names) for row in ours] == [
        (row["step"], row["completion"], row["short"], row["short"], row["advantage"]) for row in theirs
    ]
    one = book.rollout("train-2-1")
    assert (one.task() or {})["prompt"] == theirs[5]["prompt"]
    assert one.group().num_rows == 2
    assert import_runs(source, dir=tmp_path / "runs")[0].rows == 0


@pytest.mark.parametrize(
    ("name", "training", "rollouts"),
    [("verl_rollouts", "", 16), ("tinker", "", 8), ("nemo_rl", "exp_001", 8), ("prime_rl", "", 3), ("slime", None, 4)],
)
def test_a_folder_of_rollouts_opens_without_an_import_and_its_metrics_belong_to_the_same_run(
    name: str, training: str | None, rollouts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "there").mkdir()
    sample = SAMPLES[name](tmp_path / "there")
    if training is not None:
        lines = "".join(f'{{"step": {n}, "reward/mean": {n / 4}}}\n' for n in range(5))
        (sample / training / "metrics.jsonl").write_text(lines)
    book = rollbook.open(tmp_path / "there").one()
    assert manifest.look(book.path).made_by == importers_registry.what(name)
    assert book.rollouts().num_rows == rollouts
    if training is not None:
        assert book.series("reward/mean", x="step").mean.tolist() == [n / 4 for n in range(5)]


def test_two_trainings_of_one_folder_are_two_runs(tmp_path: Path) -> None:
    for n in (1, 2):
        (tmp_path / f"seed_{n}").mkdir()
        tinker_summaries(tmp_path / f"seed_{n}")
    assert [run.name for run in importers.make("tinker").runs(tmp_path)] == ["seed_1-tinker", "seed_2-tinker"]


def test_rewards_of_every_kind_leave_the_questions_answerable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reward function of one's own gives a text, a list or nothing now and then, and verl writes it down."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    scores = [0.0, 1.0, None, float("nan"), -1.0, "1.0", [1.0], {"a": 1}, "wrong format"]
    lines = [
        json.dumps({"input": "q", "output": "" if n == 0 else "x", "gts": "a", "score": score, "step": 1})
        for n, score in enumerate(scores)
    ]
    (tmp_path / "rollouts").mkdir()
    (tmp_path / "rollouts" / "1.jsonl").write_text("\n".join(lines) + "\n")
    (book,) = rollbook.open(tmp_path)
    rewards = [row["reward"] for row in book.rollouts(order_by="rollout_id").to_pylist()]
    assert [reward for reward in rewards if reward is not None and reward == reward] == [0.0, 1.0, -1.0, 1.0, 1.0]
    assert len(rewards) == len(scores)
    assert [row["solved"] for row in book.rollout_prompts().to_pylist()] == [3]
    assert book.rollout_curves(x="policy_version").num_rows or book.rollout_curves().num_rows
