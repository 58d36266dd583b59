"""LightZero's experiment folder for a loop of one's own: cross-entropy search on CartPole, without LightZero.

pip install 'rollbook[gym,tensorboard]'
python examples/lightzero_any_loop.py
"""

from __future__ import annotations

import argparse

import gymnasium
import numpy as np

import rollbook
from rollbook.adapters.lightzero import BufferLog, CollectorLog, EvaluatorLog, LearnerLog


def play(env: gymnasium.Env, weights: np.ndarray, seed: int) -> tuple[float, int]:
    """The return and the length of one episode."""
    observation, _ = env.reset(seed=seed)
    total, steps, over = 0.0, 0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(int(observation @ weights > 0))
        total, steps, over = total + float(reward), steps + 1, terminated or truncated
    return total, steps


def main() -> None:
    parser = argparse.ArgumentParser(description="cross-entropy search with LightZero's logs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=10)
    args = parser.parse_args()

    rng, env = np.random.default_rng(args.seed), gymnasium.make("CartPole-v1")
    mean, deviation = np.zeros(4), np.ones(4)
    # Without the sinks "text" and "tensorboard", the logs write these files themselves, as LightZero does.
    with rollbook.init("CartPole-v1", "cem", seed=args.seed, config=args, sinks=[]) as run:
        collector, learner = CollectorLog(run, print_freq=1), LearnerLog(run, show_freq=1)
        evaluator, buffer = EvaluatorLog(run, eval_freq=5), BufferLog(run)
        learner.structure(f"LinearPolicy(in_features={len(mean)}, out_features=1)")
        for iteration in range(args.iterations):
            population = rng.normal(mean, deviation, (20, 4))
            with collector.collecting():
                played = [play(env, weights, int(rng.integers(2**31))) for weights in population]
                for reward, steps in played:
                    collector.episode(reward, steps)
            buffer.pushed(sum(steps for _, steps in played))
            elite = population[np.argsort([reward for reward, _ in played])[-5:]]
            mean, deviation = elite.mean(0), elite.std(0) + 0.05
            env_steps = collector.totals["total_envstep_count"]
            learner.log({"deviation": float(deviation.mean())}, iteration, env_steps)
            collector.report(iteration)
            buffer.report(iteration, env_steps)
            if evaluator.should_eval(iteration):
                with evaluator.evaluating():
                    for i in range(5):
                        evaluator.episode(*play(env, mean, i), env_id=0)
                score = evaluator.reward_mean()
                saved = learner.save_checkpoint({"mean": mean}, iteration, env_steps, score=score)
                evaluator.report(iteration, env_steps, checkpoint=saved)

    print(run.folder)
    for path in sorted(
        p for p in run.folder.rglob("*") if p.is_file() and p.relative_to(run.folder).parts[0] != "data"
    ):
        print("  ", path.relative_to(run.folder))
    book = rollbook.open("runs").one("CartPole-v1/cem", seed=args.seed, id=run.id)
    print(f"mean returns of evaluations: {book.series('evaluator/reward_mean').mean.tolist()}")


if __name__ == "__main__":
    main()
