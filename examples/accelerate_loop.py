"""A training loop of Hugging Face Accelerate, recorded by a tracker.

    pip install torch 'rollbook[accelerate]'
    python examples/accelerate_loop.py

The only lines about rollbook are `register()`, `log_with="rollbook"` and the last two, which read the run.
"""

from __future__ import annotations

import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

import rollbook
from rollbook.adapters.accelerate import register


def main() -> None:
    parser = argparse.ArgumentParser(description="Least squares with Accelerate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()

    set_seed(args.seed)
    register()
    accelerator = Accelerator(cpu=True, log_with="rollbook")
    accelerator.init_trackers("line", vars(args), init_kwargs={"rollbook": {"name": "sgd", "seed": args.seed}})
    model = torch.nn.Linear(4, 1)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.05))
    target = torch.tensor([[1.0], [-2.0], [3.0], [0.5]])
    for step in range(args.steps):
        x = torch.randn(64, 4)
        loss = torch.nn.functional.mse_loss(model(x), x @ target)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        accelerator.log({"train/loss": loss.item()}, step=step)
    accelerator.end_training()

    losses = rollbook.open("runs").one("line/sgd", seed=args.seed).series("train/loss", x="step")
    print(f"loss: {losses.mean[0]:.3f} at step 0, {losses.mean[-1]:.3g} at step {losses.x[-1]:.0f}")


if __name__ == "__main__":
    main()
