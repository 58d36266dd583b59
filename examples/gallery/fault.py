"""A fault that the health rules name.

Three seeds of PPO learn as they should; a fourth has a learning rate two hundred times too large, a fifth gets NaN
from its simulator. The alerts name both, with the step, the values and the usual cause. Nobody was asked to add a
check.
"""

import os

import rollbook
from rollbook.demo.loop import CONFIG, train

STEPS = int(os.environ.get("GALLERY_STEPS", "30000"))

for seed in range(5):
    learning_rate = CONFIG["learning_rate"] * (200 if seed == 3 else 1)
    config = {**CONFIG, "env_steps": STEPS, "learning_rate": learning_rate}
    with rollbook.init("cartpole", "ppo", seed=seed, config=config, total={"env_step": STEPS}) as run:
        if seed == 4:
            for step in range(0, STEPS, 1000):
                broken = step > STEPS // 2
                run.log({"train/return": float("nan") if broken else 20.0 + step / 500}, env_step=step)
                run.log({"update/loss/value": float("nan") if broken else 1.0 / (1 + step)}, env_step=step)
        else:
            train(run)
