"""The training loop of the demo: PPO learns CartPole-v1, and rollbook records it.

    with rollbook.init("cartpole", "ppo", seed=3, config=CONFIG, total={"env_step": CONFIG["env_steps"]}) as run:
        train(run)

Read this file to see how your own loop would use rollbook. After each checkpoint the environments restart from a seed
that depends on the step. So a resumed run continues exactly as the uninterrupted one would have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import rollbook
from rollbook.demo.agent import Agent, Rollout
from rollbook.demo.net import Array
from rollbook.system.optional import need

__all__ = ["CONFIG", "GOAL", "train"]

GOAL = 475.0
"""The mean return over 20 evaluation episodes at which CartPole-v1 counts as solved."""

CONFIG: dict[str, Any] = {
    "env": "CartPole-v1",
    "algo": "ppo",
    "env_steps": 100_000,
    "n_envs": 8,
    "rollout_steps": 128,
    "learning_rate": 2.5e-3,
    "checkpoint_every_updates": 10,
    "evaluation_episodes": 20,
    "agent": {"hidden": 64, "gamma": 0.99, "trace": 0.95, "clip": 0.2, "passes": 10, "batch_size": 256},
}


def train(run: rollbook.Run) -> float:
    """Learn until `config["env_steps"]`, from the start or from the run's last checkpoint.

    Args:
      run: an open run whose config has the entries of `CONFIG`.
    Returns:
      The last evaluation: the mean return of 20 episodes; NaN if there was none.
    Raises:
      MissingExtra: gymnasium is not installed.
    """
    config = run.config
    seed = run.seed or 0
    agent = Agent(4, 2, seed=seed, **config["agent"])
    env_step = updates = 0
    mean = float("nan")
    if run.resumed and (restored := run.restore("last")):
        agent.load_state_dict(restored.state)
        env_step, updates = restored.clocks["env_step"], restored.clocks["epoch"]
        mean = mean if restored.score is None else restored.score

    envs = rollbook.RecordEpisodes(_environments(config), run.scope("train"))
    observations, _ = envs.reset(seed=_seed(seed, env_step))
    update = run.scope("update")
    while env_step < config["env_steps"]:
        learning_rate = config["learning_rate"] * (1 - env_step / config["env_steps"])
        with run.timer("collect"):
            rollout, observations = _collect(run, agent, envs, observations, env_step)
            env_step += rollout.actions_TN.size
        with run.timer("update"):
            report = agent.update(rollout, learning_rate=learning_rate)
            updates += 1
        update.log(
            {**report, "learning_rate": learning_rate},
            env_step=env_step,
            gradient_step=agent.gradient_steps,
            epoch=updates,
        )

        if updates % config["checkpoint_every_updates"] == 0 or env_step >= config["env_steps"]:
            with run.timer("evaluate"):
                returns = _evaluate(agent, run.scope("test"), config, seed=_seed(seed, env_step))
                mean = float(np.mean(returns))
            with run.timer("checkpoint"):
                checkpoint = run.save_checkpoint(agent.state_dict(), score=mean, keep=3)
            run.scope("test", at=checkpoint).log({"return": mean, "return_std": float(np.std(returns))})
            observations, _ = envs.reset(seed=_seed(seed, env_step))
    envs.close()
    run.summary["test/return"] = mean
    run.summary["solved"] = mean >= GOAL
    return mean


def _environments(config: dict[str, object]) -> object:
    """The vector of training environments; an episode that ends is reset within the same step."""
    gymnasium = need("gymnasium", extra="gym", why="the demo's environment")
    return gymnasium.make_vec(
        config["env"],
        num_envs=config["n_envs"],
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP},
    )


def _collect(
    run: rollbook.Run, agent: Agent, envs: Any, observations_NO: Array, env_step: int
) -> tuple[Rollout, Array]:
    """Let the agent act from `env_step` on. Returns the rollout and the observations at its end."""
    seen, acted, after, rewards, terminated, ended = [], [], [], [], [], []
    for _ in range(run.config["rollout_steps"]):
        env_step += len(observations_NO)
        run.clock(env_step=env_step)  # an episode that ends in this step is recorded here
        seen.append(observations_NO)
        acted.append(agent.act(observations_NO))
        observations_NO, rewards_N, terminated_N, truncated_N, info = envs.step(acted[-1][0])
        ended_N = terminated_N | truncated_N
        after_NO = observations_NO
        if ended_N.any():  # the next observation is the end of the old episode, not the start of the new one
            after_NO = observations_NO.copy()
            for i in np.flatnonzero(ended_N):
                after_NO[i] = info["final_obs"][i]
        after.append(after_NO)
        rewards.append(rewards_N)
        terminated.append(terminated_N)
        ended.append(ended_N)
    actions_TN, log_probs_TN, values_TN = (np.array(column) for column in zip(*acted, strict=True))
    next_values_TN = agent.value(np.concatenate(after)).reshape(actions_TN.shape)
    rollout = Rollout(
        observations_TNO=np.array(seen),
        actions_TN=actions_TN,
        log_probs_TN=log_probs_TN,
        values_TN=values_TN,
        rewards_TN=np.array(rewards),
        terminated_TN=np.array(terminated, dtype=float),
        ended_TN=np.array(ended, dtype=float),
        next_values_TN=next_values_TN,
    )
    return rollout, observations_NO


def _evaluate(agent: Agent, scope: rollbook.Scope, config: dict[str, Any], *, seed: int) -> list[float]:
    """Returns of episodes in which the agent always takes its most likely action."""
    gymnasium = need("gymnasium", extra="gym", why="the demo's environment")
    env = rollbook.RecordEpisodes(gymnasium.make(config["env"]), scope, curves=False)
    returns = []
    for episode in range(config["evaluation_episodes"]):
        observation, _ = env.reset(seed=seed + 1 + episode)
        total, ended = 0.0, False
        while not ended:
            action = int(agent.best_action(observation[None])[0])
            observation, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            ended = terminated or truncated
        returns.append(total)
    env.close()
    return returns


def _seed(seed: int, env_step: int) -> int:
    """A seed for the environments from `env_step` on."""
    return int(np.random.SeedSequence([seed, env_step]).generate_state(1)[0] >> 1)
