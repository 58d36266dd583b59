"""What worker processes of tests do. One that is spawned imports this alone, and not what a file of tests does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def work(target: Any, number: int) -> None:
    """With a run or scope that a worker was handed."""
    target.log({"worker": float(number)}, env_step=number)
    target.run.finish()


def log_alone(log: Callable[..., None], number: int) -> None:
    """With the function alone."""
    log({"worker": float(number)}, env_step=number)


def cartpole(steps: int = 6) -> Any:
    """With an environment of their own."""
    import gymnasium

    return gymnasium.make("CartPole-v1", max_episode_steps=steps)


def attach_and_log(run_id: str, number: int) -> None:
    """With the id of a run."""
    import rollbook

    run = rollbook.attach(run_id)
    for step in range(5):
        run.log({"loss": float(number)}, step=step)
    run.finish()
