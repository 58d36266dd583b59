"""What an environment says about itself.

A conveyor belt gives its speed at each step, the parts it made at the end of an episode, and a trace of positions,
all in `info`. Nobody wrote a callback: the wrapper records them. The page shows episodes by return, with their traces
and rewards by component.
"""

import os

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import rollbook
from rollbook.capture.gym import RecordEpisodes

STEPS = int(os.environ.get("GALLERY_STEPS", "4000")) // 8


class Belt(gymnasium.Env):
    """Speed pays, wear costs; the belt stops when it is worn out."""

    observation_space = gymnasium.spaces.Box(0, 9, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        """A new belt."""
        super().reset(seed=seed)
        self.speed, self.wear, self.parts = 0.5, 0.0, 0
        return np.array([self.speed, self.wear], np.float32), {}

    def step(self, action):
        """Slower, as before, or faster."""
        self.speed = float(np.clip(self.speed + 0.1 * (int(action) - 1), 0, 1))
        self.wear += self.speed**2 * self.np_random.random() * 0.2
        self.parts += int(self.np_random.random() < self.speed)
        pay = {"output": self.speed, "wear": -0.3 * self.wear}
        info = {
            "data": {"running": {"speed": self.speed}, "final": {"parts_made": self.parts}},
            "media": {"position": [self.parts, round(self.wear, 2)]},
            "reward_components": pay,
        }
        return np.array([self.speed, self.wear], np.float32), sum(pay.values()), self.wear > 1.0, False, info


for name, preference in (("careful", 0.5), ("hasty", 0.2)):
    for seed in range(2):
        with rollbook.init(
            "plant", name, seed=seed, config={"preference": preference}, total={"env_step": 8 * STEPS}
        ) as run:
            envs = SyncVectorEnv([Belt] * 8, autoreset_mode=AutoresetMode.SAME_STEP)
            envs = RecordEpisodes(envs, run.scope("train"), steps="first, every 20, best, worst")
            rng = np.random.default_rng(seed)
            seen, _ = envs.reset(seed=seed)
            for step in range(STEPS):
                run.clock(env_step=8 * step)
                slower = seen[:, 0] > preference + 0.2 * rng.random(8)
                seen, *_ = envs.step(np.where(slower, 0, 2))
            envs.close()
