"""The loop that everybody writes, by each door: a training of seconds of a framework, as its users write it.

Each function trains once with a seed and passes no run.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "frameworks"))  # whose tests have trainings


class Door(NamedTuple):
    """One way into a run.

    Attributes:
      train: trains once with this seed.
      key: a metric that each training logs.
      says: what the run's name or configuration says of the algorithm; "" where the door cannot know.
      seeded: whether the framework tells the door the seed; elsewhere the program passes it: `run_options={"seed": …}`.
    """

    train: Callable[[int], object]
    key: str
    says: str
    seeded: bool


DOORS: dict[tuple[str, str], Door] = {}
"""(group, name) -> the door."""


def door(group: str, key: str, says: str = "", *, seeded: bool = True) -> Any:
    def keep(train: Callable[[int], object]) -> Callable[[int], object]:
        DOORS[group, getattr(train, "__name__", "")] = Door(train, key, says, seeded)
        return train

    return keep


def _example(name: str) -> Any:
    path = Path(__file__).resolve().parents[2] / "examples" / f"{name}.py"
    spec: Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _as_program(module: Any, *arguments: object) -> None:
    before, sys.argv = sys.argv, ["training", *map(str, arguments)]
    try:
        module.main()
    finally:
        sys.argv = before


@door("main", "update/loss", "DQN", seeded=False)
def tianshou(seed: int) -> None:
    from test_tianshou_real import dqn, off_policy

    from rollbook.adapters.tianshou import RollbookLogger

    off_policy(dqn(), RollbookLogger(), epochs=1)


@door("tianshou1", "update/loss", "DQN", seeded=False)
def tianshou_1(seed: int) -> None:
    from test_tianshou_1_real import trainer

    from rollbook.adapters.tianshou import RollbookLogger

    trainer(RollbookLogger(), epochs=1).run()


@door("main", "train_loop/episode_return", seeded=False)
def acme(seed: int) -> None:
    from test_acme_real import Agent, Corridor, Learner
    from test_acme_real import acme as host

    from rollbook.adapters import acme as loggers

    learner = Learner(loggers.RollbookLogger(label="learner"), loggers.Counter())
    logger = loggers.RollbookLogger(label="train_loop")
    host.EnvironmentLoop(Corridor(), Agent(learner, 0.3, seed), logger=logger).run(num_episodes=3)


@door("main", "charts/episodic_return", "ppo")
def summary_writer(seed: int) -> None:
    """The lines of CleanRL's programs."""
    from rollbook.adapters.tensorboard import SummaryWriter

    writer = SummaryWriter(f"runs/CartPole-v1__ppo__{seed}__{1_700_000_000 + seed}")
    writer.add_text("hyperparameters", f"|param|value|\n|-|-|\n|seed|{seed}|\n|exp_name|ppo|")
    for step in range(3):
        writer.add_scalar("charts/episodic_return", 10.0 * step, step)
    writer.close()


@door("main", "loss", "ppo")
def wandbs_shape(seed: int) -> None:
    import rollbook.wandb as wandb

    wandb.init(project="cartpole", config={"seed": seed, "algo": "ppo"})
    for step in range(3):
        wandb.log({"loss": 1.0 / (1 + step)})


@door("spinningup", "AverageEpRet", "vpg")
def spinningup(seed: int) -> None:
    import spinup_program

    short = {"env": "CartPole-v1", "steps_per_epoch": 200, "epochs": 2, "train_v_iters": 2, "seed": seed}
    checkout = Path(os.environ["ROLLBOOK_SPINNINGUP"])
    spinup_program.main(checkout, "rollbook", "vpg", f"data/vpg/vpg_s{seed}", short)


@door("mrl", "metrics/rewards", seeded=False)
def mrl(seed: int) -> None:
    from test_mrl_real import Buffer, Chain, native_environment

    from rollbook.adapters.mrl import Log

    native_environment.Environment(cbs=[Chain()], buffer=Buffer(), log=Log()).fit(2, 90, 3, 1)


@door("rllib", "env_runners/episode_return_mean", "PPO")
def rllib(seed: int) -> None:
    from ray.rllib.algorithms.ppo import PPOConfig

    from rollbook.adapters.rllib import callbacks

    algorithm = (
        PPOConfig()
        .environment("CartPole-v1")
        .debugging(seed=seed)
        .env_runners(num_env_runners=0, rollout_fragment_length=64)
        .training(train_batch_size=64, minibatch_size=32, num_epochs=1)
        .callbacks(callbacks("runs"))
        .build_algo()
    )
    algorithm.train()
    algorithm.stop()


@door("lightzero", "learner/total_loss", "muzero")
def lightzero(seed: int) -> None:
    from test_lightzero_real import small_config

    from rollbook.adapters.lightzero import train_muzero

    train_muzero([*small_config()], seed=seed, max_train_iter=6)


@door("loops", "Loss / Q-network loss", "DQN", seeded=False)
def skrl(seed: int) -> None:
    from rollbook.adapters.skrl import attach

    program = _example("skrl_dqn")
    program.attach = lambda agent, **_: attach(agent)
    program.trainer(200, seed=seed).train()


@door("loops", "losses/a_loss", "carts")
def rl_games(seed: int) -> None:
    from rollbook.adapters.rl_games import RollbookObserver

    _example("rl_games_ppo").train(2, seed, RollbookObserver())


@door("loops", "loss", "dqn", seeded=False)
def d3rlpy(seed: int) -> None:
    from rollbook.adapters.d3rlpy import RollbookAdapterFactory

    _example("d3rlpy_dqn").train(60, seed, RollbookAdapterFactory())


@door("loops", "train/loss", "reinforce")
def torchrl(seed: int) -> None:
    from rollbook.adapters.torchrl import RollbookLogger

    program = _example("torchrl_reinforce")
    program.RollbookLogger = lambda name, **_: RollbookLogger(name)
    hparams, program.rollbook = RollbookLogger.log_hparams, _Nowhere()
    RollbookLogger.log_hparams = lambda self, cfg: hparams(self, {**cfg, "seed": seed})  # type: ignore[method-assign]
    try:
        _as_program(program, "--seed", seed, "--batches", 1)
    finally:
        RollbookLogger.log_hparams = hparams  # type: ignore[method-assign]


@door("loops", "episode/score", seeded=False)
def elements(seed: int) -> None:
    from rollbook.adapters.elements import RollbookOutput

    program = _example("elements_loop")
    program.RollbookOutput, program.rollbook = lambda **_: RollbookOutput(), _Nowhere()
    _as_program(program, "--seed", seed, "--episodes", 3)


@door("jax", "val_loss", "sum", seeded=False)
def keras(seed: int) -> None:
    os.environ.setdefault("KERAS_BACKEND", "jax")
    from rollbook.adapters.keras import RollbookCallback

    program = _example("keras_fit")
    program.RollbookCallback, program.rollbook = lambda **_: RollbookCallback(), _Nowhere()
    _as_program(program, "--seed", seed, "--epochs", 2)


@door("trl", "train/loss")
def accelerate(seed: int) -> None:
    import torch
    from accelerate import Accelerator

    from rollbook.adapters.accelerate import register

    register()
    accelerator = Accelerator(cpu=True, log_with="rollbook")
    accelerator.init_trackers("fit", {"lr": 0.1, "seed": seed})
    model = torch.nn.Linear(1, 1)
    for step in range(3):
        accelerator.log({"train/loss": model(torch.ones(4, 1)).mean()}, step=step)
    accelerator.end_training()


@door("trl", "loss", "grpo")
def trl(seed: int) -> None:
    from test_trl_real import short, trainer

    from rollbook.adapters.trl import RollbookCallback

    trainer("grpo", Path(), RollbookCallback(), [short], seed=seed).train()


@door("loggers", "loss")
def lightning(seed: int) -> None:
    import lightning.pytorch as pl
    from test_which_run_real import lightning_model

    from rollbook.adapters.lightning import RollbookLogger

    pl.seed_everything(seed)
    quiet = {"enable_progress_bar": False, "enable_checkpointing": False, "enable_model_summary": False}
    logger = RollbookLogger("p")
    pl.Trainer(max_epochs=1, logger=logger, log_every_n_steps=1, accelerator="cpu", **quiet).fit(*lightning_model())


@door("loggers", "Loss/value", "ppo")
def rsl_rl(seed: int) -> None:
    from rsl_rl.runners import OnPolicyRunner
    from test_rsl_rl_real import configuration, points

    about = configuration("rollbook.adapters.rsl_rl:RollbookWriter", seed)
    OnPolicyRunner(points(), about, log_dir="logs/points/ppo").learn(2)


class _Nowhere:
    """What an example does with its book afterwards is not done."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_arguments: Any, **_named: Any) -> Any:
        return self

    def __getitem__(self, _place: Any) -> float:
        return 0.0

    def __format__(self, _how: str) -> str:
        return "nothing"
