"""The trainers of Tianshou 1, whose names the documentation has: what its event file says and what the book says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GROUPS = ("tianshou1",)

gymnasium = pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")
pytest.importorskip("tianshou")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402
from tianshou.data import Collector, VectorReplayBuffer  # noqa: E402
from tianshou.env import DummyVectorEnv  # noqa: E402
from tianshou.policy import DQNPolicy  # noqa: E402
from tianshou.trainer import OffpolicyTrainer  # noqa: E402
from tianshou.utils import TensorboardLogger  # noqa: E402
from tianshou.utils.net.common import Net  # noqa: E402
from torch.utils.tensorboard import SummaryWriter  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters.tianshou import RollbookLogger  # noqa: E402

torch.set_num_threads(1)
CLOCKS = {"train": "env_step", "test": "env_step", "update": "gradient_step", "info": "epoch"}


@pytest.fixture
def run(own_place: Path) -> Iterator[Any]:
    with rollbook.init("CartPole-v1", "dqn", dir=own_place / "runs", sinks=(), keeper="inline") as run:
        yield run


def envs() -> Any:
    vector = DummyVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2)
    vector.seed(0)
    return vector


def policy() -> Any:
    torch.manual_seed(0)
    np.random.seed(0)  # of what is explored and sampled: when episodes end is not left to chance
    env = gymnasium.make("CartPole-v1")
    net = Net(state_shape=env.observation_space.shape, action_shape=env.action_space.n, hidden_sizes=[32])
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    return DQNPolicy(model=net, optim=optimizer, action_space=env.action_space, target_update_freq=50)


def trainer(logger: Any, epochs: int = 2, learner: Any = None, **more: Any) -> Any:
    learner = policy() if learner is None else learner
    learner.set_eps(0.3)
    collector = Collector(learner, envs(), VectorReplayBuffer(2000, 2), exploration_noise=True)
    collector.reset()
    collector.collect(n_step=64)
    return OffpolicyTrainer(
        policy=learner,
        train_collector=collector,
        test_collector=Collector(learner, envs()),
        max_epoch=epochs,
        step_per_epoch=60,
        step_per_collect=10,
        episode_per_test=2,
        batch_size=16,
        update_per_step=0.2,
        test_in_train=False,
        verbose=False,
        show_progress=False,
        logger=logger,
        **more,
    )


def column(book: Any, key: str, clock: str) -> list[tuple[Any, Any]]:
    return [(row[clock], row[key]) for row in book.metrics([key], x=clock).to_pylist() if row[key] is not None]


def events_in(folder: Path) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


@pytest.mark.core
def test_every_number_of_tianshous_own_event_file_is_in_the_book(run: Any, own_place: Path, reads_as: Any) -> None:
    """Both loggers get the same calls; theirs writes at intervals of 1."""
    ours = RollbookLogger(run)
    theirs = TensorboardLogger(SummaryWriter(str(own_place / "theirs")), 1, 1, 1, 1)

    def both(name: str) -> Any:
        mine, native = getattr(ours, name), getattr(theirs, name)

        def hand_on(data: Any, step: int) -> None:
            native(data, step)
            mine(data, step)

        return hand_on

    for name in ("log_train_data", "log_test_data", "log_update_data", "log_info_data"):
        setattr(ours, name, both(name))
    trainer(ours).run()
    theirs.writer.close()
    native, numbers = events_in(own_place / "theirs"), 0
    assert {tag.partition("/")[0] for tag in native} == set(CLOCKS)
    for tag, points in native.items():
        found: dict[Any, list[Any]] = {}
        for step, value in column(run.book, tag, CLOCKS[tag.partition("/")[0]]):
            found.setdefault(step, []).append(value)
        for step, value in points:
            assert np.float32(found[step][0]) == np.float32(value), (tag, step)
            numbers += 1
    assert numbers > 100
    reads_as(run.book, {"train/return": "train/returns_stat/mean", "test/return": "test/returns_stat/mean"})
    assert run.book.config["algorithm"] == "DQNPolicy"
    assert run.bill()["drops"] == {}


def test_a_training_goes_on_at_its_checkpoint(own_place: Path) -> None:
    learner = policy()

    def save(*_: int) -> str:
        torch.save(learner.state_dict(), own_place / "policy.pth")
        return str(own_place / "policy.pth")

    options = {"dir": own_place / "runs", "run_id": "one", "sinks": (), "keeper": "inline"}
    with rollbook.init("CartPole-v1", "dqn", **options) as run:
        trainer(RollbookLogger(run), 2, learner, save_checkpoint_fn=save).run()
    learner.load_state_dict(torch.load(own_place / "policy.pth"))
    with rollbook.init("CartPole-v1", "dqn", resume="must", **options) as run:
        trainer(RollbookLogger(run), 4, learner, save_checkpoint_fn=save, resume_from_log=True).run()
        book = run.book
    steps = [step for step, _ in column(book, "train/env_step", "env_step")]  # of collections in which episodes ended
    assert steps == sorted(set(steps))
    assert steps[0] < 120 < steps[-1] <= 240
    assert [step for step, _ in column(book, "info/epoch", "epoch")] == [1, 2, 3, 4]
    assert [step for step, _ in column(book, "test/env_step", "env_step")] == [0, 60, 120, 180, 240]
    steps = [step for step, _ in column(book, "update/loss", "gradient_step")]
    assert steps == list(range(1, len(steps) + 1))
