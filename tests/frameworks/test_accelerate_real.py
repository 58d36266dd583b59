"""Accelerate and a trainer of transformers themselves: a few steps of a model of two layers, without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

GROUPS = ("trl",)

pytest.importorskip("accelerate")

import torch  # noqa: E402
from accelerate import Accelerator  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters import trl  # noqa: E402
from rollbook.adapters.accelerate import RollbookTracker, register  # noqa: E402


@pytest.mark.core
@pytest.mark.parametrize("by_name", [True, False])
def test_a_loop_of_accelerate_is_recorded(own_place: Path, by_name: bool) -> None:
    options: dict[str, Any] = {"name": "line", "seed": 3, "keeper": "inline"}
    register()
    accelerator = Accelerator(cpu=True, log_with="rollbook" if by_name else RollbookTracker("fit", **options))
    accelerator.init_trackers("fit", {"lr": 0.1}, init_kwargs={"rollbook": options})
    model = torch.nn.Linear(1, 1)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    losses = []
    for step in range(20):
        loss = ((model(torch.ones(4, 1)) - 2) ** 2).mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        accelerator.log({"train/loss": loss}, step=step)
    accelerator.end_training()
    (book,) = rollbook.open("runs")
    assert (book.project, book.name, book.seed, book.status) == ("fit", "line", 3, "finished")
    series = book.series("train/loss", x="step")
    assert series.x.tolist() == list(range(20))
    assert series.mean.tolist() == losses
    assert book.config["lr"] == 0.1
    assert book.problems() == []


@pytest.mark.core
def test_report_to_names_rollbook(own_place: Path) -> None:
    trl.register()
    sizes = GPT2Config(vocab_size=16, n_positions=8, n_embd=8, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    data = [{"input_ids": [n, n, n], "labels": [n, n, n]} for n in range(16)]
    arguments = TrainingArguments(
        output_dir="out", max_steps=4, logging_steps=1, save_strategy="no", report_to="rollbook", use_cpu=True, seed=5
    )
    trainer = Trainer(GPT2LMHeadModel(sizes), arguments, train_dataset=data)
    trainer.train()
    (callback,) = (one for one in trainer.callback_handler.callbacks if isinstance(one, trl.RollbookCallback))
    callback.close()
    (book,) = rollbook.open("runs")
    assert (book.project, book.seed, book.status) == ("out", 5, "finished")
    logged = [(row["step"], row["loss"]) for row in trainer.state.log_history if "loss" in row]
    series = book.series("loss", x="gradient_step")
    assert list(zip(series.x.tolist(), series.mean.tolist(), strict=True)) == logged
    assert len(logged) == 4
