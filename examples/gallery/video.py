"""A video of what the agent does, beside its curve.

An agent learns by the cross-entropy method to bring a dot to a target. Its first, best and some other episodes are
filmed, with the trace of its distance. A click on an episode plays the video; the cursor runs along the trace.
"""

import os
from typing import ClassVar

import gymnasium
import numpy as np

import rollbook
from rollbook.capture.gym import RecordEpisodes

GENERATIONS = int(os.environ.get("GALLERY_STEPS", "24000")) // 2000


class Dot(gymnasium.Env):
    """A dot is pushed towards a target; the return is minus the distance at each step."""

    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = gymnasium.spaces.Box(-2, 2, (4,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    render_mode = "rgb_array"

    def reset(self, *, seed=None, options=None):
        """The dot and its target somewhere."""
        super().reset(seed=seed)
        self.at, self.target, self.t = self.np_random.uniform(-1, 1, 2), self.np_random.uniform(-1, 1, 2), 0
        return self._seen(), {}

    def step(self, action):
        """Push."""
        self.at = np.clip(self.at + 0.1 * np.clip(action, -1, 1), -1, 1)
        self.t += 1
        distance = float(np.linalg.norm(self.at - self.target))
        info = {"data": {"running": {"distance": distance}, "final": {"distance_at_end": distance}}}
        return self._seen(), -distance, False, self.t >= 40, info

    def _seen(self):
        return np.concatenate([self.at, self.target]).astype(np.float32)

    def render(self):
        """[64, 64, 3]: the target green, the dot orange."""
        picture = np.full((64, 64, 3), 245, np.uint8)
        for place, colour in ((self.target, (40, 150, 90)), (self.at, (220, 110, 20))):
            x, y = (round((value + 1) * 29) + 2 for value in place)
            picture[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3] = colour
        return picture


for seed in range(2):
    with rollbook.init("dot", "cem", seed=seed, total={"env_step": GENERATIONS * 640}) as run:
        env = RecordEpisodes(Dot(), run.scope("train"), video="first, every 40, best, worst")
        rng = np.random.default_rng(seed)
        mean, spread, env_step = np.zeros((2, 4)), np.ones((2, 4)), 0
        for generation in range(GENERATIONS):
            policies = mean + spread * rng.standard_normal((16, 2, 4))
            returns = []
            for policy in policies:
                seen, _ = env.reset(seed=int(rng.integers(2**31)))
                total, over = 0.0, False
                while not over:
                    run.clock(env_step=env_step, epoch=generation)
                    seen, reward, _, over, _ = env.step(policy @ seen)
                    total, env_step = total + reward, env_step + 1
                returns.append(total)
            elite = policies[np.argsort(returns)[-4:]]
            mean, spread = elite.mean(0), elite.std(0) + 0.05
            run.log({"update/spread": float(spread.mean()), "train/best_return": max(returns)}, env_step=env_step)
        env.close()
