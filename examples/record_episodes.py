"""Records a vector of environments, goes from a curve down to the steps of its best episode, and exports them.

Run: python examples/record_episodes.py        (needs gymnasium: pip install 'rollbook[gym]')
"""

import tempfile
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import rollbook
from rollbook.capture.gym import RecordEpisodes
from rollbook.formats import datasets


class Plant(gymnasium.Env):
    """A conveyor belt: speed pays, wear costs; it breaks down when it is worn out."""

    observation_space = gymnasium.spaces.Dict(
        {"speed": gymnasium.spaces.Box(0, 1, (1,), np.float32), "wear": gymnasium.spaces.Box(0, 9, (1,), np.float32)}
    )
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        """A new belt."""
        super().reset(seed=seed)
        self.speed, self.wear, self.parts, self.trace = 0.5, 0.0, 0, []
        return self._observation(), {}

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
        return self._observation(), sum(pay.values()), self.wear > 1.0, False, info

    def _observation(self):
        return {"speed": np.array([self.speed], np.float32), "wear": np.array([self.wear], np.float32)}


ENVS, STEPS = 8, 400

with rollbook.init("plant", "conveyor", seed=1, total={"env_step": ENVS * STEPS}) as run:
    envs = SyncVectorEnv([Plant] * ENVS, autoreset_mode=AutoresetMode.SAME_STEP)
    envs = RecordEpisodes(envs, run.scope("train"), steps="first, every 20, best, worst")
    rng = np.random.default_rng(1)
    envs.reset(seed=1)
    for step in range(STEPS):
        run.clock(env_step=ENVS * step)
        envs.step(rng.integers(0, 3, ENVS))
    envs.close()

book = run.book
print(book.sql('select count(*) as episodes, avg(return) as mean, avg("final/parts_made") as parts from episodes'))

best = book.sql("select episode_id, return, length, env_step from episodes order by return desc limit 1").fetchall()[0]
print(f"\nThe best episode, {best[0]}, returned {best[1]:.2f} in {best[2]} steps, at env_step {best[3]}. Its steps:")
print(
    book.sql(
        f"select t, action, reward, \"running/speed\" from steps where episode_id = '{best[0]}' order by t limit 5"
    )
)
print("What its reward was made of:")
print(book.sql(f"select component, sum from rewards where episode_id = '{best[0]}' order by component"))
print("At that moment of the training:", {name: table.num_rows for name, table in book.at(env_step=best[3]).items()})

with tempfile.TemporaryDirectory() as folder:
    told = datasets.to_jsonl(book, Path(folder) / "best.jsonl", episodes=[best[0]])
    print(f"\nExported {told.episodes} episode of {told.steps} steps:")
    print((Path(folder) / "best.jsonl").read_text().splitlines()[2][:100], "…")
