"""verl itself, as far as a CPU without a serving engine goes: its Tracking and its way of writing rollout dumps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

GROUPS = ("verl",)

pytest.importorskip("verl")

from verl.utils import tracking as native  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters.verl import Tracking, register  # noqa: E402

ROWS = [
    {"actor/pg_loss": 0.1 * step, "critic/rewards/mean": float(step), "training/epoch": 0, "timing_s/gen": 1.25}
    for step in range(1, 6)
]


@pytest.fixture
def run(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("VERL_FILE_LOGGER_ROOT", str(own_place / "verl"))
    run = rollbook.init("verl", "test", dir=own_place / "runs", sinks=(), keeper="inline")
    yield run
    run.finish()


def log_all(tracking: Any) -> None:
    for step, row in enumerate(ROWS, 1):
        tracking.log(data=row, step=step)
    tracking.finish()


def file_rows(own_place: Path) -> list[dict[str, Any]]:
    text = (own_place / "verl" / "p" / "e.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def book_rows(run: Any) -> list[dict[str, Any]]:
    found = [row for row in run.book.metrics().to_pylist() if row["actor/pg_loss"] is not None]  # not the host's
    return [{"step": row["step"], "data": {key: row[key] for key in ROWS[0]}} for row in found]


@pytest.mark.core
def test_verls_own_tracking_takes_the_back_end_and_both_say_the_same(run: Any, own_place: Path) -> None:
    register(run)
    log_all(native.Tracking("p", "e", ["file", "rollbook"], {"trainer": {}}))
    assert book_rows(run) == file_rows(own_place)
    assert len(file_rows(own_place)) == 5
    with pytest.raises(AssertionError, match="nonsense is not supported"):
        native.Tracking("p", "e", ["rollbook", "nonsense"])


def test_our_tracking_hands_the_others_to_verl(run: Any, own_place: Path) -> None:
    log_all(Tracking("p", "e", ["file", "rollbook"], {"trainer": {}}, run=run))
    assert book_rows(run) == file_rows(own_place)


class Words:
    """A tokenizer: token 5 is the word "5", 0 is padding."""

    pad_token_id = 0

    def decode(self, ids: Any, skip_special_tokens: bool = True) -> str:
        return " ".join(str(int(token)) for token in ids if int(token))

    def batch_decode(self, rows: Any, skip_special_tokens: bool = True) -> list[str]:
        return [self.decode(row) for row in rows]


def trainer_of(kind: Any, folder: Path, **more: object) -> Any:
    """A trainer of verl with what its methods for dumps read."""
    from omegaconf import OmegaConf

    trainer = object.__new__(kind)
    trainer.tokenizer, trainer.global_steps = Words(), 3
    trainer.config = OmegaConf.create(
        {"trainer": {"rollout_data_dir": str(folder), "critic_warmup": 0}, "data": {"max_response_length": 3}}
    )
    vars(trainer).update(more)
    trainer._init_dump_executor()
    return trainer


def test_a_batch_of_verls_trainer_becomes_rollouts_with_fates(run: Any, own_place: Path) -> None:
    """`DataProto` as `RayPPOTrainer.fit` has it when it dumps: left-padded prompts, right-padded responses."""
    import numpy as np
    import torch

    trainer_module = pytest.importorskip("verl.trainer.ppo.ray_trainer")
    from verl import DataProto

    folder = own_place / "rollouts"
    register(run)
    tracking = native.Tracking("p", "e", ["rollbook"], {"trainer": {"rollout_data_dir": str(folder)}})
    mask = torch.tensor([[1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 0]])
    seen = torch.tensor([[0, 1, 1, 1, 0], [0, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    advantages = torch.tensor([1.0, -1.0, 0.0, 0.0])[:, None] * mask
    scores = torch.zeros(4, 3)
    scores[:, 1] = torch.tensor([1.0, 0.0, 0.5, 0.5])
    old = -torch.ones(4, 3) * mask
    batch = DataProto.from_dict(
        tensors={
            "prompts": torch.tensor([[0, 7], [0, 7], [8, 9], [8, 9]]),
            "responses": torch.tensor([[1, 2, 0], [1, 5, 3], [4, 4, 4], [0, 0, 0]]),
            "attention_mask": seen,
            "response_mask": mask,
            "token_level_scores": scores,
            "advantages": advantages,
            "old_log_probs": old,
            "rollout_log_probs": old * 1.5,
        },
        non_tensors={
            "uid": np.array(["a", "a", "b", "b"], dtype=object),
            "min_global_steps": np.array([1, 2, 2, None], dtype=object),
            "max_global_steps": np.array([2, 2, 2, None], dtype=object),
            "data_source": np.array(["gsm8k"] * 4, dtype=object),
            "reward_model": np.array([{"ground_truth": str(i)} for i in range(4)], dtype=object),
        },
    )
    seen[0] = torch.tensor([0, 1, 1, 1, 0])
    trainer = trainer_of(trainer_module.RayPPOTrainer, folder)
    trainer._log_rollout_data(batch, {"acc": np.array([1.0, 0.0, 0.5, 0.5])}, {}, str(folder))
    trainer._shutdown_dump_executor()
    tracking.log(ROWS[0], step=3)
    tracking.log(ROWS[0], step=4)
    tracking.finish()
    dumped = [json.loads(line) for line in (folder / "3.jsonl").read_text().splitlines()]
    rows = sorted(run.book.rollouts().to_pylist(), key=lambda row: int(row["rollout_id"].rsplit("-")[-1]))
    assert [(row["item"], row["reward"], row["acc"]) for row in rows] == [
        (line["output"], line["score"], line["acc"]) for line in dumped
    ]
    assert [(row["policy_version"], row["policy_version_end"]) for row in rows] == [
        (1, 2),
        (2, 2),
        (2, 2),
        (None, None),
    ]
    assert [row["staleness"] for row in rows] == [1, 0, 0, None]
    assert [row["status"] for row in rows] == ["completed", "truncated", "truncated", "aborted"]
    assert [(row["used"], row["reason"]) for row in rows] == [
        (True, None),
        (True, None),
        (True, "zero_std"),
        (False, "masked"),
    ]
    assert [row["advantage"] for row in rows] == [1.0, -1.0, 0.0, None]
    assert [row["gap_max"] for row in rows] == [0.5, 0.5, 0.5, None]
    assert [row["group"] for row in rows] == ["a", "a", "b", "b"]
    assert [row["prompt_tokens"] for row in rows] == [1, 1, 2, 2]
    tokens = run.book.rollout(rows[1]["rollout_id"]).tokens().to_pylist()
    by_name = {name: row[name] for row in tokens for name in row if row[name] is not None}
    assert list(by_name["ids"]) == [1, 5, 3]
    assert [bool(cell) for cell in by_name["mask"]] == [True, False, True]
    assert list(by_name["trainer_logprobs"]) == [-1.0, 0.0, -1.0]
    assert run.bill()["drops"] == {}


def test_filtered_groups_of_verls_replay_buffer_are_rollouts_that_were_dropped(
    run: Any, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The V1 trainer: keys, tags and nested tensors as `AgentLoopWorkerTQ` puts them into TransferQueue."""
    import torch
    from tensordict import NonTensorStack, TensorDict

    base = pytest.importorskip("verl.trainer.ppo.v1.trainer_base")
    buffers = pytest.importorskip("verl.trainer.ppo.v1.replay_buffer")
    folder = own_place / "rollouts"
    register(run)
    tracking = native.Tracking("p", "e", ["rollbook"], {"trainer": {"rollout_data_dir": str(folder)}})
    kept = {
        f"{uid}_{k}_0": {"status": "success", "min_global_steps": 1, "max_global_steps": 2}
        for uid in ("a", "b", "c", "d")
        for k in range(2)
    }

    class Queue:
        """transfer_queue, as far as dumps and the buffer use it."""

        @staticmethod
        def kv_batch_get(keys: list[str], partition_id: str, select_fields: list[str]) -> Any:
            def nested(cells: Any) -> Any:
                return torch.nested.as_nested_tensor([torch.tensor(cell) for cell in cells], layout=torch.jagged)

            number = [ord(key[0]) for key in keys]
            every = {
                "uid": NonTensorStack(*[key[0] for key in keys]),
                "prompts": nested([[7, n] for n in number]),
                "responses": nested([[n] * (1 + int(key[2])) for n, key in zip(number, keys, strict=True)]),
                "response_mask": nested([[1] * (1 + int(key[2])) for key in keys]),
                "advantages": nested([[float(key[2])] * (1 + int(key[2])) for key in keys]),
                "rm_scores": nested([[0.0] * int(key[2]) + [1.0] for key in keys]),
                "reward_model": NonTensorStack(*[{"ground_truth": "x"} for _ in keys]),
            }
            chosen = {name: every[name] for name in select_fields if name in every}
            return TensorDict(chosen, batch_size=len(keys))

        @staticmethod
        def kv_clear(keys: list[str], partition_id: str) -> None:
            pass

    for module in (base, buffers):
        monkeypatch.setattr(module, "tq", Queue)
    buffer = object.__new__(buffers.ReplayBuffer)
    from collections import Counter, defaultdict

    for name in ("pending_keys", "running_keys", "finished_keys", "failure_keys"):
        setattr(buffer, name, defaultdict(set))
    buffer.partitions = {"train": dict(kept)}
    buffer.prompt_global_steps, buffer._dapo_classification_cache = defaultdict(dict), defaultdict(dict)
    buffer._evict_terminal_groups(3, "train", ({"b"}, {"c"}, {"gone"}, Counter()))
    buffer._clear_groups("train", {"d"})
    assert sorted(buffer.partitions["train"]) == ["a_0_0", "a_1_0"]
    keys = ["a_1_0", "a_0_0", "z_0_0"]
    tags = [kept["a_1_0"], kept["a_0_0"], {"is_padding": True}]
    trainer = trainer_of(base.PPOTrainerSync if hasattr(base, "PPOTrainerSync") else concrete(base.PPOTrainer), folder)
    trainer._log_rollout_data(base.KVBatchMeta(partition_id="train", keys=keys, tags=tags), {}, str(folder))
    trainer._shutdown_dump_executor()
    tracking.finish()
    rows = run.book.rollouts().to_pylist()
    facts = {(row["group"], row["used"], row["reason"], row["status"]) for row in rows}
    assert facts == {
        ("a", True, None, "completed"),
        ("b", False, "stale", "completed"),
        ("c", False, "zero_std", "completed"),
        ("d", False, "surplus", "completed"),
        ("gone", False, "error", "failed"),
    }
    assert len(rows) == 9
    whole = [row for row in rows if row["group"] != "gone"]
    assert {row["item"] for row in whole if row["group"] == "b"} == {"98", "98 98"}
    assert {(row["policy_version"], row["policy_version_end"], row["reward"]) for row in whole} == {(1, 2, 1.0)}
    assert {row["staleness"] for row in rows if row["used"]} == {1}
    assert run.bill()["drops"] == {}


def concrete(kind: Any) -> Any:
    """A class whose abstract methods nobody calls here."""
    return type("Concrete", (kind,), {name: lambda self: None for name in kind.__abstractmethods__})


def test_the_environment_variable_registers_the_back_end_at_import(own_place: Path) -> None:
    program = (
        "from verl.utils.tracking import Tracking\n"
        "one = Tracking('p', 'e', ['console', 'rollbook'], {'trainer': {'total_training_steps': 2}})\n"
        "one.log({'a': 1.5}, 1)\n"
        "one.log({'a': 2.5}, 2)\n"
        "one.finish(exit_code=1)\n"
    )
    env = dict(os.environ, VERL_USE_EXTERNAL_MODULES="rollbook.adapters.verl", ROLLBOOK_DIR=str(own_place / "runs"))
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    (book,) = rollbook.open(own_place / "runs")
    assert (book.project, book.name, book.status) == ("p", "e", "crashed")
    assert book.series("a", x="step").mean.tolist() == [1.5, 2.5]
    assert book.info.total == {"step": 2}


def test_a_tracking_that_is_collected_does_not_end_the_run(own_place: Path) -> None:
    register(dir=own_place / "runs", sinks=(), keeper="inline")
    one = native.Tracking("p", "collected", ["rollbook"], {})
    run = one.logger["rollbook"].run
    del one
    assert run.book.status == "running"
    run.finish()
