"""MuZero of LightZero, two seeds.

LightZero's own entry trains; one import line is changed. The run's folder is LightZero's experiment folder, with its
checkpoints, its five logs and its two configuration files; the page shows every iteration, episode and field of them.
Two minutes of one core are too short to solve the task: the study shows what is recorded.
"""

import os

from zoo.classic_control.cartpole.config.cartpole_muzero_config import create_config, main_config

import rollbook
from rollbook.adapters.lightzero import train_muzero  # instead of: from lzero.entry import train_muzero

STEPS = int(os.environ.get("GALLERY_STEPS", "60000")) // 150
NUMBERS = {"collector_env_num": 2, "evaluator_env_num": 2}

main_config.env.update(NUMBERS, n_evaluator_episode=2, manager={"shared_memory": False})
main_config.policy.update(
    NUMBERS, n_episode=2, num_simulations=5, update_per_collect=10, batch_size=32, eval_freq=10, cuda=False
)
create_config.env_manager.type = "base"

for seed in range(2):
    with rollbook.init("CartPole-v0", "muzero", seed=seed, total={"env_step": STEPS}, sinks=[]) as run:
        train_muzero([main_config, create_config], seed=seed, max_env_step=STEPS, run=run)
