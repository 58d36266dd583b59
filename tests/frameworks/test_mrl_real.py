"""MRL's own Environment with our log in place of its own, and both logs beside each other on the same batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GROUPS = ("mrl",)
pytestmark = pytest.mark.frameworks

torch = pytest.importorskip("torch")
pytest.importorskip("mrl")

from mrl.train import callback as native_callback  # noqa: E402
from mrl.train import environment as native_environment  # noqa: E402
from mrl.train import log as native_log  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters import mrl as ours  # noqa: E402


@pytest.fixture
def run(own_place: Path) -> Iterator[Any]:
    with rollbook.init("mrl", "test", dir=own_place / "runs", sinks=(), keeper="inline") as run:
        yield run


class Buffer(native_callback.Callback):  # type: ignore[misc, name-defined]
    """Stands for MRL's buffer, without its chemistry."""

    def __init__(self) -> None:
        super().__init__("buffer", order=0)
        self.buffer: list[str] = []

    def __len__(self) -> int:
        return len(self.buffer)

    def build_buffer(self) -> None:
        self.buffer += ["B"] * 4


class Chain(native_callback.Callback):  # type: ignore[misc, name-defined]
    """A policy over the letters of words of three; rewarded for every C; learns by REINFORCE."""

    def __init__(self) -> None:
        super().__init__("chain")
        torch.manual_seed(0)
        self.logits = torch.nn.Parameter(torch.zeros(3, 4))
        self.optimizer = torch.optim.Adam([self.logits], lr=0.3)

    def sample_batch(self) -> None:
        state = self.environment.batch_state
        self.actions = torch.distributions.Categorical(logits=self.logits).sample((self.environment.bs,))
        state.samples += ["".join("CNOF"[i] for i in row) for row in self.actions.tolist()]
        state.sources += ["live" if i % 2 else "live_buffer" for i in range(self.environment.bs)]

    def compute_reward(self) -> None:
        state = self.environment.batch_state
        state.rewards += torch.tensor([float(word.count("C")) for word in state.samples])

    def reward_modification(self) -> None:
        state = self.environment.batch_state
        new = torch.tensor([float(word not in self.environment.log.unique_samples) for word in state.samples])
        state.rewards_final += 0.1 * new

    def compute_loss(self) -> None:
        state = self.environment.batch_state
        log_probs = torch.distributions.Categorical(logits=self.logits).log_prob(self.actions).sum(1)
        state.loss += -((state.rewards_final - state.rewards_final.mean()) * log_probs).mean()

    def zero_grad(self) -> None:
        self.optimizer.zero_grad()

    def step(self) -> None:
        self.optimizer.step()


class Documented(native_callback.Callback):  # type: ignore[misc, name-defined]
    """The outline of MRL's documentation."""

    def __init__(self) -> None:
        super().__init__(name="my_callback")

    def setup(self) -> None:
        log = self.environment.log
        log.add_log(self.name)
        log.add_metric(self.name)

    def compute_reward(self) -> None:
        batch_state = self.environment.batch_state
        bs = len(batch_state.samples)
        rewards = ours.to_device(torch.ones(bs).float())
        batch_state.rewards += rewards
        batch_state[self.name] = rewards

    def after_compute_reward(self) -> None:
        log = self.environment.log
        my_metric = self.environment.batch_state[self.name].mean()
        log.update_metric(self.name, my_metric.detach().cpu().numpy())


class Beside(native_log.Log):  # type: ignore[misc, name-defined]
    """MRL's own log, told everything at the same events as ours."""

    def __init__(self, other: Any) -> None:
        super().__init__()
        self.other = other

    def __call__(self, event: str) -> Any:
        self.other.environment = self.environment
        answer = super().__call__(event)
        if event == "after_sample":  # each would replace the other's rewards
            self.environment.batch_state.rewards = self.environment.batch_state.rewards * 0
        self.other(event)
        return answer

    def add_metric(self, name: str) -> None:
        super().add_metric(name)
        if hasattr(self, "other"):
            self.other.add_metric(name)

    def add_log(self, name: str) -> None:
        super().add_log(name)
        if hasattr(self, "other"):
            self.other.add_log(name)

    def update_metric(self, name: str, value: Any) -> None:
        super().update_metric(name, value)
        if name not in ("rewards", "rewards_final", "new", "diversity", "bs"):
            self.other.update_metric(name, value)


@pytest.mark.core
def test_both_logs_say_the_same_of_a_training(run: Any, capsys: pytest.CaptureFixture[str], reads_as: Any) -> None:
    mine = ours.Log(run)
    theirs = Beside(mine)
    cbs = [Chain(), Documented(), native_log.MaxCallback("rewards", "live"), native_log.MeanCallback("rewards", None)]
    env = native_environment.Environment(cbs=cbs, buffer=Buffer(), log=theirs)
    env.fit(8, 90, 40, 10)
    numbers = 0
    assert set(theirs.metrics) == set(mine.metrics)
    for name, values in theirs.metrics.items():
        np.testing.assert_allclose(list(mine.metrics[name]), [float(v) for v in values], rtol=1e-6, err_msg=name)
        column = run.book.metrics([f"metrics/{name}"], x="step").column(f"metrics/{name}").to_pylist()
        np.testing.assert_allclose(column, [float(v) for v in values], rtol=1e-6, err_msg=name)
        numbers += len(values)
    for term, batches in theirs.batch_log.items():
        assert len(mine.batch_log[term]) == len(batches) == 40
        for i, items in enumerate(batches):
            assert list(mine.batch_log[term][i]) == list(items), (term, i)
            numbers += len(items)
    assert numbers > 1500
    reads_as(run.book, {"train/reward": "metrics/rewards"})
    assert dict(mine.unique_samples) == {k: float(v) for k, v in theirs.unique_samples.items()}
    pandas = pytest.importorskip("pandas")
    pandas.testing.assert_frame_equal(
        mine.get_df().drop(columns="batch"), theirs.get_df().drop(columns="batch"), check_dtype=False
    )
    first = theirs.get_df().drop(columns="batch").drop_duplicates("samples").reset_index(drop=True)
    pandas.testing.assert_frame_equal(mine.df, first, check_dtype=False)
    assert mine.metrics["rewards"][-1] > mine.metrics["rewards"][0]
    assert run.bill()["drops"] == {}


def test_our_log_takes_the_place_of_mrls_in_its_environment(run: Any) -> None:
    log = ours.Log(run)
    cbs = [Chain(), Documented(), ours.PercentileCallback("rewards", "live", 90), ours.SaveLogDF(3, "saved")]
    env = native_environment.Environment(cbs=cbs, buffer=Buffer(), log=log)
    env.fit(2, 90, 5, 1)
    assert log.iterations == 5
    assert set(log.timelog) == {
        "build_buffer",
        "sample_batch",
        "compute_reward",
        "get_model_outputs",
        "compute_loss",
        "after_batch",
    }
    assert all(len(times) == 5 for times in log.timelog.values())
    assert len(log.batch_log["my_callback"][4]) == 2
    assert sorted(path.name for path in Path("saved").iterdir()) == ["log_df_3.csv", "log_df_5.csv"]
    rows = run.book.timings().to_pylist()
    assert sum(row["name"] == "compute_reward" for row in rows) == 5
    env.fit(2, 90, 2, 1)
    assert len(run.book.samples()) == 14


def test_shipped_readers_of_the_log_read_ours(run: Any) -> None:
    """What MRL's rollbacks, samplers and buffers ask: df with percentiles, the last metrics, membership."""
    log = ours.Log(run)
    asked: list[Any] = []

    class Reader(native_callback.Callback):  # type: ignore[misc, name-defined]
        def after_batch(self) -> None:
            df = log.df[["samples", "rewards"]]
            if len(df):
                asked.append(df[df.rewards >= np.percentile(df.rewards.values, 50)].samples.tolist())
            asked.append(np.array(log.metrics["rewards"][-2:]).mean())
            asked.append([sample in log.unique_samples for sample in self.environment.batch_state.samples])

    native_environment.Environment(cbs=[Chain(), Reader("reader")], buffer=Buffer(), log=log).fit(4, 90, 4, 2)
    assert len(asked) == 11
    assert asked[-1] == [True] * 4


# -- what MRL's own log gets wrong, and ours does not


class Silent(native_callback.Callback):  # type: ignore[misc, name-defined]
    def setup(self) -> None:
        self.environment.log.add_metric("silent")


class Twice(native_callback.Callback):  # type: ignore[misc, name-defined]
    def setup(self) -> None:
        self.environment.log.add_metric("twice")

    def after_sample(self) -> None:
        for value in (1.0, 2.0):
            self.environment.log.update_metric("twice", value)


def trained(log: Any, *cbs: Any) -> Any:
    native_environment.Environment(cbs=[Chain(), *cbs], buffer=Buffer(), log=log).fit(2, 90, 3, 1)
    return log


def test_a_metric_that_is_never_updated(run: Any) -> None:
    with pytest.raises(IndexError):
        trained(native_log.Log(), Silent("silent_one"))
    with pytest.warns(rollbook.errors.RollbookWarning, match="'silent' was not updated in batch 0"):
        log = trained(ours.Log(run), Silent("silent_one"))
    assert log.iterations == 3


def test_a_metric_updated_twice(run: Any) -> None:
    assert len(trained(native_log.Log(), Twice("doubling")).metrics["twice"]) == 6
    with pytest.warns(rollbook.errors.RollbookWarning, match="updated twice"):
        log = trained(ours.Log(run), Twice("doubling"))
    assert list(log.metrics["twice"]) == [2.0, 2.0, 2.0]


def test_a_source_that_is_not_in_the_batch(run: Any) -> None:
    theirs = trained(native_log.Log(), native_log.MaxCallback("rewards", "nowhere"))
    assert theirs.metrics["rewards_nowhere_max"] == [0.0, 0.0, 0.0]
    mine = trained(ours.Log(run), ours.MaxCallback("rewards", "nowhere"))
    assert np.isnan(list(mine.metrics["rewards_nowhere_max"])).all()


def test_the_data_frame_is_unique_at_any_time(run: Any) -> None:
    class Same(native_callback.Callback):  # type: ignore[misc, name-defined]
        def sample_batch(self) -> None:
            self.environment.batch_state.samples += ["X", "X"]
            self.environment.batch_state.sources += ["a", "b"]

    def unique(log: Any) -> Any:
        native_environment.Environment(cbs=[Same("same")], buffer=Buffer(), log=log).fit(2, 90, 2, 1)
        return log.df.samples.tolist()

    assert unique(native_log.Log()) == ["X", "X"]
    assert unique(ours.Log(run)) == ["X"]
