"""A loop with the logger of verl, and a run behind it: what verl's own trainer does each step, without GPUs.

    pip install rollbook
    python examples/verl_tracking.py

A policy over four answers learns which of them earns a reward. `Tracking` has the shape of verl's; with verl itself,
VERL_USE_EXTERNAL_MODULES=rollbook.adapters.verl adds "rollbook" to the back ends of trainer.logger instead.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from pathlib import Path

import rollbook
from rollbook.adapters.verl import Tracking

ANSWERS = ("four", "4", "5", "vier")


def main() -> None:
    parser = argparse.ArgumentParser(description="A policy over four answers, logged like verl's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()

    rng, scores = random.Random(args.seed), [0.0] * len(ANSWERS)
    folder = Path("rollouts")
    folder.mkdir(exist_ok=True)
    config = {"trainer": {"rollout_data_dir": str(folder), "total_training_steps": args.steps}, "seed": args.seed}
    tracking = Tracking("arithmetic", "four-answers", ["rollbook"], config)  # verl's shape
    for step in range(1, args.steps + 1):
        weights = [math.exp(score) for score in scores]
        chosen = rng.choices(range(len(ANSWERS)), weights, k=8)
        rewards = [1.0 if ANSWERS[i] == "4" else 0.0 for i in chosen]
        baseline = sum(rewards) / len(rewards)
        for i, reward in zip(chosen, rewards, strict=True):
            scores[i] += 0.1 * (reward - baseline)
        with (folder / f"{step}.jsonl").open("w") as file:  # as verl dumps its rollouts
            for i, reward in zip(chosen, rewards, strict=True):
                row = {"input": "2+2=", "output": ANSWERS[i], "gts": "4", "score": reward, "step": step}
                file.write(json.dumps(row) + "\n")
        p = [weight / sum(weights) for weight in weights]
        entropy = -sum(x * math.log(x) for x in p)
        tracking.log({"critic/score/mean": baseline, "actor/entropy": entropy}, step=step)
    tracking.finish()

    book = rollbook.open("runs").one(id=tracking.run.id)
    best = book.rollouts(where="reward > 0", limit=1).to_pylist()[0]
    score = book.series("critic/score/mean", x="step")
    print(f"mean score {score.mean[0]:.2f} -> {score.mean[-1]:.2f} over {book.rollouts().num_rows} answers")
    print(f"the first that earned a reward: {best['item']!r}, in step {best['step']}")


if __name__ == "__main__":
    main()
