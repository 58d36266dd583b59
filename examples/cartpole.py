"""The cross-entropy method learns CartPole-v1 with four weights; the wrapper records every episode.

Run: python examples/cartpole.py        (needs gymnasium: pip install 'rollbook[gym]')
"""

import gymnasium
import numpy as np

import rollbook
from rollbook.capture.gym import RecordEpisodes

SEED, GENERATIONS, CANDIDATES, BEST = 0, 12, 24, 6

with rollbook.init("cartpole", "cross-entropy", seed=SEED, total={"epoch": GENERATIONS}) as run:
    rng = np.random.default_rng(SEED)
    env = RecordEpisodes(gymnasium.make("CartPole-v1"), run.scope("train"), clock="env_step")
    search = run.scope("search")
    mean, spread = np.zeros(4), np.ones(4)

    for generation in range(GENERATIONS):
        candidates = rng.normal(mean, spread, size=(CANDIDATES, 4))
        returns = []
        with run.timer("collect"):
            for weights in candidates:
                observation, _ = env.reset(seed=int(rng.integers(2**31)))
                total, ended = 0.0, False
                while not ended:
                    observation, reward, terminated, truncated, _ = env.step(int(observation @ weights > 0))
                    total += float(reward)
                    ended = terminated or truncated
                returns.append(total)
        best = np.argsort(returns)[-BEST:]
        mean, spread = candidates[best].mean(axis=0), candidates[best].std(axis=0) + 0.01
        search.log({"mean": np.mean(returns), "best": np.max(returns), "spread": spread.mean()}, epoch=generation + 1)
        search.log_histogram("returns", returns)
        run.save_checkpoint({"mean": mean, "spread": spread}, score=float(np.mean(returns)), keep=2)

    env.close()
    run.summary["return"] = float(np.mean(returns))

print(f"Mean return of the last generation: {np.mean(returns):.0f} of 500")
print(run.book.sql("select count(*) as episodes, max(return) as best from episodes"))
