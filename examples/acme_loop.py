"""Acme's EnvironmentLoop with a run behind its loggers: Q-learning on a corridor of ten fields.

    pip install 'rollbook[acme]'
    python examples/acme_loop.py

Every episode and every update is in the book, raw, at the steps Acme counted; the terminal shows one line a second, the
training return smoothed, the evaluations aggregated.
"""

from __future__ import annotations

import argparse
from typing import Any

import acme
import dm_env
import numpy as np

import rollbook
from rollbook.adapters import acme as acme_loggers  # instead of: from acme.utils import loggers as acme_loggers


class Corridor(dm_env.Environment):
    """Right leads to the goal, left back; after 30 steps it is over."""

    def reset(self) -> Any:
        """Begin an episode."""
        self.at, self.steps = 3, 0
        return dm_env.restart(self.at)

    def step(self, action: int) -> Any:
        """Go left (0) or right (1)."""
        self.steps += 1
        self.at = max(0, self.at + (1 if action else -1))
        if self.at == 9:
            return dm_env.termination(1.0, self.at)
        return dm_env.truncation(-0.01, self.at) if self.steps == 30 else dm_env.transition(-0.01, self.at)

    def observation_spec(self) -> Any:
        """The field, 0 to 9."""
        return dm_env.specs.DiscreteArray(10)

    def action_spec(self) -> Any:
        """Left or right."""
        return dm_env.specs.DiscreteArray(2)


class Agent(acme.Actor):
    """Epsilon-greedy Q-learning; `logger=None` makes an agent that only acts."""

    def __init__(self, q: Any, epsilon: float, seed: int, logger: Any = None, counter: Any = None) -> None:
        self.q, self.epsilon, self.rng = q, epsilon, np.random.default_rng(seed)
        self.logger, self.counter = logger, counter

    def select_action(self, observation: Any) -> int:
        """Act."""
        explore = self.rng.random() < self.epsilon
        return int(self.rng.integers(2) if explore else self.q[observation].argmax())

    def observe_first(self, timestep: Any) -> None:
        """Note where the episode begins."""
        self.last = timestep

    def observe(self, action: Any, next_timestep: Any) -> None:
        """Note what happened."""
        self.transition = self.last.observation, action, next_timestep
        self.last = next_timestep

    def update(self, wait: bool = False) -> None:
        """Learn from it."""
        state, action, after = self.transition
        error = after.reward + 0.95 * after.discount * self.q[after.observation].max() - self.q[state, action]
        self.q[state, action] += 0.5 * error
        self.logger.write({"td_error": abs(error), **self.counter.increment(steps=1)})


def main() -> None:
    parser = argparse.ArgumentParser(description="Q-learning in Acme's EnvironmentLoop")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=10)
    args = parser.parse_args()

    with rollbook.init("corridor", "q-learning", seed=args.seed, config=args, sinks=["text"]) as run:
        q = np.zeros((10, 2))
        counter = acme_loggers.Counter()
        learner_counter = acme_loggers.Counter(counter, "learner", time_delta=0.0)
        agent = Agent(q, 0.3, args.seed, acme_loggers.make_logger(run, prefix="learner"), learner_counter)
        train_logger = acme_loggers.make_logger(run, prefix="train_loop", smoothing_regex="return")
        eval_logger = acme_loggers.make_logger(run, prefix="eval_loop", aggregate_regex="return")
        train_loop = acme.EnvironmentLoop(Corridor(), agent, counter=counter, logger=train_logger)
        eval_loop = acme.EnvironmentLoop(Corridor(), Agent(q, 0.0, args.seed), logger=eval_logger, should_update=False)
        for _ in range(args.rounds):
            train_loop.run(num_episodes=5)
            eval_loop.run(num_episodes=3)
            eval_logger.dump()

    book = rollbook.open("runs").one("corridor/q-learning", seed=args.seed, id=run.id)
    returns = book.series("train/return", x="env_step")  # train_loop/episode_return
    print(f"{len(returns.x)} training episodes, {len(book.series('learner/td_error').x)} updates kept")
    print(f"last evaluation: {book.series('eval_loop/episode_return_mean').mean[-1]:.3f}")


if __name__ == "__main__":
    main()
