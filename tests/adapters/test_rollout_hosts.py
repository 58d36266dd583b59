"""slime, OpenRLHF, NeMo-RL, Tinker and prime-rl as they call their loggers: signatures and data of their own sources.

None of them installs here without a GPU. The fakes have the names, arguments and fields of the versions that each
adapter names in its first lines.
"""

from __future__ import annotations

import asyncio
import enum
import inspect
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.adapters import nemo_rl, openrlhf, prime_rl, slime, tinker
from rollbook.errors import BadInput
from rollout_dumps import prime_traces


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Any]:
    run = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline", rules=())
    yield run
    run.finish()


def metrics(run: Any, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in run.book.metrics(list(names)).to_pylist()]


class Status(enum.Enum):
    COMPLETED, TRUNCATED, PENDING = "completed", "truncated", "pending"


@dataclass
class Sample:
    """slime/utils/types.py: Sample."""

    index: int
    group_index: int = 0
    prompt: Any = "2 + 2?"
    tokens: list[int] = field(default_factory=lambda: [5, 6, 7, 8])
    response: str = "4"
    response_length: int = 2
    label: str | None = "4"
    reward: Any = 1.0
    loss_mask: list[int] | None = None
    weight_versions: list[str] = field(default_factory=lambda: ["3", "4"])
    rollout_log_probs: list[float] | None = field(default_factory=lambda: [-0.5, -1.0])
    remove_sample: bool = False
    status: Status = Status.COMPLETED
    metadata: dict[str, Any] = field(default_factory=dict)
    session_id: str | None = None
    non_generation_time: float = 0.0


def test_slime_logs_what_it_generated_and_what_it_removed(run: Any) -> None:
    args = SimpleNamespace(wandb_project=None, wandb_group=None, seed=7, n_samples_per_prompt=2)
    samples = [
        [Sample(0), Sample(1, reward={"math": 0.5, "form": 0.25}, loss_mask=[1, 0])],
        [Sample(2, group_index=1, status=Status.TRUNCATED, remove_sample=True), Sample(3, group_index=1, tokens=[])],
    ]
    assert slime.log_rollout_data(7, args, samples, {"rollout/speed": 3.5}, 12.5) is False
    held = {"aime": {"samples": [Sample(0, prompt=[{"role": "user", "content": "hard"}])], "rewards": [1.0]}}
    assert slime.log_eval_rollout_data(7, args, held, {"eval/aime": 0.5}) is False
    rows = run.book.rollouts("mode = 'train'", "rollout_id").to_pylist()
    assert [row["group"] for row in rows] == ["train-7-0", "train-7-0", "train-7-1", "train-7-1"]
    assert [(row["policy_version"], row["policy_version_end"]) for row in rows] == [(3, 4)] * 4
    assert [(row["reward"], row["status"], row["reason"]) for row in rows] == [
        (1.0, "completed", None),
        (0.75, "completed", None),
        (1.0, "truncated", "removed"),
        (1.0, "completed", None),
    ]
    assert [(row["prompt_tokens"], row["sampled_tokens"]) for row in rows] == [(2, 2), (2, 1), (2, 2), (None, 2)]
    one = run.book.rollout(rows[1]["rollout_id"])
    (tokens,) = one.tokens().to_pylist()
    assert (tokens["ids"], tokens["sampler_logprobs"], tokens["mask"]) == ([7, 8], [-0.5, -1.0], [1, 0])
    assert (one["rewards/math"], one["gradient_step"], one.task()["prompt"]) == (0.5, 7, "2 + 2?")
    assert run.book.rollouts("mode = 'eval'")["item"].to_pylist() == ["4"]
    assert metrics(run, "rollout/speed", "time/rollout_seconds")[0] == (3.5, 12.5)
    assert run.config["n_samples_per_prompt"] == 2
    assert run.bill()["drops"] == {}


def test_openrlhf_keeps_its_own_tracker_and_its_sample(run: Any) -> None:
    calls: list[Any] = []
    own = SimpleNamespace(
        log_train=lambda step, logs: calls.append(("train", step, dict(logs))),
        log_eval=lambda step, logs: calls.append(("eval", step, dict(logs))),
        close=lambda: calls.append("closed"),
    )
    args = SimpleNamespace(seed=1, logger=SimpleNamespace(wandb=SimpleNamespace(project="p", run_name="n")))
    trainer = SimpleNamespace(wandb_logger=own, tensorboard_logger=None, args=args)
    openrlhf.join(trainer, run)
    logs = {"policy_loss": 0.5, "kl": None, "generated_samples": ["2 + 2? 4", 0.75]}
    trainer.wandb_logger.log_train(3, logs)
    trainer.wandb_logger.log_eval(3, {"pass1": 0.25})
    trainer.wandb_logger.close()
    assert calls == [("train", 3, logs), ("eval", 3, {"pass1": 0.25}), "closed"]
    latest = run.book.latest()
    assert latest["train/policy_loss"][0] == 0.5
    assert latest["eval/pass1"][1]["gradient_step"] == 3
    assert "train/kl" not in latest
    (row,) = run.book.rollouts().to_pylist()
    assert (row["item"], row["reward"], row["gradient_step"]) == ("2 + 2? 4", 0.75, 3)
    assert run.config["logger"]["wandb"]["run_name"] == "n"
    with pytest.raises(BadInput, match="Ray handle"):
        openrlhf.join(object())


class NemoLogger:
    """nemo_rl/utils/logger.py: Logger."""

    def __init__(self, folder: Path) -> None:
        self.loggers: list[Any] = []
        self.base_log_dir = folder

    def log_metrics(
        self, metrics: Any, step: int, prefix: Any = "", step_metric: Any = None, step_finished: bool = False
    ) -> None:
        for logger in self.loggers:
            logger.log_metrics(metrics, step, prefix, step_metric, step_finished)

    def log_hyperparams(self, params: Any) -> None:
        for logger in self.loggers:
            logger.log_hyperparams(params)

    def log_histogram(self, histogram: Any, step: int, name: str) -> None:
        for logger in self.loggers:
            logger.log_histogram(histogram, step, name)

    def log_batched_dict_as_jsonl(self, to_log: Any, filename: str) -> None:
        (self.base_log_dir / filename).write_text(json.dumps({name: np.shape(cells) for name, cells in to_log.items()}))


def test_nemo_rl_logs_metrics_and_batches_with_their_fates(run: Any, tmp_path: Path) -> None:
    logger = NemoLogger(tmp_path)
    nemo_rl.join(logger, run)
    logger.log_hyperparams({"grpo": {"num_prompts_per_step": 2}})
    logger.log_metrics({"loss": 0.5, "timing": {"total": 2.0}}, 4, prefix="train")
    logger.log_metrics({"ray/node.gpu": 0.5, "ray/ray_step": 9}, 4, prefix="", step_metric="ray/ray_step")
    logger.log_histogram([1.0, 2.0], 4, "train/lengths")
    batch = {
        "content": ["a", "b"],
        "rewards": np.array([0.0, 1.0]),
        "input_lengths": np.array([3, 4]),
        "token_ids": np.array([[1, 2, 3, 0], [1, 2, 3, 4]]),
        "token_loss_mask": np.array([[0, 1, 1, 0], [0, 0, 1, 1]]),
        "sample_loss_mask": np.array([1.0, 0.0]),
        "advantages": np.array([[0.0, -0.5, -0.5, 0], [0, 0, 0.5, 0.5]]),
        "generation_logprobs": np.array([[0, -1, -2, 0.0]] * 2),
        "prev_logprobs": np.array([[0, -1, -2, 0.0]] * 2),
    }
    logger.log_batched_dict_as_jsonl(batch, "train_data_step4.jsonl")
    logger.log_batched_dict_as_jsonl({"content": ["c"], "rewards": [1.0]}, "val_data_step4.jsonl")
    logger.log_batched_dict_as_jsonl({"x": [1]}, "other.jsonl")
    assert (tmp_path / "train_data_step4.jsonl").exists()
    rows = run.book.rollouts("mode = 'train'", "item").to_pylist()
    assert [(row["used"], row["reason"], row["advantage"], row["reward"]) for row in rows] == [
        (True, None, -0.5, 0.0),
        (False, "masked", 0.5, 1.0),
    ]
    (tokens,) = run.book.rollout(rows[0]["rollout_id"]).tokens().to_pylist()
    assert (tokens["ids"], tokens["mask"], tokens["sampler_logprobs"]) == ([1, 2, 3], [0, 1, 1], [0.0, -1.0, -2.0])
    assert run.book.rollouts("mode = 'eval'")["item"].to_pylist() == ["c"]
    latest = run.book.latest()
    assert (latest["train/loss"][0], latest["train/timing/total"][1]["gradient_step"]) == (0.5, 4)
    assert latest["ray/node.gpu"][0] == 0.5
    assert run.config["grpo"]["num_prompts_per_step"] == 2
    assert run.bill()["drops"] == {}
    with pytest.raises(BadInput, match="loggers"):
        nemo_rl.join(object())


HOSTS: dict[str, dict[str, list[str]]] = {
    # tinker-cookbook 0.6.1, tinker_cookbook/utils/ml_log.py: Logger, which MultiplexLogger forwards to
    "tinker Logger": {
        "log_hparams": ["config"], "log_metrics": ["metrics", "step"], "enable_event_steps": [],
        "log_metrics_event": ["metrics", "step", "step_metric", "metric_axes"], "log_summary": ["metrics"],
        "log_long_text": ["key", "text"], "close": [], "sync": [], "get_logger_url": [],
    },
    # OpenRLHF 0.11.2, openrlhf/utils/logging_utils.py: WandbLogger, TensorboardLogger
    "openrlhf WandbLogger": {
        "log_train": ["global_step", "logs_dict"], "log_eval": ["global_step", "logs_dict"], "close": [],
    },
}  # fmt: skip
"""Methods that the hosts call, with the names of their arguments."""


@pytest.mark.parametrize(
    ("host", "logger"), list(zip(HOSTS, (tinker.RollbookLogger, openrlhf.RollbookLogger), strict=True))
)
def test_a_logger_has_every_method_of_its_host_with_the_same_arguments(host: str, logger: type) -> None:
    for name, arguments in HOSTS[host].items():
        assert list(inspect.signature(getattr(logger, name)).parameters)[1:] == arguments, name


# tinker-cookbook 0.6.1: the fields of tinker_cookbook/completers.py and tinker_cookbook/rl/types.py
Said = make_dataclass(
    "TokensWithLogprobs",
    [
        "tokens",
        "maybe_logprobs",
        ("stop_reason", str, "stop"),
        ("sequence_id", Any, None),
        ("prompt_cache_hit_tokens", int, 0),
    ],
)
Transition = make_dataclass("Transition", [
    "ob", "ac", "reward", "episode_done", ("metrics", Any, field(default_factory=dict)),
    ("logs", Any, field(default_factory=dict)),
])  # fmt: skip
Trajectory = make_dataclass("Trajectory", ["transitions", "final_ob", ("stop_reason", Any, None)], frozen=True)
RolloutError = make_dataclass("RolloutError", ["error_type", "error_message"], frozen=True)


@dataclass
class TrajectoryGroup:
    trajectories_G: list[Any]
    final_rewards_G: list[float]
    metrics_G: list[dict[str, Any]]
    rollout_errors: list[Any] = field(default_factory=list)

    def get_total_rewards(self) -> list[float]:
        pairs = zip(self.trajectories_G, self.final_rewards_G, strict=True)
        return [sum(step.reward for step in one.transitions) + final for one, final in pairs]


class Limit(enum.Enum):
    """tinker_cookbook/rl/types.py: StopReason."""

    TOO_MANY = "max_tool_calls"


def test_tinker_logs_metrics_and_groups(run: Any) -> None:
    many = SimpleNamespace(loggers=[])  # a MultiplexLogger, which forwards each call
    own = tinker.join(many, run)
    for logger in many.loggers:
        logger.log_hparams(SimpleNamespace(learning_rate=0.1))
        logger.log_metrics({"reward": 0.5, "optim": {"lr": 0.1}}, 3)
        logger.log_metrics_event({"late": 1.0}, 2, "sampler/step")
        logger.enable_event_steps()
        logger.log_summary({"tokens": 12})
        logger.log_long_text("note", "hello")
        logger.sync()
        assert logger.get_logger_url() is None
        assert logger.store is None
    assert own.run is run

    def seen(*ids: int) -> Any:
        return SimpleNamespace(to_ints=lambda: list(ids), length=len(ids))

    def said(*ids: int, stop: str = "stop") -> Any:
        return Said(list(ids), [-1.0] * len(ids), stop)

    steps = [
        Transition(seen(1, 2), said(3), 0.0, False, {"ok": 1}, {"grade": "B"}),
        Transition(seen(1, 2, 3, 9), said(4, 5, stop="length"), 0.5, True),
    ]
    tries = [Trajectory(steps, seen()), Trajectory(steps, seen(), Limit.TOO_MANY), Trajectory(steps[:1], seen())]
    lost = RolloutError("BadRequestError", "too long")
    group = TrajectoryGroup(tries, [0.0, 1.0, 0.0], [{"pass": 0}, {"pass": 1}, {}], [lost])
    (ids,) = tinker.log_groups(
        [group], iteration=3, decode=lambda ids: " ".join(map(str, ids)), policy_version=2, run=run
    )
    run.rollouts.trained(ids, advantage=[-0.5, 0.5, 0.0], gradient_step=3)
    row = run.book.rollout(ids[1])
    wanted = {"reward": 1.5, "rewards/final": 1.0, "advantage": 0.5, "group": "train-3-0", "policy_version": 2,
              "item": "4 5", "prompt_tokens": 2, "sampled_tokens": 3, "other_tokens": 1, "turns": 3,
              "metrics/pass": 1.0}  # fmt: skip
    assert {name: row[name] for name in wanted} == wanted
    turns = row.turns().to_pylist()
    assert [(turn["role"], turn["text"], turn["finish_reason"], turn["logs/grade"]) for turn in turns] == [
        ("assistant", "3", "stop", "B"),
        ("user", "9", None, None),
        ("assistant", "4 5", "length", None),
    ]
    rows = run.book.rollouts(order_by="rollout_id").to_pylist()
    assert [(one["status"], one["stop_reason"], one["error"]) for one in rows] == [
        ("truncated", "length", None),
        ("truncated", "max_tool_calls", None),
        ("completed", "stop", None),
        ("failed", None, "BadRequestError: too long"),
    ]
    assert [one["group"] for one in rows] == ["train-3-0"] * 4
    assert row.task()["prompt"] == "1 2"
    assert run.book.latest()["optim/lr"][1]["gradient_step"] == 3
    assert run.config["learning_rate"] == 0.1
    assert run.bill()["drops"] == {}
    with pytest.raises(BadInput, match="setup_logging"):
        tinker.join(object())


def test_prime_rl_logs_episodes_and_what_is_learned_later(run: Any, tmp_path: Path) -> None:
    """The episodes are those of the importer's fixture, in the format of `Episode.to_record`."""
    folder = prime_traces(tmp_path) / "traces" / "step_3" / "train"
    episodes = [json.loads(line) for line in (folder / "traces.jsonl").read_text().splitlines()]
    updates = [json.loads(line) for line in (folder / "annotations" / "orchestrator.jsonl").read_text().splitlines()]
    monitors = SimpleNamespace(_monitors=[])

    async def train() -> None:
        own = await prime_rl.join(monitors, run)
        for monitor in monitors._monitors:
            await monitor.init(output_dir=tmp_path, run_config={"seed": 3})
            await monitor.log({"reward/mean": 0.5}, 3)
            await monitor.log({"inference/load": 0.25}, None)
            await monitor.log([SimpleNamespace(to_record=lambda one=one: one) for one in episodes], 3, "train", "all")
            await monitor.log(episodes[:1], 3, "train", "effective")
            await monitor.log_annotations(updates)
            await monitor.log_live([])
            await monitor.log_eval_plan("sums", 3, 4, 1)
            await monitor.log_eval_epoch("sums", 3, [])
            await monitor.finalize()
        assert own.run is run

    asyncio.run(train())
    rows = run.book.rollouts(order_by="rollout_id").to_pylist()
    assert len(rows) == 3
    one = run.book.rollout(rows[0]["rollout_id"])
    wanted = {
        "policy_version": 2, "policy_version_end": 3, "reward": 1.1, "metrics/turns": 2.0, "status": "completed",
        "group": "g", "item": "4", "sampled_tokens": 3, "tool_calls": 1, "seconds/model": 3, "used": True,
        "advantage": 0.75, "gradient_step": 4, "staleness": 2, "mode": "train",
    }  # fmt: skip
    assert {name: one[name] for name in wanted} == wanted
    assert one.turns()["role"].to_pylist() == ["assistant", "tool", "assistant"]
    assert one.turns()["seconds"].to_pylist() == [None, None, 2.5]
    assert one.fates()["gradient_step"].to_pylist() == [4]
    assert [row["status"] for row in rows] == ["completed", "completed", "failed"]
    assert rows[2]["error"] == "SandboxError: gone"
    assert run.book.latest()["reward/mean"][1]["gradient_step"] == 3
    assert run.config["seed"] == 3
    assert run.bill()["drops"] == {}
    with pytest.raises(BadInput, match="module prime_rl"):
        asyncio.run(prime_rl.join(object()))


def test_what_these_frameworks_hand_over_never_raises_into_them(run: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slime.log_rollout_data(1, SimpleNamespace(), [object()], None, 1.0)
        openrlhf.RollbookLogger(None, run).log_train(1, {"generated_samples": 5})
        nemo_rl.RollbookLogger(run).log_batch({"content": ["a"], "rewards": ["odd"]}, "train_data_step1.jsonl")
        tinker.log_groups([object()], iteration=1, run=run)
        asyncio.run(prime_rl.RollbookMonitor(None, run).log_episodes([5], 1, "train", "all"))
    assert len(run.bill()["drops"]) == 5
