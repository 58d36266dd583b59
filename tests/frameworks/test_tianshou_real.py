"""Tianshou's own trainers, with a run as their logger: what its TensorBoard file says and what the book says."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GROUPS = ("main",)
pytestmark = pytest.mark.frameworks

gymnasium = pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")
pytest.importorskip("tianshou")

import tianshou  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402
from tianshou.algorithm import DQN, PPO  # noqa: E402
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy  # noqa: E402
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy  # noqa: E402
from tianshou.algorithm.optim import AdamOptimizerFactory  # noqa: E402
from tianshou.data import Collector, VectorReplayBuffer  # noqa: E402
from tianshou.env import DummyVectorEnv  # noqa: E402
from tianshou.trainer import OfflineTrainerParams, OffPolicyTrainerParams, OnPolicyTrainerParams  # noqa: E402
from tianshou.utils import BaseLogger, TensorboardLogger  # noqa: E402
from tianshou.utils.net.common import Net  # noqa: E402
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic  # noqa: E402
from torch.utils.tensorboard import SummaryWriter  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters.tianshou import LoggerFactory, RollbookLogger  # noqa: E402
from rollbook.book.book import Book  # noqa: E402


@pytest.fixture
def run(own_place: Path) -> Iterator[Any]:
    with rollbook.init("CartPole-v1", "dqn", dir=own_place / "runs", sinks=(), keeper="inline") as run:
        yield run


torch.set_num_threads(1)


def envs(n: int) -> Any:
    return DummyVectorEnv([lambda: gymnasium.make("CartPole-v1")] * n)


def dqn() -> Any:
    torch.manual_seed(0)
    env = gymnasium.make("CartPole-v1")
    net = Net(state_shape=env.observation_space.shape, action_shape=env.action_space.n, hidden_sizes=[32])
    policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space, eps_training=0.3, eps_inference=0.0)
    return DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=50)


def off_policy(algorithm: Any, logger: Any, epochs: int = 2, **more: Any) -> Any:
    buffer = VectorReplayBuffer(2000, 2)
    collector = Collector(algorithm, envs(2), buffer, exploration_noise=True)
    collector.reset()
    collector.collect(n_step=64)
    params = OffPolicyTrainerParams(
        training_collector=collector,
        test_collector=Collector(algorithm, envs(2)),
        max_epochs=epochs,
        epoch_num_steps=60,
        collection_step_num_env_steps=10,
        test_step_num_episodes=2,
        batch_size=16,
        update_step_num_gradient_steps_per_sample=0.2,
        test_in_training=False,
        verbose=False,
        show_progress=False,
        logger=logger,
        **more,
    )
    return algorithm.run_training(params)


def on_policy(logger: Any) -> Any:
    torch.manual_seed(0)
    env = gymnasium.make("CartPole-v1")
    net = Net(state_shape=env.observation_space.shape, hidden_sizes=[32])
    actor = DiscreteActor(preprocess_net=net, action_shape=env.action_space.n)
    policy = ProbabilisticActorPolicy(
        actor=actor,
        dist_fn=lambda logits: torch.distributions.Categorical(probs=logits),
        action_space=env.action_space,
        action_scaling=False,
    )
    algorithm = PPO(policy=policy, critic=DiscreteCritic(preprocess_net=net), optim=AdamOptimizerFactory(lr=1e-3))
    collector = Collector(algorithm, envs(2), VectorReplayBuffer(2000, 2))
    collector.reset()
    params = OnPolicyTrainerParams(
        training_collector=collector,
        test_collector=Collector(algorithm, envs(2)),
        max_epochs=2,
        epoch_num_steps=300,
        collection_step_num_env_steps=100,
        update_step_num_repetitions=2,
        test_step_num_episodes=2,
        batch_size=32,
        verbose=False,
        show_progress=False,
        logger=logger,
    )
    return algorithm.run_training(params)


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def column(book: Book, key: str, x: str) -> list[tuple[Any, Any]]:
    return [(row[x], row[key]) for row in book.metrics([key], x=x).to_pylist() if row[key] is not None]


CLOCK = {"training": "env_step", "test": "env_step", "update": "step", "info": "epoch"}


def test_the_logger_is_one_of_tianshous(run: Any) -> None:
    assert isinstance(RollbookLogger(run), BaseLogger)


@pytest.mark.core
@pytest.mark.parametrize("train", [lambda logger: off_policy(dqn(), logger), on_policy], ids=["DQN", "PPO"])
def test_every_number_of_the_event_file_is_in_the_book_at_its_step(
    train: Any, run: Any, own_place: Path, reads_as: Any
) -> None:
    """The native file is written at intervals of 1, so that it holds every call but repeats of a step."""
    logger = RollbookLogger(run, 1, 1, 1, 1, writer=SummaryWriter(str(own_place / "events")))
    train(logger)
    logger.finalize()
    native = scalars(own_place / "events")
    assert {tag.partition("/")[0] for tag in native} == {"training", "test", "update", "info", "save"}
    book, numbers = run.book, 0
    for tag, points in native.items():
        scope = tag.partition("/")[0]
        if scope == "save":
            continue
        found: dict[Any, list[Any]] = {}
        for step, value in column(book, tag, CLOCK[scope]):
            found.setdefault(step, []).append(value)
        assert list(found) == [step for step, _ in points], tag
        for step, value in points:  # the first gradient step of an update is the one Tianshou writes
            assert np.float32(found[step][0]) == np.float32(value), (tag, step)
            numbers += 1
    assert numbers > 100
    reads_as(book, {"train/return": "training/returns_stat/mean", "test/return": "test/returns_stat/mean"})
    loss = next(key for key in ("update/loss", "update/loss/mean") if key in book.keys())  # noqa: SIM118
    reads_as(book, {"update/loss/total": loss, "time/elapsed_seconds": "info/timing/total_time"})
    assert run.bill()["drops"] == {}


def test_the_native_file_is_what_tianshous_own_logger_writes(run: Any, own_place: Path) -> None:
    """Both loggers get the same calls."""
    ours = RollbookLogger(run, 100, 1, 3, 1, writer=SummaryWriter(str(own_place / "ours")))
    theirs = TensorboardLogger(SummaryWriter(str(own_place / "theirs")), 100, 1, 3, 1)

    class Both(BaseLogger):
        """Hands every call to both."""

        def write(self, step_type: str, step: int, data: Any) -> None: ...

        def prepare_dict_for_logging(self, log_data: Any) -> Any:
            return log_data

        def finalize(self) -> None: ...

        def save_data(self, *args: Any) -> None: ...

        def restore_data(self) -> Any:
            return 0, 0, 0

        @staticmethod
        def restore_logged_data(log_path: str) -> Any:
            return {}

    both = Both()
    for name in ("log_training_data", "log_test_data", "log_update_data", "log_info_data"):

        def hand_on(data: Any, step: int, name: str = name) -> None:
            getattr(ours, name)(data, step)
            getattr(theirs, name)(data, step)

        setattr(both, name, hand_on)
    off_policy(dqn(), both)
    ours.finalize()
    theirs.finalize()
    assert scalars(own_place / "ours") == scalars(own_place / "theirs")
    assert len(scalars(own_place / "ours")) > 20


@pytest.mark.parametrize("events", ["torch", "rollbook"])
def test_tianshous_own_logger_restores_from_the_event_file_that_ours_leaves(
    events: str, run: Any, own_place: Path
) -> None:
    from rollbook.adapters import tensorboard as our_tensorboard
    from rollbook.adapters import tianshou as our_tianshou

    writer = our_tensorboard.SummaryWriter(own_place / "log", run=run, events=events)
    ours = our_tianshou.TensorboardLogger(writer, save_interval=1, run=False)
    ours.log_test_data({"returns_stat": {"mean": 2.5}}, 400)
    ours.log_test_data({"returns_stat": {"mean": 3.5}}, 800)
    ours.save_data(2, 800, 80, lambda *_: "")
    ours.finalize()
    theirs = TensorboardLogger(SummaryWriter(str(own_place / "log")))
    assert theirs.restore_data() == (2, 800, 80)
    restored = theirs.restore_logged_data(str(own_place / "log"))
    assert restored["test"]["returns_stat"]["mean"].tolist() == [2.5, 3.5]
    mine = our_tianshou.restore_logged_data(str(own_place / "log"))
    assert mine["test"]["returns_stat"]["mean"].tolist() == [2.5, 3.5]


def test_every_gradient_step_and_every_episode_is_kept(run: Any, own_place: Path) -> None:
    logger = RollbookLogger(run, 1, 1, 1, 1, writer=SummaryWriter(str(own_place / "events")))
    off_policy(dqn(), logger)
    logger.finalize()
    losses = column(run.book, "update/loss", "gradient_step")
    assert [step for step, _ in losses] == list(range(1, 25))  # 2 epochs, 6 steps of 10, 0.2 gradient steps a sample
    assert len(scalars(own_place / "events")["update/loss"]) == 12
    episodes = run.book.episodes().to_pylist()
    collected = column(run.book, "training/n_collected_episodes", "env_step")
    assert sum(n for _, n in collected) == sum(row["scope"] == "training" for row in episodes)
    tests = [row for row in episodes if row["scope"] == "test"]
    assert len(tests) == 6
    means = dict(column(run.book, "test/returns_stat/mean", "env_step"))
    for step in means:
        assert np.mean([row["return"] for row in tests if row["env_step"] == step]) == pytest.approx(means[step])


def test_an_on_policy_update_counts_its_gradient_steps(run: Any) -> None:
    on_policy(RollbookLogger(run))
    counted = [step for step, _ in column(run.book, "update/loss/mean", "gradient_step")]
    said = [n for _, n in column(run.book, "update/gradient_steps", "gradient_step")]
    assert counted == np.cumsum(said).tolist()


def test_a_short_training_with_the_defaults_leaves_a_full_book(run: Any, own_place: Path) -> None:
    """Tianshou's defaults write nothing about training and updates before step 999."""
    logger = RollbookLogger(run, writer=SummaryWriter(str(own_place / "events")))
    off_policy(dqn(), logger)
    logger.finalize()
    assert not any(tag.startswith(("training/", "update/")) for tag in scalars(own_place / "events"))
    assert len(column(run.book, "training/n_collected_steps", "env_step")) == 12
    assert len(column(run.book, "update/loss", "gradient_step")) == 24


def test_an_offline_training_is_recorded(run: Any) -> None:
    from tianshou.algorithm import DiscreteBCQ
    from tianshou.algorithm.imitation.discrete_bcq import DiscreteBCQPolicy

    algorithm = dqn()
    buffer = VectorReplayBuffer(500, 2)
    collector = Collector(algorithm, envs(2), buffer, exploration_noise=True)
    collector.reset()
    collector.collect(n_step=200)
    env = gymnasium.make("CartPole-v1")
    net = Net(state_shape=env.observation_space.shape, action_shape=32, hidden_sizes=[32])
    policy = DiscreteBCQPolicy(
        model=DiscreteActor(preprocess_net=net, action_shape=env.action_space.n, softmax_output=False),
        imitator=DiscreteActor(preprocess_net=net, action_shape=env.action_space.n, softmax_output=False),
        action_space=env.action_space,
    )
    offline = DiscreteBCQ(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=10)
    params = OfflineTrainerParams(
        buffer=buffer,
        test_collector=Collector(offline, envs(2)),
        max_epochs=2,
        epoch_num_steps=5,
        batch_size=16,
        test_step_num_episodes=2,
        verbose=False,
        show_progress=False,
        logger=RollbookLogger(run),
    )
    offline.run_training(params)
    losses = column(run.book, "update/loss", "gradient_step")
    assert [step for step, _ in losses] == list(range(1, 11))
    assert len(column(run.book, "test/returns_stat/mean", "env_step")) == 3


def test_a_killed_training_resumes_with_its_counters_and_one_clean_curve(own_place: Path) -> None:
    code = textwrap.dedent(f"""
        import os, sys
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import rollbook, torch
        from test_tianshou_real import RollbookLogger, dqn, off_policy
        place = Path({str(own_place)!r})
        run = rollbook.init("CartPole-v1", "dqn", dir=place / "runs", run_id="one", sinks=(), keeper="inline")
        algorithm = dqn()
        class Dying(RollbookLogger):
            def log_training_data(self, log_data, step):
                super().log_training_data(log_data, step)
                if step == 150:                     # in the middle of the third epoch
                    os.kill(os.getpid(), 9)
        def save(epoch, env_step, gradient_step):
            torch.save(algorithm.state_dict(), place / "checkpoint.pth")
            return str(place / "checkpoint.pth")
        off_policy(algorithm, Dying(run), epochs=5, save_checkpoint_fn=save)
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    algorithm = dqn()
    algorithm.load_state_dict(torch.load(own_place / "checkpoint.pth"))

    def save(*_: int) -> str:
        torch.save(algorithm.state_dict(), own_place / "checkpoint.pth")
        return str(own_place / "checkpoint.pth")

    options = {"dir": own_place / "runs", "run_id": "one", "resume": "must", "sinks": (), "keeper": "inline"}
    best: list[int] = []
    with rollbook.init("CartPole-v1", "dqn", **options) as run:
        assert column(run.book, "training/env_step", "env_step")[-1] == (150, 150)
        logger = RollbookLogger(run)
        off_policy(
            algorithm,
            logger,
            epochs=4,
            save_checkpoint_fn=save,
            resume_from_log=True,
            save_best_fn=logger.save_best(lambda _: best.append(1)),
        )
        book = run.book
    assert [step for step, _ in column(book, "training/env_step", "env_step")] == list(range(10, 241, 10))
    assert [step for step, _ in column(book, "test/env_step", "env_step")] == [0, 60, 120, 180, 240]
    assert [step for step, _ in column(book, "info/epoch", "epoch")] == [1, 2, 3, 4]
    assert [step for step, _ in column(book, "update/loss", "gradient_step")] == list(range(1, 49))
    assert [step for step, _ in column(book, "update/update_step", "gradient_step")] == list(range(1, 49))
    assert [value for _, value in column(book, "update/update_step", "gradient_step")] == [
        i for i in range(1, 25) for _ in range(2)
    ]
    tests = [value for _, value in column(book, "test/returns_stat/mean", "env_step")]
    assert len(best) <= sum(score > max(tests[:2]) for score in tests[2:]) + 1


def test_a_high_level_experiment_takes_the_factory(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Launchers of many experiments need joblib and rliable, which do not go together with everything else here.
    for module, names in (
        ("launcher", ("ExpLauncher", "RegisteredExpLauncher")),
        ("rliable_evaluation", ("load_and_eval_experiment",)),
    ):
        stub = types.ModuleType(f"tianshou.evaluation.{module}")
        for name in names:
            setattr(stub, name, type(name, (), {"SEQUENTIAL": "sequential"}))
        monkeypatch.setitem(sys.modules, stub.__name__, stub)
    from tianshou.highlevel.config import OffPolicyTrainingConfig
    from tianshou.highlevel.env import EnvFactoryRegistered, VectorEnvType
    from tianshou.highlevel.experiment import DQNExperimentBuilder, ExperimentConfig
    from tianshou.highlevel.params.algorithm_params import DQNParams

    factory = LoggerFactory("cartpole", init={"dir": own_place / "runs", "sinks": (), "keeper": "inline"})
    experiment = (
        DQNExperimentBuilder(
            EnvFactoryRegistered(task="CartPole-v1", venv_type=VectorEnvType.DUMMY),
            ExperimentConfig(persistence_base_dir=str(own_place / "log"), watch=False),
            OffPolicyTrainingConfig(
                max_epochs=1,
                epoch_num_steps=40,
                batch_size=8,
                num_training_envs=2,
                num_test_envs=2,
                buffer_size=200,
                collection_step_num_env_steps=10,
                update_step_num_gradient_steps_per_sample=0.1,
                start_timesteps=20,
                test_step_num_episodes=2,
            ),
        )
        .with_dqn_params(DQNParams(lr=1e-3))
        .with_model_factory_default(hidden_sizes=(16,))
        .with_logger_factory(factory)
        .build()
    )
    experiment.run(run_name="exp")
    (folder,) = (own_place / "runs" / "cartpole").iterdir()
    book = Book(folder)
    assert book.status == "finished"
    assert len(column(book, "training/env_step", "env_step")) == 4
    assert "experiment_config" in book.config
    (log_dir,) = (own_place / "log" / "exp").iterdir()
    restored = experiment.logger_factory.get_logger_class().restore_logged_data(str(log_dir))
    np.testing.assert_array_equal(restored["training"]["env_step"], [10, 20, 30, 40])
    again = type(experiment).from_directory(str(log_dir))
    assert again.logger_factory.project == "cartpole"
    assert tianshou.__version__.startswith("2.")


def test_the_example_runs_and_goes_on(own_place: Path) -> None:
    import os

    example = Path(__file__).parents[2] / "examples" / "tianshou_dqn.py"
    environment = {**os.environ, "PYTHONPATH": str(Path(rollbook.__file__).parents[1])}
    for epochs, expected in ((1, "[0, 400]"), (2, "[0, 400, 800]")):
        command = [sys.executable, str(example), "--epochs", str(epochs), "--epoch-steps", "400"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        assert f"tested at {expected} steps" in done.stdout
