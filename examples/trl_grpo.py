"""GRPO of TRL on a tiny language model made here, recorded by a callback and by wrapped reward functions.

    pip install 'rollbook[trl]'
    python examples/trl_grpo.py

No network and no GPU: the model has two layers and random weights, and learns to say "cat". The run holds what the
trainer logs, and every completion with its rewards, advantage, group, length and the policy that said it.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed
from trl import GRPOConfig, GRPOTrainer

import rollbook
from datasets import Dataset
from rollbook.adapters.trl import RollbookCallback, completions, record_rewards

WORDS = ["cat", "dog", "sun", "moon", "tree", "hill", "red", "blue", "and", "then"]


def says_cat(completions: list[str], **_: Any) -> list[float]:
    return [text.split().count("cat") / max(1, len(text.split())) for text in completions]


def is_short(completions: list[str], **_: Any) -> list[float]:
    return [-0.02 * len(text.split()) for text in completions]


def make_tokenizer() -> Any:
    vocabulary = {word: i for i, word in enumerate(["<pad>", "<eos>", "<unk>", *WORDS])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )


def make_model() -> Any:
    size = len(WORDS) + 3
    config = GPT2Config(
        vocab_size=size, n_positions=64, n_embd=32, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=1, pad_token_id=0
    )
    return GPT2LMHeadModel(config)


def main() -> None:
    parser = argparse.ArgumentParser(description="GRPO on a tiny random language model with TRL")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args()

    set_seed(args.seed)
    config = GRPOConfig(
        output_dir="trl_out",
        max_steps=args.steps,
        per_device_train_batch_size=32,
        num_generations=8,
        max_completion_length=8,
        learning_rate=1e-2,
        beta=0.0,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=not torch.cuda.is_available(),
        disable_tqdm=True,
        seed=args.seed,
    )
    prompts = [f"{one} and {other}" for one in WORDS[:6] for other in WORDS[:6]]
    with rollbook.init(
        "tiny-lm", "grpo", seed=args.seed, clocks=["train_iter"], total={"train_iter": args.steps}
    ) as run:
        trainer = GRPOTrainer(
            model=make_model(),
            args=config,
            train_dataset=Dataset.from_dict({"prompt": prompts}),
            processing_class=make_tokenizer(),
            reward_funcs=record_rewards([says_cat, is_short]),  # the completions
            callbacks=[RollbookCallback()],  # the scalars, the advantages, the configuration, the checkpoints
        )
        trainer.train()

    book = rollbook.open("runs").one("tiny-lm/grpo", seed=args.seed, id=run.id)
    reward = book.series("reward", x="train_iter")
    print(f"reward: {reward.mean[0]:.2f} at step {reward.x[0]:.0f}, {reward.mean[-1]:.2f} at step {reward.x[-1]:.0f}")
    for row in completions(book, order_by="advantage desc", limit=3).to_pylist():
        print(
            f"advantage {row['advantage']:+.2f} at step {row['policy_version']}: {row['prompt']} -> {row['completion']}"
        )


if __name__ == "__main__":
    main()
