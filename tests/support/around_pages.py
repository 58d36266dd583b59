"""What stands around the blocks of a page: the model, the data, the environment that its reader already has.

A page about a framework shows what changes in a program. Here is the rest of that program, as small as it goes, one
generator a page: it yields the names that the blocks use, gets all names back after the last block, and checks what a
reader would look for. `instead` has texts of the page for which a smaller one runs (fewer steps, this folder).

In the environments of its group a page runs with the framework itself (tests/frameworks/test_pages_run.py). Pages
without a group run in the ordinary suite; where their framework is on no registry, stand-ins of its interface are made
here.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rollbook

Frame = Generator[dict[str, Any], dict[str, Any], None]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@dataclass(frozen=True)
class Around:
    """One page: the group of frameworks it runs in ("": the ordinary suite), what stands around it, what differs."""

    group: str
    frame: Callable[[], Frame]
    instead: dict[str, str]


AROUND: dict[str, Around] = {}
"""By folder and name of the page: "adapters/sb3.md"."""


def around(page: str, group: str = "", instead: dict[str, str] | None = None) -> Callable[..., Callable[[], Frame]]:
    def add(frame: Callable[[], Frame]) -> Callable[[], Frame]:
        AROUND[page] = Around(group, frame, instead or {})
        return frame

    return add


def example(name: str) -> Any:
    """An example as a module: its models and data serve the pages, too."""
    spec: Any = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def only(project: str = "") -> Any:
    """The one run that the page has left, of that project; the one that is open is finished first."""
    rollbook.finish()
    runs = [book for book in rollbook.open("runs") if book.project == project or not project]
    assert len(runs) == 1, [book.path for book in runs]
    assert runs[0].problems() == []
    return runs[0]


def stand_in(name: str, **names: Any) -> types.ModuleType:
    """A module of a framework that no registry has, and the packages it is in."""
    parent, _, last = name.rpartition(".")
    module = types.ModuleType(name)
    vars(module).update(names, __path__=[])
    sys.modules[name] = module
    if parent:
        setattr(sys.modules.get(parent) or stand_in(parent), last, module)
    return module


# Stand-ins, for frameworks that are on no registry or need a GPU


@around("adapters/spinningup.md")
def spinningup() -> Frame:
    stand_in("spinup.utils.logx", EpochLogger=object)
    stand_in("spinup.utils.run_utils", setup_logger_kwargs=dict)
    sys.modules["spinup"].ppo_pytorch = object()  # type: ignore[attr-defined]
    seen: list[Any] = []
    tracker = SimpleNamespace(log=lambda row, step=None: seen.append(row))
    names = yield {
        "actor_critic": {},
        "ep_ret": 21.0,
        "ep_len": 21,
        "epoch": 0,
        "experiment": None,
        "wandb": SimpleNamespace(run=tracker),
        "writer": SimpleNamespace(add_scalar=lambda *row: seen.append(row)),
    }
    assert only().series("AverageEpRet").mean.tolist() == [21.0]
    with_trackers = names["EpochLogger"](**names["logger_kwargs"])
    with_trackers.log_tabular("Epoch", 0)
    with_trackers.dump_tabular()
    assert len(seen) >= 2


@around("adapters/rollout_frameworks.md")
def rollout_frameworks() -> Frame:
    step = SimpleNamespace(
        ob=SimpleNamespace(to_ints=lambda: [1, 2]),
        reward=1.0,
        episode_done=True,
        metrics={},
        logs={},
        ac=SimpleNamespace(tokens=[3], maybe_logprobs=[-1.0], stop_reason="stop"),
    )
    group = SimpleNamespace(
        trajectories_G=[SimpleNamespace(transitions=[step])], final_rewards_G=[0.0], get_total_rewards=lambda: [1.0]
    )

    async def rollout() -> Any:
        return group

    def logger(**names: Any) -> Any:
        return SimpleNamespace(loggers=[], **names)

    def setup(*_: Any, **__: Any) -> Any:
        monitors._monitors = []  # type: ignore[attr-defined]

    class PPOTrainer:
        """OpenRLHF's, as far as its trackers go."""

        def __init__(self, *_: Any) -> None:
            self.wandb_logger, self.tensorboard_logger, self.args = None, None, SimpleNamespace(seed=1)

        def fit(self) -> None:
            self.wandb_logger.log_train(1, {"policy_loss": 0.5})  # type: ignore[attr-defined]

    monitors = stand_in("prime_rl.monitors", setup=setup, _monitors=[])
    nemo = logger(log_batched_dict_as_jsonl=lambda *_: None)
    stand_in("nemo_rl.algorithms.grpo", setup=lambda *_: (*[None] * 6, nemo, None))
    stand_in("tinker_cookbook.utils.ml_log", setup_logging=lambda *_, **__: logger())
    names = yield {
        "asyncio": asyncio,
        "PPOTrainer": PPOTrainer,
        "output_dir": "out",
        "log_dir": "logs",
        "config": {},
        "rollouts": [rollout()],
        "i": 3,
        "tokenizer": SimpleNamespace(decode=str),
    }
    book = names["run"].book
    assert book.rollout(names["ids"][0][0])["gradient_step"] == 3
    assert len(monitors._monitors) == len(nemo.loggers) == 1
    openrlhf = next(book for book in rollbook.open("runs") if book.project == "openrlhf")
    assert openrlhf.latest()["train/policy_loss"][0] == 0.5


# The frameworks themselves


@around("adapters/index.md", "main", {"100_000": "256"})
def index() -> Frame:
    from stable_baselines3 import PPO

    from rollbook.adapters.sb3 import RollbookCallback

    with rollbook.init("before", "ppo", sinks=[]):
        PPO("MlpPolicy", "CartPole-v1", n_steps=64).learn(128, callback=RollbookCallback())
    book = only()
    names = yield {
        "rollbook": rollbook,
        "RollbookCallback": RollbookCallback,
        "book": book,
        "model": PPO("MlpPolicy", "CartPole-v1", n_steps=64),
    }
    assert only("CartPole-v1").seed == 1
    assert names["aliases"].resolve("train/return", book.keys())
    assert book.canonical()["train/return"] == "rollout/ep_rew_mean"


@around("adapters/sb3.md", "main", {"100_000": "64", '"CartPole-v1")': '"CartPole-v1", n_steps=64)'})
def sb3() -> Frame:
    from stable_baselines3 import PPO

    from rollbook.adapters.sb3 import RollbookOutputFormat

    run = rollbook.init("page", "sb3", sinks=[])
    names = yield {"PPO": PPO, "RollbookOutputFormat": RollbookOutputFormat, "run": run}
    names["model"].learn(64, reset_num_timesteps=False)
    assert Path("logs/ppo/progress.csv").exists()
    assert only("page").series("update/loss/policy", x="env_step").x.tolist()[0] == 64


@around("adapters/acme.md", "main", {"eval_loop.run": "eval_loop(logger).run"})
def acme() -> Frame:
    sys.modules.setdefault("launchpad", types.ModuleType("launchpad"))
    import acme
    import numpy as np

    from rollbook.adapters.acme import Counter, make_logger

    loops = example("acme_loop")
    run = rollbook.init("page", "acme", sinks=[])
    counter = Counter()
    agent = loops.Agent(np.zeros((10, 2)), 0.3, 1, make_logger(run, prefix="learner"), Counter(counter, "learner"))
    names = yield {
        "acme": acme,
        "environment": loops.Corridor(),
        "agent": agent,
        "counter": counter,
        "run": run,
        "make_logger": make_logger,
        "eval_loop": lambda logger: acme.EnvironmentLoop(
            loops.Corridor(), loops.Agent(np.ones((10, 2)), 1.0, 1), logger=logger, should_update=False
        ),
    }
    names["loop"].run(num_episodes=4)
    book = only()
    assert len(book.series("train_loop/episode_return")) == 4
    assert len(book.series("eval/episode_return")) == 5


@around("adapters/tianshou.md", "main", {"(..., ": "(", "(\n    ...,\n": "(\n"})
def tianshou() -> Frame:
    import gymnasium
    import torch
    from tianshou.algorithm import DQN
    from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.data import Collector, VectorReplayBuffer
    from tianshou.env import DummyVectorEnv
    from tianshou.trainer import OffPolicyTrainerParams
    from tianshou.utils import TensorboardLogger
    from tianshou.utils.net.common import Net
    from torch.utils.tensorboard import SummaryWriter

    def envs() -> Any:
        return DummyVectorEnv([lambda: gymnasium.make("CartPole-v1")])

    env = gymnasium.make("CartPole-v1")
    net = Net(state_shape=env.observation_space.shape, action_shape=env.action_space.n, hidden_sizes=[8])
    policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space)
    algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=20)

    def params_of(**options: Any) -> Any:
        collector = Collector(algorithm, envs(), VectorReplayBuffer(500, 1), exploration_noise=True)
        collector.reset()
        return OffPolicyTrainerParams(
            training_collector=collector, test_collector=Collector(algorithm, envs()), max_epochs=2,
            epoch_num_steps=60, collection_step_num_env_steps=20, test_step_num_episodes=1, batch_size=16,
            update_step_num_gradient_steps_per_sample=0.2, show_progress=False, **options,
        )  # fmt: skip

    def save(*_: int) -> str:
        torch.save(algorithm.state_dict(), "policy.pth")
        return "policy.pth"

    names = yield {
        "algorithm": algorithm,
        "OffPolicyTrainerParams": params_of,
        "run": None,
        "save": save,
        "TensorboardLogger": TensorboardLogger,
        "SummaryWriter": SummaryWriter,
        "rollbook": rollbook,
        "save_best": lambda _: None,
    }
    algorithm.run_training(names["params"])
    rollbook.finish()
    book = rollbook.open("runs").one(id="first")
    assert len(book.checkpoints()) > 0
    assert len(book.series("update/loss")) > 2
    assert book.episodes().num_rows > 0


@around("adapters/tensorboard.md", "main")
def tensorboard() -> Frame:
    names = yield {"run_name": "page", "info": {"episode": {"r": 21.0}}, "global_step": 128}
    import torch.utils.tensorboard as theirs

    names["writer"].close()
    assert issubclass(theirs.SummaryWriter, names["SummaryWriter"])
    names["tensorboard"].uninstall()
    assert only().series("charts/episodic_return").mean.tolist() == [21.0]


@around("adapters/lightzero.md", "lightzero", {"int(1e5)": "60", "Log(run)": "Log(another_run())"})
def lightzero() -> Frame:
    import numpy as np

    if not hasattr(np, "bool8"):
        np.bool8 = np.bool_  # type: ignore[attr-defined]  # gym 0.25 asks for the old name
    from zoo.classic_control.cartpole.config.cartpole_muzero_config import create_config, main_config

    main_config.exp_name = "data_muzero/page"
    main_config.env.update(collector_env_num=1, evaluator_env_num=1, n_evaluator_episode=1)
    main_config.env.manager = {"shared_memory": False}
    main_config.policy.update(
        collector_env_num=1,
        evaluator_env_num=1,
        n_episode=1,
        num_simulations=2,
        update_per_collect=2,
        batch_size=8,
        eval_freq=100,
        cuda=False,
    )
    create_config.env_manager.type = "base"

    def another_run() -> Any:
        return rollbook.init("page", "loop", sinks=[])

    yield {"main_config": main_config, "create_config": create_config, "another_run": another_run}
    rollbook.finish()
    by_project = {book.project: book for book in rollbook.open("runs")}
    assert len(by_project["data_muzero"].series("train/return")) > 0
    assert by_project["page"].series("collector/reward_mean").mean.tolist() == [21.0]


@around("adapters/mrl.md", "mrl", {"[...]": "[reward]", "(200, 90, 50, 4)": "(4, 3, 3, 1)"})
def mrl() -> Frame:
    import torch
    from mrl.train.callback import Callback
    from mrl.train.environment import Environment

    class Chain(Callback):  # type: ignore[misc]
        """A policy over words of three letters."""

        def __init__(self) -> None:
            super().__init__("chain")
            self.logits = torch.nn.Parameter(torch.zeros(3, 4))
            self.optimizer = torch.optim.Adam([self.logits], lr=0.3)

        def sample_batch(self) -> None:
            state = self.environment.batch_state
            self.actions = torch.distributions.Categorical(logits=self.logits).sample((self.environment.bs,))
            state.samples += ["".join("CNOF"[i] for i in row) for row in self.actions.tolist()]
            state.sources += ["live"] * self.environment.bs

        def compute_loss(self) -> None:
            state = self.environment.batch_state
            of_words = torch.distributions.Categorical(logits=self.logits).log_prob(self.actions).sum(1)
            state.loss = state.loss - state.rewards_final.mean() * of_words.mean()  # MRL left some words out

        def zero_grad(self) -> None:
            self.optimizer.zero_grad()

        def step(self) -> None:
            self.optimizer.step()

    class Reward(Callback):  # type: ignore[misc]
        """One for every C."""

        def __init__(self) -> None:
            super().__init__("reward")

        def compute_reward(self) -> None:
            state = self.environment.batch_state
            state.rewards += torch.tensor([float(word.count("C")) for word in state.samples])

    run = rollbook.init("page", "mrl", sinks=[])
    yield {"Environment": Environment, "agent": Chain(), "reward": Reward(), "run": run}
    assert len(only().series("metrics/rewards")) == 3


@around(
    "adapters/rllib.md", "rllib", {'RunConfig(name="plant"': 'RunConfig(name="plant", stop=stop, storage_path=storage'}
)
def rllib() -> Frame:
    import ray
    from ray import tune
    from ray.rllib.algorithms.ppo import PPOConfig

    ray.init(num_cpus=2, include_dashboard=False, ignore_reinit_error=True)
    names = yield {
        "PPOConfig": lambda: PPOConfig().env_runners(num_env_runners=0).training(train_batch_size=200),
        "Plant": example("rllib_env_data").Plant,
        "tune": tune,
        "stop": {"training_iteration": 1},
        "storage": str(Path("ray_results").absolute()),
    }
    names["tuner"].fit()
    ray.shutdown()
    assert only("plant").episodes().num_rows > 0


@around("docs/cluster.md", "rllib", {'"/shared/runs"': '"runs"', "range(8)": "range(2)"})
def cluster() -> Frame:
    import ray

    def score_of(book: Any) -> float:
        return float(book.series("test/return").mean[-1])

    for seed in range(2):
        with rollbook.init("ended", "ppo", seed=seed, sinks=[]) as run:
            run.log({"test/return": float(seed)}, env_step=1)
            run.scope("train").log_episode(return_=float(seed), length=3)
    ray.init(num_cpus=3, include_dashboard=False, ignore_reinit_error=True)
    names = yield {"runs": rollbook.open("runs").named("ended"), "score_of": score_of}
    ray.get([sampler.sample.remote(n) for n, sampler in enumerate(names["samplers"])])
    ray.get(names["evaluate"].remote(names["told"], 5))
    assert sorted(names["scores"].values) == [0.0, 1.0]
    ray.shutdown()
    rollbook.finish()
    book = rollbook.open("runs").one("ant/ppo")
    assert len(book.series("sampler/reward")) == 2
    assert book.series("eval/return").mean.tolist() == [7.0]


@around("adapters/wandb.md", "trackers")
def wandb() -> Frame:
    yield {}
    assert len(only("cartpole").series("charts/episodic_return", x="env_step")) == 100


@around("adapters/neptune.md", "neptune")
def neptune() -> Frame:
    import neptune

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEPTUNE_MODE", "offline")
        yield {"neptune": neptune, "rollbook": rollbook, "score": 21.0, "env_step": 128}
    assert only().series("train/return").mean.tolist() == [21.0]


@around(
    "adapters/trl.md",
    "trl",
    {"[RollbookCallback()],\n)": "[RollbookCallback()],\n)\ntrainer.train()", '="out"': '="out", use_cpu=True'},
)
def trl() -> Frame:
    from transformers import TrainingArguments
    from trl import GRPOConfig, GRPOTrainer

    from datasets import Dataset

    words = example("trl_grpo")
    tokenizer = words.make_tokenizer()
    config = GRPOConfig(
        output_dir="out", max_steps=1, per_device_train_batch_size=4, num_generations=2, max_completion_length=4,
        save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, logging_steps=1,
    )  # fmt: skip

    def trainer_of(model: Any, **options: Any) -> Any:
        return GRPOTrainer(model, processing_class=tokenizer, **options)

    run = rollbook.init("page", "trl", sinks=[], clocks=["train_iter"])
    names = yield {
        "GRPOTrainer": trainer_of,
        "model": words.make_model(),
        "accuracy": words.says_cat,
        "config": config,
        "format_reward": words.is_short,
        "data": Dataset.from_dict({"prompt": ["cat and dog"] * 8}),
        "TrainingArguments": TrainingArguments,
        "book": run.book,
    }
    only()
    assert names["table"].num_rows == 4


@around("adapters/accelerate.md", "trl")
def accelerate() -> Frame:
    from accelerate import Accelerator

    names = yield {"Accelerator": lambda **options: Accelerator(cpu=True, **options), "config": {"lr": 0.1}}
    names["accelerator"].log({"train/loss": 0.5}, step=1)
    names["accelerator"].end_training()
    assert only("my-project").config["lr"] == 0.1


@around("adapters/lightning.md", "loggers")
def lightning() -> Frame:
    from lightning import Trainer
    from lightning.fabric import Fabric
    from lightning.fabric.loggers import CSVLogger
    from lightning.pytorch.loggers import TensorBoardLogger

    names = yield {
        "Trainer": lambda **options: Trainer(accelerator="cpu", **options),
        "TensorBoardLogger": TensorBoardLogger,
        "Fabric": lambda **options: Fabric(accelerator="cpu", **options),
        "CSVLogger": CSVLogger,
    }
    names["fabric"].log("loss", 0.5, step=1)
    for logger in (names["trainer"].logger, *names["fabric"].loggers):
        logger.log_metrics({"mine": 1.0}, step=2)
        logger.close()
    rollbook.finish()
    assert sum(len(book.series("mine")) for book in rollbook.open("runs")) == 2


@around("adapters/rsl_rl.md", "loggers")
def rsl_rl() -> Frame:
    from rsl_rl.runners import OnPolicyRunner

    network = {"class_name": "MLPModel", "hidden_dims": [8], "activation": "elu"}
    names = yield {
        "train_cfg": {
            "seed": 7,
            "num_steps_per_env": 20,
            "save_interval": 2,
            "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
            "actor": {**network, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 0.5}},
            "critic": network,
            "algorithm": {"class_name": "PPO", "num_learning_epochs": 1, "num_mini_batches": 1},
        }
    }
    OnPolicyRunner(example("rsl_rl_ppo").Points(4), names["train_cfg"], log_dir="logs").learn(2)
    assert only("anymal").series("Train/mean_reward", x="step").x.tolist() == [0, 1]


@around("adapters/optuna.md", "loggers", {"100": "6"})
def optuna() -> Frame:
    import optuna

    yield {"study": optuna.create_study(), "objective": example("optuna_study").objective}
    assert only("sweep").series("value", x="step").x.tolist() == list(range(6, 12))


@around("adapters/skrl.md", "loops")
def skrl() -> Frame:
    from skrl.trainers.torch import SequentialTrainer

    trainer = example("skrl_dqn").trainer(60, 1)
    rollbook.finish()
    yield {"SequentialTrainer": SequentialTrainer, "cfg": trainer.cfg, "env": trainer.env, "agent": trainer.agents}
    assert len(only("pendulum").keys()) > 3


@around("adapters/rl_games.md", "loops")
def rl_games() -> Frame:
    from rl_games.torch_runner import Runner

    names = yield {"Runner": Runner}
    example("rl_games_ppo").train(1, 1, names["runner"].algo_observer)
    assert len(only("ant").series("losses/a_loss")) > 0


@around("adapters/d3rlpy.md", "loops", {"n_steps=10_000": "n_steps=20, n_steps_per_epoch=10, show_progress=False"})
def d3rlpy() -> Frame:
    import d3rlpy

    dqn = d3rlpy.algos.DQNConfig(batch_size=32).create(device="cpu:0")
    yield {"dqn": dqn, "dataset": example("d3rlpy_dqn").steps(100, 1)}
    assert only("cartpole").series("loss", x="epoch").x.tolist() == [1, 2]


@around("adapters/torchrl.md", "loops")
def torchrl() -> Frame:
    from torchrl.record.loggers import get_logger

    names = yield {"get_logger": get_logger}
    names["logger"].log_scalar("train/loss", 0.5, step=3)
    names["logger"].close()
    assert only("cartpole").series("train/loss").mean.tolist() == [0.5]


@around("adapters/elements.md", "loops")
def elements() -> Frame:
    import elements

    step = elements.Counter(3)
    names = yield {"elements": elements, "step": step, "multiplier": 1}
    names["logger"].add({"train/loss": 0.5})
    names["logger"].write()
    names["logger"].close()
    assert only("crafter").series("train/loss", x="env_step").x.tolist() == [3]


@around("adapters/pufferlib.md", "puffer", {'"puffer_breakout", args=args': '"carts", args, *made(args)'})
def pufferlib() -> Frame:
    from pufferlib import pufferl

    from carts_of_pufferlib import arguments, made

    yield {"pufferl": pufferl, "args": arguments("experiments"), "made": made}
    assert len(only("breakout").keys()) > 3


@around(
    "adapters/jax.md",
    "jax",
    {
        "state, jnp.arange(1_000))\n": "state, steps)\n\n\ntrain(state)\n",
        "jnp.arange(1_000)": "steps",
        "64": "4",
        "8": "4",
        "jax.vmap(train)(keys)  #": "jax.vmap(history_of)(keys)  #",
    },
)
def jax() -> Frame:
    import jax
    import jax.numpy as jnp

    names = yield {
        "jax": jax,
        "jnp": jnp,
        "improve": lambda state: (state * 0.5, state),
        "init": lambda key: key * 1.0,
        "update": lambda state, step: (state * 0.5, state),
        "state": jnp.float32(1.0),
        "keys": jnp.arange(4.0),
        "steps": jnp.arange(20),
        "history_of": lambda key: {"train/return": key + jnp.arange(20.0)},
    }
    names["run"].finish()
    runs = rollbook.open("runs")
    assert [len(runs.one(names["run"].id).series("update"))] == [20]
    assert sorted(len(book.series("update/loss")) for book in runs if "update/loss" in {*book.keys()}) == [20] * 4
    assert sorted(len(book.series("train/return")) for book in runs if "train/return" in {*book.keys()}) == [20] * 4


@around("adapters/keras.md", "jax", {"epochs=10": "epochs=2, verbose=0"})
def keras() -> Frame:
    os.environ.setdefault("KERAS_BACKEND", "jax")
    import keras
    import numpy as np

    model = keras.Sequential([keras.layers.Dense(1)], name="sum")
    model.compile("sgd", "mse")
    x = np.ones((8, 3), np.float32)
    yield {"model": model, "x": x, "y": x.sum(1)}
    assert only("digits").series("loss", x="epoch").x.tolist() == [1, 2]


@around(
    "adapters/brax.md",
    "brax",
    {"num_timesteps=10_000_000": "num_timesteps=256, **small", "environment,": "envs.get_environment('fast'),"},
)
def brax() -> Frame:
    from brax import envs
    from brax.training.agents.ppo import train as ppo

    small = {
        "episode_length": 16,
        "num_envs": 8,
        "num_eval_envs": 4,
        "unroll_length": 4,
        "batch_size": 8,
        "num_minibatches": 1,
        "num_updates_per_batch": 1,
        "num_evals": 2,
    }
    yield {"ppo": ppo, "envs": envs, "small": small, "rollbook": rollbook}
    book = only("ant")
    assert len(book.series("test/return")) == 2
    assert len(book.checkpoints()) > 0


# Pages that need a service or a browser of the tests


@around(
    "docs/remote.md",
    "places",
    {
        '"ppo", remote': '"ppo", run_id="k3v9x2ab", remote',
        "    ...\n": '    run.log({"train/return": 21.0}, env_step=128)\n',
    },
)
def remote() -> Frame:
    names = yield {"rollbook": rollbook}
    assert names["books"].one("cartpole/ppo").series("train/return").mean.tolist() == [21.0]
    assert sum(map(len, names["names"].values())) >= 1
