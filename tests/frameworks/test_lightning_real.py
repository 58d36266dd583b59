"""Lightning and Fabric themselves: a regression of a few steps, on the CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GROUPS = ("loggers",)

pytest.importorskip("lightning")

import lightning  # noqa: E402
import torch  # noqa: E402
from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters.lightning import RollbookLogger  # noqa: E402


class Line(lightning.LightningModule):
    """Least squares; keeps what it logged."""

    def __init__(self, lr: float = 0.1) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(1, 1)
        self.losses: list[tuple[int, float]] = []

    def training_step(self, batch: Any, index: int) -> Any:
        loss = ((self.layer(batch[0]) - 2) ** 2).mean()
        self.losses.append((self.global_step, loss.item()))
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch: Any, index: int) -> None:
        self.log("val/loss", ((self.layer(batch[0]) - 2) ** 2).mean())

    def test_step(self, batch: Any, index: int) -> None:
        self.log("test/loss", ((self.layer(batch[0]) - 2) ** 2).mean())

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=self.hparams["lr"])


@pytest.mark.core
def test_a_training_its_test_and_its_checkpoints_are_in_one_run(own_place: Path) -> None:
    data = DataLoader(TensorDataset(torch.ones(20, 1)), batch_size=4)
    logger = RollbookLogger("fit", name="line", seed=3, keeper="inline")
    trainer = lightning.Trainer(
        accelerator="cpu",
        logger=logger,
        max_epochs=4,
        log_every_n_steps=1,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[ModelCheckpoint(monitor="val/loss", save_top_k=2)],
    )
    model = Line()
    trainer.fit(model, data, data)
    trainer.test(model, data, verbose=False)
    logger.close()
    (book,) = rollbook.open("runs")
    assert (book.project, book.name, book.seed, book.status) == ("fit", "line", 3, "finished")
    series = book.series("train/loss", x="step")
    assert list(zip(series.x.tolist(), series.mean.tolist(), strict=True)) == model.losses
    assert len(model.losses) == 20
    assert book.series("val/loss", x="epoch").x.tolist() == [0, 1, 2, 3]
    assert len(book.series("test/loss")) == 1
    assert book.config["lr"] == 0.1
    assert len(book.checkpoints(everything=True)) == 4  # of each epoch; Lightning keeps two of their files
    assert len(book.checkpoints()) == 2
    assert book.checkpoint("best").path.exists()
    assert book.checkpoint("best").score == min(book.series("val/loss").mean.tolist())
    assert book.problems() == []


def test_fabric_logs_the_same_way(own_place: Path) -> None:
    logger = RollbookLogger("fit", name="fabric", keeper="inline")
    fabric = lightning.Fabric(accelerator="cpu", loggers=logger)
    for step in range(5):
        fabric.log("loss", torch.tensor(0.5**step), step=step)
    fabric.log_dict({"a": 1, "b": 2.0}, step=5)
    logger.close()
    (book,) = rollbook.open("runs")
    assert book.series("loss", x="step").mean.tolist() == [0.5**step for step in range(5)]
    assert (book.series("a", x="step").x.tolist(), book.series("b", x="step").mean.tolist()) == ([5], [2.0])


def test_the_older_name_of_the_package_takes_it_too(own_place: Path) -> None:
    """In a process of its own: which package the logger belongs to is settled when the adapter is imported."""
    program = """
import pytorch_lightning as pl, torch
from pytorch_lightning.demos.boring_classes import BoringModel
from pytorch_lightning.loggers import Logger
from rollbook.adapters.lightning import RollbookLogger
logger = RollbookLogger("fit", name="older", keeper="inline")
assert isinstance(logger, Logger)
class Model(BoringModel):
    def training_step(self, batch, index):
        out = super().training_step(batch, index)
        self.log("loss", out["loss"])
        return out
pl.Trainer(accelerator="cpu", logger=logger, max_steps=3, log_every_n_steps=1, enable_progress_bar=False,
           limit_val_batches=0).fit(Model())
logger.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    (book,) = rollbook.open("runs")
    assert book.series("loss", x="step").x.tolist() == [0, 1, 2]
