"""Our log beside MRL's: every method and argument, what the star brings, and that the training stays the same."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from operator import add
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
from mrl.train import sampler as native_sampler  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters import mrl as ours  # noqa: E402
from surface import differs, lacks, star  # noqa: E402


@pytest.fixture
def run(own_place: Path) -> Iterator[Any]:
    with rollbook.init("mrl", "surface", dir=own_place / "runs", sinks=(), keeper="inline") as run:
        yield run


def test_the_star_brings_what_mrls_star_brings_and_nothing_else() -> None:
    assert star("rollbook.adapters.mrl") == star("mrl.train.log")


@pytest.mark.parametrize("name", sorted(native_log.__all__))
def test_every_name_has_every_method_and_every_argument(name: str) -> None:
    here, there = getattr(ours, name), getattr(native_log, name)
    assert lacks(here, there) == {} if isinstance(there, type) else differs(here, there) == ""
    assert differs(here, there) == ""


def test_the_small_environment_has_every_method_and_argument_of_mrls() -> None:
    assert lacks(ours.Environment, native_environment.Environment) == {}
    assert differs(ours.Environment, native_environment.Environment) == ""
    assert lacks(ours.Callback, native_callback.Callback) == {}
    assert lacks(ours.BatchState, native_callback.BatchState) == {}


class Words(native_sampler.Sampler):  # type: ignore[misc, name-defined]
    """Half of each batch; the other half is the buffer's."""

    def __init__(self) -> None:
        super().__init__("live", buffer_size=20, p_batch=0.5)

    def _build_buffer(self) -> list[str]:
        return [f"B{i}" for i in range(self.buffer_size)]

    def _sample_batch(self) -> list[str]:
        return [f"L{i}" for i in range(int(self.p_batch * self.environment.bs))]


TRAINING = """
from mrl.train.environment import Environment
{line}
env = Environment(samplers=[Words()], log=make_log())
env.fit(8, 90, 3, 1)
"""


def test_the_one_line_changes_nothing_but_the_log(run: Any) -> None:
    def trained(line: str, make_log: Any) -> Any:
        names: dict[str, Any] = {"Words": Words, "make_log": make_log}
        exec(TRAINING.format(line=line), names)
        return names["env"]

    theirs = trained("from mrl.train.log import *", native_log.Log)
    mine = trained("from rollbook.adapters.mrl import *", lambda: ours.Log(run))
    assert type(mine) is type(theirs)
    assert type(mine.buffer) is type(theirs.buffer)
    for env in (theirs, mine):
        assert [len(samples) for samples in env.log.batch_log["samples"]] == [8, 8, 8]
        assert {source for sources in env.log.batch_log["sources"] for source in sources} == {"live", "live_buffer"}


def test_the_small_environment_says_when_samplers_leave_room_and_there_is_no_buffer(run: Any) -> None:
    env = ours.Environment(samplers=[Words()], log=ours.Log(run))
    with (
        pytest.warns(rollbook.errors.RollbookWarning, match=r"add up to 0.5, not to 1.*gets about 4 samples"),
        pytest.warns(rollbook.errors.RollbookWarning, match="live gave 20 samples to the buffer, and there is none"),
    ):
        env.fit(8, 90, 1, 1)


class Both(native_callback.Callback):  # type: ignore[misc, name-defined]
    """Samples and rewards; also goes through everything a callback does with MRL's metrics."""

    def sample_batch(self) -> None:
        state = self.environment.batch_state
        number = self.environment.log.iterations
        state.samples += [f"s{number}", f"s{number + 1}"]
        state.sources += ["live", "live"]

    def compute_reward(self) -> None:
        state = self.environment.batch_state
        state.rewards += torch.tensor([float(sample[1:]) / 3 for sample in state.samples])

    def setup(self) -> None:
        self.environment.log.metrics["mine"] = []

    def after_batch(self) -> None:
        self.environment.log.metrics["mine"].append(float(self.environment.log.iterations))


def trained(log: Any) -> Any:
    class NoBuffer(native_callback.Callback):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 0

    native_environment.Environment(cbs=[Both("both")], buffer=NoBuffer("buffer"), log=log).fit(2, 90, 5, 1)
    return log


def test_metrics_do_what_mrls_lists_do(run: Any) -> None:
    theirs, mine = trained(native_log.Log()), trained(ours.Log(run))
    for name, values in theirs.metrics.items():
        here = mine.metrics[name]
        assert add(here, [1.0]) == add(values, [1.0])
        assert add([1.0], here) == add([1.0], values)
        assert here * 2 == values * 2
        assert pickle.loads(pickle.dumps(here)) == here.copy() == list(here) == values
        assert here.index(values[-1]) == values.index(values[-1])
        assert list(reversed(here)) == list(reversed(values))
    # Earlier batches stand in the book: what would change them is not there.
    here = set(dir(mine.metrics["rewards"]))
    assert {name for name in dir(list) if name[:1] != "_"} - here == {
        "clear",
        "insert",
        "pop",
        "remove",
        "reverse",
        "sort",
    }
    assert list(mine.metrics["mine"]) == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_frames_have_mrls_types(run: Any) -> None:
    theirs, mine = trained(native_log.Log()), trained(ours.Log(run))
    pandas = pytest.importorskip("pandas")
    pandas.testing.assert_frame_equal(mine.get_df(), theirs.get_df())
    assert mine.get_df().rewards.dtype == mine.df.rewards.dtype == np.float32


def test_a_frame_of_ones_own_can_stand_for_df(run: Any) -> None:
    log = trained(ours.Log(run))
    log.df = log.df[log.df.rewards > 0.5]
    assert log.df.samples.tolist() == ["s2", "s3", "s4", "s5"]
    log.df = log.df.append({"samples": "mine", "rewards": 9.0}, ignore_index=True)  # as MRL's programs do (pandas 1)
    assert log.df.samples.tolist()[-1] == "mine"
    log.environment.fit(2, 90, 1, 1)
    assert log.df.samples.tolist()[-2:] == ["mine", "s6"]


@pytest.mark.filterwarnings("ignore")
def test_a_saved_log_reads_like_mrls_and_can_be_trained_with(run: Any, tmp_path: Path) -> None:
    log = trained(ours.Log(run))
    log.environment = None  # classes of this test have no name to be found by again
    log.mine_too = [1, 2]
    log.save(tmp_path / "log.pkl")
    log.save(io.BytesIO())
    again = torch.load(tmp_path / "log.pkl", weights_only=False)
    assert isinstance(again, ours.Log)
    assert {name: list(values) for name, values in again.metrics.items()} == {
        name: list(values) for name, values in log.metrics.items()
    }
    assert again.unique_samples == dict(log.unique_samples)
    assert len(again.timelog["sample_batch"]) == 5
    assert again.df.equals(log.df)
    assert again.get_df().equals(log.get_df())
    assert again.mine_too == [1, 2]
    trained(again)
    assert again.iterations == 10
    assert "s9" in again.unique_samples
    assert run.book.samples().num_rows == 10
    again.environment = None
    assert pickle.loads(pickle.dumps(again)).iterations == 10


def test_a_log_that_cannot_be_pickled_leaves_no_file_behind(run: Any, tmp_path: Path) -> None:
    log = trained(ours.Log(run))
    log.hook = lambda: None
    with pytest.raises((AttributeError, pickle.PicklingError)):
        log.save(tmp_path / "log.pkl")
    assert list(tmp_path.glob("*log.pkl*")) == []


def test_a_batch_that_breaks_off_leaves_no_times_behind(run: Any) -> None:
    class Broken(native_callback.Callback):  # type: ignore[misc, name-defined]
        def compute_loss(self) -> None:
            if self.environment.log.iterations == 3 and not self.environment.log.broken:
                self.environment.log.broken = True
                raise RuntimeError("broken")

    class NoBuffer(native_callback.Callback):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 0

    log = ours.Log(run)
    log.broken = False
    env = native_environment.Environment(cbs=[Both("both"), Broken("broken")], buffer=NoBuffer("buffer"), log=log)
    with pytest.raises(RuntimeError, match="broken"):
        env.fit(2, 90, 5, 1)
    assert len(log.timelog["sample_batch"]) == 4  # the running batch counts as long as it may go on
    env.fit(2, 90, 2, 1)
    assert {stage: len(times) for stage, times in log.timelog.items()} == dict.fromkeys(log.timelog, 5)
    rows = run.book.timings().to_pylist()
    assert {stage: sum(row["name"] == stage for row in rows) for stage in log.timelog} == dict.fromkeys(log.timelog, 5)
