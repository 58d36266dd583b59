"""A sweep over the learning rate.

PPO learns CartPole-v1 with six learning rates, three seeds each. The best one lies in the middle; the largest fails
in some seeds and not in others. Colour or group the runs by config.learning_rate.
"""

import os

import rollbook
from rollbook.demo.loop import CONFIG, train

STEPS = int(os.environ.get("GALLERY_STEPS", "30000"))

for learning_rate in (1e-4, 3e-4, 1e-3, 2.5e-3, 1e-2, 5e-2):
    for seed in range(3):
        config = {**CONFIG, "env_steps": STEPS, "learning_rate": learning_rate}
        with rollbook.init(
            "cartpole", f"lr-{learning_rate:g}", seed=seed, config=config, total={"env_step": STEPS}
        ) as run:
            train(run)
