"""The adapter of OpenRLHF with a stand-in for its trainer; slime, prime-rl, NeMo-RL and Tinker are joined alike.

python examples/rollout_frameworks.py
"""

from __future__ import annotations

from types import SimpleNamespace

import rollbook
from rollbook.adapters.openrlhf import join

with rollbook.init("rlhf", "ppo") as run:
    trainer = SimpleNamespace(wandb_logger=None, tensorboard_logger=None, args=None)  # PPOTrainer(...)
    join(trainer, run)
    for step in range(3):
        trainer.wandb_logger.log_train(step, {"policy_loss": 1 / (step + 1), "generated_samples": ["2 + 2? 4", 1.0]})

print(run.book.rollouts(limit=1)["item"], run.book.latest()["train/policy_loss"][0])
