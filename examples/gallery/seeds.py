"""Five seeds of two settings.

PPO learns CartPole-v1 with ten passes over each batch, and with two. Both reach the goal in the end, at different
speeds. Compare says which is better and how sure that is; the table folds the seeds of a group into one line.
"""

import os

import rollbook
from rollbook.demo.loop import CONFIG, train

STEPS = int(os.environ.get("GALLERY_STEPS", "40000"))

for name, passes in (("ten passes", 10), ("two passes", 2)):
    for seed in range(5):
        config = {**CONFIG, "env_steps": STEPS, "agent": {**CONFIG["agent"], "passes": passes}, "passes": passes}
        with rollbook.init(
            "cartpole", name.replace(" ", "-"), seed=seed, config=config, total={"env_step": STEPS}
        ) as run:
            train(run)
