"""A policy gradient on a bandit, all of it inside one compiled `lax.scan`, recorded from inside.

    pip install 'rollbook[jax]'
    python examples/jax_scan.py

The rows of all updates arrive while the compiled program runs, in order; nothing is compiled again because of them.
"""

from __future__ import annotations

import argparse
from typing import Any

import jax
import jax.numpy as jnp

import rollbook
from rollbook.adapters.jax import log


def main() -> None:
    parser = argparse.ArgumentParser(description="REINFORCE on a ten-armed bandit, compiled as one scan")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()

    with rollbook.init(
        "bandit", "reinforce", seed=args.seed, config=args, total={"gradient_step": args.updates}
    ) as run:
        key, means_key = jax.random.split(jax.random.key(args.seed))
        means = jax.random.normal(means_key, (10,))

        def update(logits: Any, step_and_key: Any) -> tuple[Any, None]:
            step, key = step_and_key
            arm_key, reward_key = jax.random.split(key)
            arms = jax.random.categorical(arm_key, logits, shape=(args.batch,))
            rewards = means[arms] + jax.random.normal(reward_key, (args.batch,))

            def loss(logits: Any) -> Any:
                advantage = rewards - rewards.mean()
                return -jnp.mean(advantage * jax.nn.log_softmax(logits)[arms])

            value, gradient = jax.value_and_grad(loss)(logits)
            log(
                run,
                {
                    "train/return": rewards.mean(),
                    "update": {"loss/policy": value, "best_arm": jax.nn.softmax(logits)[means.argmax()]},
                },
                env_step=(step + 1) * args.batch,
                gradient_step=step + 1,
            )
            return logits - 0.5 * gradient, None

        @jax.jit
        def train(logits: Any, key: Any) -> Any:
            steps = jnp.arange(args.updates)
            return jax.lax.scan(update, logits, (steps, jax.random.split(key, args.updates)))[0]

        train(jnp.zeros(10), key)

    book = rollbook.open("runs").one("bandit/reinforce", seed=args.seed, id=run.id)
    chance = book.series("update/best_arm", x="env_step")
    print(
        f"chance of the best arm: {chance.mean[0]:.2f} at first, {chance.mean[-1]:.2f} after {chance.x[-1]:.0f} steps"
    )


if __name__ == "__main__":
    main()
