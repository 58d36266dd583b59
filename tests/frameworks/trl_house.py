"""A GRPO training by TRL with two reward functions (one a model), an environment with tools and a group filter.

    python trl_house.py FOLDER                 one attempt; with $KILL_AT it kills itself while that batch is judged
    python trl_house.py FOLDER resumed         goes on from the last checkpoint
    python trl_house.py FOLDER anew            resumes the run, and trains from the beginning

FOLDER then has the run, TRL's own files, `seen.jsonl` (what `compute_loss` got), `log.json` and `drops.json`.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2ForSequenceClassification, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import GRPOConfig, GRPOTrainer

import rollbook
from datasets import Dataset
from rollbook.adapters.trl import RollbookCallback, record_rewards

PLACES = ["hall", "garden", "cellar"]
WORDS = ["<pad>", "<eos>", "<unk>", "look", "user", "assistant", "tool", "find", "the", "cat", "dog", *PLACES]
TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} {% for c in m['tool_calls'] or [] %}"
    "{{ c['function']['name'] }} {{ c['function']['arguments'] | tojson }} {% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}assistant {% endif %}"
)
STEPS, SAVED, KILLED = 8, 3, 5


class Talker(PreTrainedTokenizerFast):
    """A tokenizer whose answers call the tool `look` where they say "look", with the next word as the place."""

    def parse_response(self, ids: Any, **_: Any) -> dict[str, Any]:
        words = self.decode(ids, skip_special_tokens=True).split()
        calls = [
            {"type": "function", "function": {"name": "look", "arguments": {"place": place}}}
            for word, place in itertools.pairwise(words)
            if word == "look"
        ]
        return {"role": "assistant", "content": " ".join(words), **({"tool_calls": calls[:1]} if calls else {})}


class House:
    """An environment: the cat is in the cellar; other words than places are refused."""

    def reset(self, **_: Any) -> None:
        self._found = 0.0

    def look(self, place: str) -> str:
        """Look whether the cat is there.

        Args:
            place: where to look.
        """
        if place not in PLACES:
            raise ValueError(f"no {place} here")
        self._found = max(self._found, float(place == "cellar"))
        return "cat" if place == "cellar" else "dog"

    def get_reward(self) -> float:
        return self._found


def says_cat(completions: list[Any], trainer_state: Any, **_: Any) -> list[float]:
    if os.environ.get("KILL_AT") == str(trainer_state.global_step):
        os.kill(os.getpid(), signal.SIGKILL)
    return [float("cat" in talk[-1]["content"].split()) for talk in completions]


class Filtering(GRPOTrainer):
    """Leaves groups of one reward out of the loss, as a dynamic sampler would; tells what it trained on."""

    seen: Any = None

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        found = super()._generate_and_score_completions(inputs)
        found["completion_mask"] = found["completion_mask"] * (found["advantages"] != 0).unsqueeze(1)
        return found

    def compute_loss(self, model: Any, inputs: Any, *rest: Any, **more: Any) -> Any:
        mask = inputs["completion_mask"].sum(dim=1).tolist()
        for ids, advantage, kept in zip(inputs["completion_ids"], inputs["advantages"].tolist(), mask, strict=True):
            said = [token for token in ids.tolist() if token > 1]
            line = {"step": self.state.global_step + 1, "ids": said, "advantage": advantage, "kept": kept > 0}
            self.seen.write(json.dumps(line) + "\n")
        self.seen.flush()
        return super().compute_loss(model, inputs, *rest, **more)


def train(folder: str, resume: bool, anew: bool) -> None:
    """One attempt of the training."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    place = Path(folder)
    vocabulary = {word: n for n, word in enumerate(WORDS)}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    special = {"pad_token": "<pad>", "eos_token": "<eos>", "unk_token": "<unk>", "padding_side": "left"}
    tokenizer = Talker(tokenizer_object=core, chat_template=TEMPLATE, **special)
    tokenizer.response_template = {"calls": "look <place>"}  # else TRL looks for the template of a known model
    size = {"vocab_size": len(WORDS), "n_positions": 128, "n_embd": 16, "n_layer": 2, "n_head": 2}
    config = GPT2Config(**size, bos_token_id=1, eos_token_id=1, pad_token_id=0, num_labels=1, name_or_path="org/judge")
    arguments = GRPOConfig(
        output_dir=str(place / "out"), per_device_train_batch_size=8, num_generations=4, max_completion_length=48,
        max_tool_calling_iterations=2, max_steps=STEPS, logging_steps=int(os.environ.get("LOG_EVERY", "1")),
        save_steps=SAVED, beta=0.0, report_to=[],
        use_cpu=True, log_completions=True, disable_tqdm=True, seed=3, learning_rate=1e-2,
        gradient_accumulation_steps=2, reward_weights=[1.0, 0.5],
        generation_kwargs={"exponential_decay_length_penalty": [4, 1.6]},  # short answers, so that tools' answers fit
    )  # fmt: skip
    resuming = {"resume": "must"} if resume or anew else {}
    run = rollbook.init("trl", "proof", dir=place / "runs", sinks=(), keeper="inline", **resuming)
    prompts = [[{"role": "user", "content": f"find the {word}"}] for word in ("cat", "dog", *PLACES)]
    trainer = Filtering(
        model=GPT2LMHeadModel(config),
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        processing_class=tokenizer,
        reward_funcs=record_rewards([says_cat, GPT2ForSequenceClassification(config)], run),
        reward_processing_classes=[None, tokenizer],
        environment_factory=House,
        callbacks=[RollbookCallback(run)],
    )
    with open(place / "seen.jsonl", "a") as trainer.seen:
        trainer.train(resume_from_checkpoint=resume or None)
    history = [{key: value for key, value in row.items() if value is not None} for row in trainer.state.log_history]
    (place / "log.json").write_text(json.dumps(history))
    (place / "drops.json").write_text(json.dumps(run.bill()["drops"]))
    (place / "remarks.json").write_text(json.dumps(run.bill()["remarks"]))
    run.finish()


if __name__ == "__main__":
    train(sys.argv[1], "resumed" in sys.argv, "anew" in sys.argv)
