"""A Lightning training, recorded by a logger.

    pip install 'rollbook[lightning]'
    python examples/lightning_fit.py

The run holds what the module logs, its hyperparameters, and the checkpoints with their scores.
"""

from __future__ import annotations

import argparse
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

import rollbook
from rollbook.adapters.lightning import RollbookLogger


class Line(lightning.LightningModule):
    """Least squares."""

    def __init__(self, lr: float = 0.1) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(4, 1)

    def loss(self, batch: Any) -> Any:
        """The mean squared error of a batch."""
        return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

    def training_step(self, batch: Any, index: int) -> Any:
        """One batch of training."""
        loss = self.loss(batch)
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch: Any, index: int) -> None:
        """One batch of validation."""
        self.log("val/loss", self.loss(batch))

    def configure_optimizers(self) -> Any:
        """Plain gradient descent."""
        return torch.optim.SGD(self.parameters(), lr=self.hparams["lr"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Least squares with Lightning")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()

    lightning.seed_everything(args.seed)
    x = torch.randn(256, 4)
    data = TensorDataset(x, x @ torch.tensor([[1.0], [-2.0], [3.0], [0.5]]))
    logger = RollbookLogger("line", name="sgd", seed=args.seed)
    trainer = lightning.Trainer(
        accelerator="cpu",
        logger=logger,
        max_epochs=args.epochs,
        log_every_n_steps=1,
        enable_progress_bar=False,
        callbacks=[ModelCheckpoint(monitor="val/loss")],
    )
    trainer.fit(Line(), DataLoader(data, batch_size=32, shuffle=True), DataLoader(data, batch_size=256))
    logger.close()

    book = rollbook.open("runs").one("line/sgd", seed=args.seed, id=logger.version)
    losses = book.series("val/loss", x="epoch")
    print(f"validation loss: {losses.mean[0]:.3g} in epoch 0, {losses.mean[-1]:.3g} in epoch {losses.x[-1]:.0f}")
    print(f"best checkpoint: {book.checkpoint('best').path}")


if __name__ == "__main__":
    main()
