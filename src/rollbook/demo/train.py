"""The training loop of `rollbook demo`: PPO learns CartPole-v1, and rollbook records it.

    from rollbook.demo.train import main
    main(seed=3)                    # a new run in runs/cartpole
    main(resume="last")             # goes on where the last unfinished one stopped

`train` is the part to read: it shows how a loop of your own would use rollbook. After each checkpoint the environments
start afresh from a seed that the step decides, so a resumed run goes exactly the way the uninterrupted one would have.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import rollbook
from rollbook._optional import need
from rollbook.capture.gym import RecordEpisodes
from rollbook.demo.agent import Agent, Rollout
from rollbook.demo.net import Array
from rollbook.errors import NothingToResume

if TYPE_CHECKING:
    from rollbook.run import Run, Scope
    from rollbook.store.reader import Book

__all__ = ["GOAL", "main", "train"]

PROJECT, NAME = "cartpole", "ppo"
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


def train(run: Run) -> float:
    """Learn until `config["env_steps"]`, from the start or from the run's last checkpoint. Returns the last evaluation.

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
        mean = restored.score

    envs = RecordEpisodes(_environments(config), run.scope("train"))
    observations, _ = envs.reset(seed=_seed(seed, env_step))
    update = run.scope("update")
    while env_step < config["env_steps"]:
        with run.timer("collect"):
            rollout, observations = _collect(agent, envs, observations, config["rollout_steps"])
            env_step += rollout.actions_TN.size
        with run.timer("update"):
            learning_rate = config["learning_rate"] * max(0.0, 1 - env_step / config["env_steps"])
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


def _environments(config: dict[str, Any]) -> Any:
    """The vector of environments to learn in; an episode that ends starts anew within the same step."""
    gymnasium = need("gymnasium", extra="gym", why="the demo's environment")
    return gymnasium.make_vec(
        config["env"],
        num_envs=config["n_envs"],
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP},
    )


def _collect(agent: Agent, envs: Any, observations_NO: Array, steps: int) -> tuple[Rollout, Array]:
    """Let the agent act for `steps` steps: what it lived through, and what it sees at the end."""
    seen, acted, after, rewards, terminated, ended = [], [], [], [], [], []
    for _ in range(steps):
        seen.append(observations_NO)
        acted.append(agent.act(observations_NO))
        observations_NO, rewards_N, terminated_N, truncated_N, info = envs.step(acted[-1][0])
        ended_N = terminated_N | truncated_N
        after_NO = observations_NO
        if ended_N.any():  # what came after these steps is the end of the old episode, not the start of the new one
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


def _evaluate(agent: Agent, scope: Scope, config: dict[str, Any], *, seed: int) -> list[float]:
    """Returns of episodes in which the agent always does what it thinks best."""
    gymnasium = need("gymnasium", extra="gym", why="the demo's environment")
    env = RecordEpisodes(gymnasium.make(config["env"]), scope)
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
    """A seed of the environments for the stretch that begins at `env_step`."""
    return int(np.random.SeedSequence([seed, env_step]).generate_state(1)[0] >> 1)


def main(
    seed: int | None = None,
    resume: str | None = None,
    *,
    steps: int | None = None,
    dir: str | Path = "runs",
    show: Callable[[Path], object] | None = None,
) -> Path:
    """Train, say where the book is, what is in it and what to type next.

    Args:
      seed: of agent and environments; None counts up from run to run, so that two demos are two different runs.
      resume: "last" or the id of an unfinished demo run; None starts a new one.
      steps: environment steps to train for; 100,000 are enough to solve the task.
      dir: the folder of runs.
      show: prints what is in a run's folder (`rollbook show`).
    Returns:
      The run's folder.
    Raises:
      NothingToResume: there is no such run, or it is finished.
      KeyboardInterrupt: after Ctrl-C, when the run is closed as killed and the way to go on is said.
    """
    root = Path(dir)
    config = CONFIG if steps is None else {**CONFIG, "env_steps": steps}
    if resume is None:
        if seed is None:
            seed = sum(1 for _ in _demos(root))
        run = rollbook.init(PROJECT, NAME, seed=seed, config=config, total={"env_step": config["env_steps"]}, dir=root)
    else:
        book = _unfinished(root, resume)
        run = rollbook.init(PROJECT, NAME, seed=book.seed, dir=root, resume="must", run_id=book.id)
        if steps is not None:
            run.config["env_steps"] = steps
    place = f" --dir {dir}" if str(dir) != "runs" else ""
    try:
        with run:
            mean = train(run)
    except KeyboardInterrupt:
        print(f"\nStopped; everything up to here is in {run.folder}\nGo on with:  rollbook demo --resume{place}")
        raise
    verdict = (
        "solved" if mean >= GOAL else f"not solved: {GOAL:.0f} is the goal; another seed or more --steps may do it"
    )
    print(f"\nCartPole-v1: mean return {mean:.1f} over {CONFIG['evaluation_episodes']} evaluation episodes ({verdict})")
    print(f"The book of this run: {run.folder}\n")
    if show is not None:
        show(run.folder)
    print(_next_commands(run.folder, root))
    return run.folder


def _demos(root: Path) -> Iterator[Book]:
    """The demo's runs under `root`, oldest first."""
    if (root / PROJECT).is_dir():
        books = [book for book in rollbook.open(root) if book.project == PROJECT and book.name == NAME]
        yield from sorted(books, key=lambda book: book.info.get("created") or 0)


def _unfinished(root: Path, which: str) -> Book:
    """The demo run to go on with."""
    books = list(_demos(root))
    wanted = [b for b in books if b.id == which] if which != "last" else [b for b in books if b.status != "finished"]
    if not wanted:
        found = ", ".join(f"{b.id} ({b.status})" for b in books) or "no run at all"
        asked = "an unfinished run" if which == "last" else f"a run with the id {which!r}"
        raise NothingToResume(f"rollbook demo --resume: asked for {asked} in {root}/{PROJECT}; found {found}. "
                              "Start one with: rollbook demo")  # fmt: skip
    if wanted[-1].status == "finished":
        raise NothingToResume(
            f"rollbook demo --resume {which}: that run is finished. Start a new one with: rollbook demo"
        )
    return wanted[-1]


def _next_commands(folder: Path, root: Path) -> str:
    where = f" {root}" if str(root) != "runs" else ""
    return "\n".join(
        (
            "What to try next:",
            f"  rollbook ls{where}",
            f"  rollbook sql {folder} \"select env_step, key, value from metrics where key = 'test/return'\"",
            f"  rollbook export {folder} --to csv",
        )
    )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
