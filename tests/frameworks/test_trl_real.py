"""TRL itself: GRPO and RLOO on a language model of two layers that is made here, for a few steps, without a network."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

GROUPS = ("trl",)

pytest.importorskip("trl")

import torch  # noqa: E402
from pyarrow import parquet  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast  # noqa: E402
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer  # noqa: E402

import rollbook  # noqa: E402
from datasets import Dataset  # noqa: E402
from rollbook.adapters.trl import RollbookCallback, completions, record_rewards  # noqa: E402

WORDS = [f"{thing}{n}" for thing in ("cat", "dog", "sun", "moon") for n in range(5)]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    torch.set_num_threads(1)


@pytest.fixture
def run(own_place: Path) -> Iterator[Any]:
    run = rollbook.init("trl", "test", dir=own_place / "runs", sinks=(), keeper="inline", clocks=("train_iter",))
    yield run
    run.finish()


def tokenizer() -> Any:
    special = ["<pad>", "<eos>", "<unk>"]
    vocabulary = {word: i for i, word in enumerate(special + WORDS)}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )


def model() -> Any:
    torch.manual_seed(0)
    size = len(WORDS) + 3
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=size,
            n_positions=64,
            n_embd=16,
            n_layer=2,
            n_head=2,
            bos_token_id=1,
            eos_token_id=1,
            pad_token_id=0,
        )
    )


def short(completions: list[str], **_: Any) -> list[float]:
    return [-float(len(text.split())) for text in completions]


async def cats(completions: list[str], bonus: list[float], log_extra: Any, **_: Any) -> list[float | None]:
    log_extra("words", [len(text.split()) for text in completions])
    return [None if "dog" in text else text.count("cat") * b for text, b in zip(completions, bonus, strict=True)]


def trainer(kind: str, own_place: Path, callback: Any, rewards: Any, **more: Any) -> Any:
    arguments: dict[str, Any] = {
        "output_dir": str(own_place / "out"),
        "per_device_train_batch_size": 4,
        "num_generations": 4,
        "max_completion_length": 6,
        "max_steps": 3,
        "logging_steps": 1,
        "save_strategy": "no",
        "beta": 0.0,
        "report_to": [],
        "use_cpu": True,
        "log_completions": True,
        "disable_tqdm": True,
        "seed": 3,
    }
    arguments.update(more)
    config, cls = {"grpo": (GRPOConfig, GRPOTrainer), "rloo": (RLOOConfig, RLOOTrainer)}[kind]
    prompts = [" ".join(WORDS[i : i + 3]) for i in range(8)]
    data = Dataset.from_dict({"prompt": prompts, "bonus": [0.1 * i for i in range(8)]})
    return cls(
        model=model(),
        args=config(**arguments),
        train_dataset=data,
        eval_dataset=data.select(range(2)),
        processing_class=tokenizer(),
        reward_funcs=rewards,
        callbacks=[callback],
    )


def native_rows(one: Any) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if value is not None} for row in one.state.log_history]


def recorded_rows(run: Any) -> list[dict[str, Any]]:
    identity = ("time", "gradient_step", "train_iter", "policy_version", "env_step", "episode", "epoch", "inferred")
    found = []
    for row in run.book.metrics().to_pylist():
        kept = {key: value for key, value in row.items() if value is not None and key not in identity}
        ours = ("samples/", "host/", "rollbook/")
        kept = {key.removeprefix("value/"): value for key, value in kept.items() if not key.startswith(ours)}
        if set(kept) - {"step"}:
            found.append(kept)
    return found


def column(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


def written(own_place: Path) -> list[dict[str, Any]]:
    files = sorted((own_place / "out" / "completions").glob("*.parquet"))
    return [row for file in files for row in parquet.read_table(file).to_pylist()]


@pytest.mark.core
def test_grpo_scalars_completions_rewards_and_advantages_are_what_trl_has(
    run: Any, own_place: Path, reads_as: Any
) -> None:
    one = trainer("grpo", own_place, RollbookCallback(run), record_rewards([short, cats], run))
    assert one.reward_func_names == ["short", "cats"]
    one.train()
    native = native_rows(one)
    assert len(native) == 4  # three steps and the last words
    assert recorded_rows(run) == native
    assert run.book.series("loss", x="train_iter").x.tolist() == [1, 2, 3]

    theirs, ours = written(own_place), completions(run.book).to_pylist()
    assert len(theirs) == 12
    assert [(row["prompt"], row["completion"]) for row in ours] == [(r["prompt"], r["completion"]) for r in theirs]
    for name in ("short", "cats"):
        ours_single = torch.tensor([float("nan") if v is None else v for v in column(ours, f"rewards/{name}")])
        theirs_single = torch.tensor([float("nan") if v is None else v for v in column(theirs, name)])  # float32 there
        assert torch.equal(ours_single.nan_to_num(-9), theirs_single.nan_to_num(-9)), name
    assert [row["advantage"] for row in ours] == [row["advantage"] for row in theirs]
    assert [row["extra/words"] for row in ours] == [row["words"] for row in theirs]
    assert [row["policy_version"] for row in ours] == [0] * 4 + [1] * 4 + [2] * 4
    assert [row["group"] for row in ours] == ["0-0"] * 4 + ["1-0"] * 4 + ["2-0"] * 4
    assert {row["mode"] for row in ours} == {"train"}
    clipped = [row["stop_reason"] == "length" for row in ours]
    ratios = [row["completions/clipped_ratio"] for row in native[:3]]
    assert [sum(clipped[i : i + 4]) / 4 for i in (0, 4, 8)] == ratios
    lengths = [row["completions/mean_length"] for row in native[:3]]
    assert [sum(r["sampled_tokens"] for r in ours[i : i + 4]) / 4 for i in (0, 4, 8)] == lengths
    reads_as(run.book, {"train/reward": "reward", "update/loss/total": "loss", "update/learning_rate": "learning_rate"})
    assert [(row["used"], row["gradient_step"], row["staleness"]) for row in ours] == [
        (True, step, 0) for step in (1, 2, 3) for _ in range(4)
    ]
    assert run.book.table("fates").num_rows == 12
    assert run.book.rollout(ours[0]["rollout_id"]).turns()["text"].to_pylist() == [theirs[0]["completion"]]
    means = [row["reward"] for row in native[:3]]
    assert [sum(r["reward"] for r in ours[i : i + 4]) / 4 for i in (0, 4, 8)] == pytest.approx(means)
    assert run.bill()["drops"] == {}


def test_several_batches_and_logging_every_other_step_lose_no_advantage(run: Any, own_place: Path) -> None:
    one = trainer(
        "grpo",
        own_place,
        RollbookCallback(run),
        record_rewards(short, run),
        gradient_accumulation_steps=4,
        steps_per_generation=2,
        logging_steps=2,
        max_steps=4,
    )
    one.train()
    table = completions(run.book)
    assert len(table) == 4 * 4 * 4  # two batches of eight in each of four steps
    assert table["advantage"].null_count == 0
    assert table["batch"].unique().to_pylist() == ["0", "0.1", "1", "1.1", "2", "2.1", "3", "3.1"]
    assert len(set(table["rollout_id"].to_pylist())) == len(table) == run.book.table("fates").num_rows
    files = {(row["prompt"], row["completion"]): row["advantage"] for row in written(own_place)}
    known = {(row["prompt"], row["completion"]): row["advantage"] for row in table.to_pylist()[-8:]}
    assert {key: files[key] for key in known} == known
    assert table["gradient_step"].to_pylist() == [step for step in (1, 2, 3, 4) for _ in range(16)]


def test_each_use_is_a_fate_and_what_was_not_used_has_one_as_well(run: Any, own_place: Path) -> None:
    """Two passes over batches of four micro-batches, a step for each two; training ends within a batch."""
    more = {"steps_per_generation": 4, "num_iterations": 2, "gradient_accumulation_steps": 2, "max_steps": 5}
    seen: dict[int, list[tuple[int, ...]]] = {}
    one = trainer("grpo", own_place, RollbookCallback(run), record_rewards([short], run), **more)
    compute = one.compute_loss

    def compute_loss(model: Any, inputs: Any, **rest: Any) -> Any:
        rows = inputs["completion_ids"].tolist()
        advantages = inputs["advantages"].tolist()
        seen.setdefault(one.state.global_step + 1, []).extend(zip(map(tuple, rows), advantages, strict=True))
        return compute(model, inputs, **rest)

    one.compute_loss = compute_loss
    one.train()
    fates, rollouts = run.book.table("fates").to_pylist(), run.book.rollouts().to_pylist()
    ids = {row["rollout_id"]: row["ids"] for row in run.book.table("tokens").to_pylist() if row["ids"]}

    def told(pairs: Any) -> list[Any]:
        return sorted((tuple(token for token in row if token > 1), advantage) for row, advantage in pairs)

    for step, pairs in seen.items():
        ours = [
            (ids[row["rollout_id"]], row["advantage"]) for row in fates if row["used"] and row["gradient_step"] == step
        ]
        assert told(ours) == told(pairs)
    used = [row for row in fates if row["used"]]
    assert len(rollouts) == 32
    assert sorted((row["gradient_step"], row["epoch"], row["staleness"]) for row in used) == sorted(
        (step, epoch, stale)
        for step, epoch, stale in ((1, 0, 0), (2, 0, 1), (3, 1, 2), (4, 1, 3), (5, 0, 0))
        for _ in range(8)
    )
    assert [row["reason"] for row in rollouts if not row["used"]] == ["surplus"] * 8
    first = next(row for row in used if row["epoch"] == 0)["rollout_id"]
    late = [row for row in run.book.rollout(first).tokens().to_pylist() if row["trainer_logprobs"]]
    assert len(late[0]["trainer_logprobs"]) == len(ids[first])
    assert run.bill()["drops"] == {}


def test_truncated_completions_that_the_loss_leaves_out_are_overlong(run: Any, own_place: Path) -> None:
    one = trainer("grpo", own_place, RollbookCallback(run), record_rewards(short, run), mask_truncated_completions=True)
    one.train()
    rows = completions(run.book).to_pylist()
    assert {row["status"] for row in rows} == {"completed", "truncated"}
    for row in rows:
        assert (row["used"], row["reason"] == "overlong") == (
            (row["status"] == "completed"),
            (row["status"] != "completed"),
        )
    assert run.book.table("fates").num_rows == len(rows) == 12


def test_rloo_is_recorded_as_well_although_it_writes_no_files(run: Any, own_place: Path) -> None:
    one = trainer("rloo", own_place, RollbookCallback(run), record_rewards([short, cats], run))
    one.train()
    assert recorded_rows(run) == native_rows(one)
    ours = completions(run.book).to_pylist()
    assert len(ours) == 12
    assert [row["advantage"] for row in ours[-4:]] == list(one._logs["advantages"])
    assert sum(row["advantage"] for row in ours[:4]) == pytest.approx(0, abs=1e-5)


def test_evaluation_is_kept_apart(run: Any, own_place: Path) -> None:
    one = trainer("grpo", own_place, RollbookCallback(run), record_rewards(short, run), per_device_eval_batch_size=4)
    one.train()
    one.evaluate()
    table = completions(run.book, where="mode = 'eval'")
    assert len(table) == 8
    assert table["advantage"].null_count == 0
    assert table["group"].to_pylist()[0].startswith("eval-3")
    assert table["reason"].unique().to_pylist() == ["evaluation"]
    assert run.book.sql("select count(*) from rollouts anti join fates using (rollout_id)").fetchall() == [(0,)]
    assert run.book.latest()["eval_reward"][0] == one.state.log_history[-1]["eval_reward"]


def test_checkpoints_are_registered_and_a_resumed_training_does_not_repeat_itself(own_place: Path) -> None:
    options = {"dir": own_place / "runs", "sinks": (), "keeper": "inline"}
    run = rollbook.init("trl", "resumed", **options)
    saving = {"save_strategy": "steps", "save_steps": 2}
    trainer("grpo", own_place, RollbookCallback(run), record_rewards(short, run), max_steps=3, **saving).train()
    assert [
        (row["gradient_step"], Path(row["path"]).name) for row in run.book.checkpoints(everything=True).to_pylist()
    ] == [
        (2, "checkpoint-2"),
        (3, "checkpoint-3"),
    ]
    run.finish("crashed")
    run = rollbook.init("trl", "resumed", resume="must", **options)
    one = trainer("grpo", own_place, RollbookCallback(run), record_rewards(short, run), max_steps=4, **saving)
    one.train(resume_from_checkpoint=str(own_place / "out" / "checkpoint-2"))
    run.finish()
    assert run.book.series("loss", x="gradient_step").x.tolist() == [1, 2, 3, 4]
    assert sorted(completions(run.book)["policy_version"].unique().to_pylist()) == [0, 1, 2, 3]
    assert run.book.summary["stopped_by"] == "max_steps"


def test_without_a_run_the_callback_opens_one_and_rewards_find_it(own_place: Path) -> None:
    callback = RollbookCallback(run_options={"dir": own_place / "runs", "sinks": (), "keeper": "inline"})
    trainer("grpo", own_place, callback, record_rewards([short])).train()
    callback.close()
    book = rollbook.open(own_place / "runs").one("out/grpo", seed=3)
    assert book.status == "finished"
    assert len(completions(book)) == 12
    assert (book.config["num_generations"], book.config["model"]["n_layer"]) == (4, 2)


def test_a_reward_that_raises_leaves_its_completions_in_the_book(run: Any, own_place: Path) -> None:
    def broken(completions: list[str], trainer_state: Any, **_: Any) -> list[float]:
        if trainer_state.global_step == 1:
            raise ZeroDivisionError
        return [0.0] * len(completions)

    one = trainer("grpo", own_place, RollbookCallback(run), record_rewards([short, broken], run))
    with pytest.raises(ZeroDivisionError):
        one.train()
    rows = completions(run.book).to_pylist()
    assert [row["rewards/broken"] for row in rows] == [0.0] * 4 + [None] * 4
    assert [row["reason"] for row in rows[4:]] == ["error"] * 4
    assert all(row["rewards/short"] is not None for row in rows)


def test_recorded_rewards_can_be_sent_to_another_process(run: Any) -> None:
    recorded = pickle.loads(pickle.dumps(record_rewards(short, run)))
    assert recorded.__name__ == "short"
    assert recorded(completions=["a b"], prompts=["the"]) == [-2.0]
    assert completions(run.book)["completion"].to_pylist() == ["a b"]


def test_conversations_are_kept_as_text(run: Any, own_place: Path) -> None:
    def polite(completions: list[Any], **_: Any) -> list[float]:
        return [float(len(messages[0]["content"])) for messages in completions]

    one = trainer("grpo", own_place, RollbookCallback(run), record_rewards(polite, run))
    chat = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    one.processing_class.chat_template = chat
    data = Dataset.from_dict({"prompt": [[{"role": "user", "content": text}] for text in ("the cat", "a dog")]})
    one = GRPOTrainer(
        model=model(),
        args=one.args,
        train_dataset=data,
        processing_class=one.processing_class,
        reward_funcs=one.reward_funcs,
        callbacks=[RollbookCallback(run)],
    )
    one.train()
    rows = completions(run.book).to_pylist()
    assert {row["prompt"] for row in rows} == {"the cat", "a dog"}
    assert [row["completion"] for row in rows] == [row["completion"][0]["content"] for row in written(own_place)]
    assert [row["advantage"] for row in rows] == [row["advantage"] for row in written(own_place)]


class Scorer(torch.nn.Module):
    """A reward model: the score of a text is the sum of its tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.config = GPT2Config(name_or_path="org/scorer")

    def forward(self, input_ids: Any, attention_mask: Any, **_: Any) -> Any:
        scores = (input_ids * attention_mask).sum(dim=1, keepdim=True).float()
        return SimpleNamespace(logits=scores)


async def judged(completions: list[str], **_: Any) -> list[float | None]:
    return [None if "cat" in text else 0.25 * len(text) for text in completions]


def silent(completions: list[str], **_: Any) -> list[None]:
    return [None] * len(completions)


KINDS: dict[str, tuple[list[Any], list[float] | None, bool]] = {
    "functions": ([short, cats], None, False),
    "weights": ([short, judged], [0.5, -2.0], False),
    "async alone": ([judged], None, False),
    "nothing but None": ([silent], [3.0], False),
    "a model": ([short, Scorer()], None, False),
    "a model with a weight": ([short, Scorer()], [1.0, 0.5], False),
    "a source that an environment brings": ([short], None, True),
}


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("algorithm", ["grpo", "rloo"])
def test_the_reward_of_a_rollout_is_the_trainers(algorithm: str, kind: str, run: Any, own_place: Path) -> None:
    functions, weights, more = KINDS[kind]
    one = trainer(algorithm, own_place, RollbookCallback(run), record_rewards(functions, run), reward_weights=weights)
    one.reward_processing_classes = [tokenizer() if name == "scorer" else None for name in one.reward_func_names]
    if more:  # as the trainer does for an environment with get_reward()
        one.reward_funcs.append(lambda completions, **_: [7.0] * len(completions))
        one.reward_func_names.append("World")
        one.reward_processing_classes.append(None)
        one.reward_weights = torch.cat([one.reward_weights, torch.ones(1)])
    one.train()
    table = run.book.metrics().to_pylist()
    rewards = {row["gradient_step"]: row["reward"] for row in table if row.get("reward") is not None}
    samples = completions(run.book).to_pylist()
    for step, native in rewards.items():  # a batch has the gradient step of its row
        batch = [row["reward"] for row in samples if row["gradient_step"] == step and row.get("reward") is not None]
        assert len([row for row in samples if row["gradient_step"] == step]) == 4
        assert sum(batch) / len(batch) == pytest.approx(native, rel=1e-5)
    assert len(rewards) == (0 if kind == "nothing but None" else 3)
    assert rewards or [(row["reward"], row["reason"]) for row in samples] == [(None, "unscorable")] * 12
    names = {name for name in samples[0] if name.startswith("rewards/")}
    if "model" in kind:
        assert names == {"rewards/short", "rewards/scorer"}
        theirs = list(one._logs["rewards"]["scorer"])
        assert [row["rewards/scorer"] for row in samples[-4:]] == theirs
    assert run.book.table("fates").num_rows == 12


@pytest.mark.parametrize("kind", [short, judged], ids=["function", "async"])
def test_lengths_are_those_that_the_trainer_counts_or_empty_where_a_tool_answered(
    kind: Any, run: Any, own_place: Path
) -> None:
    def rollout(prompts: list[str], trainer: Any) -> dict[str, Any]:
        last = 6 - trainer.state.global_step  # each batch has a length of its own, so that no other one fits its row
        ids = [[3, 4, 5, 6, 7, 1][i % 3 : last] for i in range(len(prompts))]
        masks = [[1, 0] * (len(one) // 2) + [1] * (len(one) % 2) for one in ids]
        extra = [[float(i), 2.0] for i in range(len(prompts))]
        return {
            "prompt_ids": [[3, 4]] * len(prompts),
            "completion_ids": ids,
            "logprobs": [[-1.0] * len(one) for one in ids],
            "env_mask": masks,
            "scores": extra,
        }

    one = trainer("grpo", own_place, RollbookCallback(run), record_rewards([kind], run))
    one.rollout_func = rollout
    one.train()
    native = {
        row["gradient_step"]: row["completions/mean_length"]
        for row in run.book.metrics(["completions/mean_length"]).to_pylist()
    }
    for step, mean in native.items():
        lengths = [row["sampled_tokens"] for row in completions(run.book).to_pylist() if row["gradient_step"] == step]
        if kind is judged:
            assert lengths == [None] * 4
        else:
            assert sum(lengths) / 4 == mean
    assert len({*native.values()}) == len(native) == 3, "a join with the neighbour would be seen"
    table = completions(run.book)
    assert table["scores"].to_pylist()[1] == [1.0, 2.0]
    tokens = run.book.table("tokens")
    if kind is short:
        assert tokens["ids"].to_pylist()[:2] == [[3, 4, 5, 6, 7, 1], [4, 5, 6, 7, 1]]
        assert str(tokens["ids"].type.value_type) == "int32"
        assert tokens["mask"].to_pylist()[1] == [1, 0, 1, 0, 1]
        assert tokens["sampler_logprobs"].to_pylist()[1] == [-1.0] * 5
        assert str(tokens["sampler_logprobs"].type.value_type) == "float"
    else:
        assert tokens.num_rows == 0
        assert run.bill()["drops"] == {"trl_masks": 3}
