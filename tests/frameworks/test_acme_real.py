"""Acme itself: its EnvironmentLoop, counters, loggers and observers, with ours beside or in place of its own."""

from __future__ import annotations

import csv
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GROUPS = ("main", "acme")
pytestmark = pytest.mark.frameworks

dm_env = pytest.importorskip("dm_env")
# dm-acme 0.4.0 imports `launchpad`, which is not to be had everywhere; the loop only asks it to tell of a stop.
if "launchpad" not in sys.modules:
    launchpad = types.ModuleType("launchpad")
    launchpad.register_stop_handler = launchpad.unregister_stop_handler = lambda handler: None  # type: ignore[attr-defined]
    sys.modules["launchpad"] = launchpad
acme = pytest.importorskip("acme")

from acme.utils import counting as native_counting  # noqa: E402
from acme.utils import loggers as native  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters import acme as ours  # noqa: E402
from rollbook.book.book import Book  # noqa: E402
from waiting import PATIENCE  # noqa: E402

NEWER = hasattr(sys.modules["acme.utils.loggers"], "AsyncLogger") and "observers" in str(
    __import__("inspect").signature(acme.EnvironmentLoop.__init__)
)


class Corridor(dm_env.Environment):  # type: ignore[misc, name-defined]
    """Ten fields; right leads to the goal (reward 1, the end), left back; after 30 steps it is cut off."""

    def __init__(self, reward_dtype: Any = np.float32) -> None:
        self._dtype = reward_dtype
        self._at = self._steps = 0

    def reset(self) -> Any:
        self._at, self._steps = 3, 0
        return dm_env.restart(self._at)

    def step(self, action: int) -> Any:
        self._steps += 1
        self._at = max(0, self._at + (1 if action else -1))
        reward = np.asarray(1.0 if self._at == 9 else -0.01, self._dtype)
        if self._at == 9:
            return dm_env.termination(reward, self._at)
        return dm_env.truncation(reward, self._at) if self._steps == 30 else dm_env.transition(reward, self._at)

    def observation_spec(self) -> Any:
        return dm_env.specs.DiscreteArray(10)

    def action_spec(self) -> Any:
        return dm_env.specs.DiscreteArray(2)

    def reward_spec(self) -> Any:
        return dm_env.specs.Array((), self._dtype)


class Learner:
    """Q-learning, one transition an update; writes its loss to its logger as Acme's learners do."""

    def __init__(self, logger: Any, counter: Any) -> None:
        self.q = np.zeros((10, 2))
        self._logger, self._counter = logger, counter

    def learn(self, s: int, a: int, r: float, discount: float, s2: int) -> None:
        error = r + 0.95 * discount * self.q[s2].max() - self.q[s, a]
        self.q[s, a] += 0.5 * error
        counts = self._counter.increment(steps=1)
        self._logger.write({"td_error": abs(error), "q_max": self.q.max(), **counts})


class Agent(acme.Actor):  # type: ignore[misc, name-defined]
    """Epsilon-greedy over the learner's table."""

    def __init__(self, learner: Learner, epsilon: float, seed: int) -> None:
        self._learner, self._epsilon = learner, epsilon
        self._rng = np.random.default_rng(seed)
        self._last: Any = None

    def select_action(self, observation: Any) -> int:
        if self._rng.random() < self._epsilon:
            return int(self._rng.integers(2))
        return int(self._learner.q[observation].argmax())

    def observe_first(self, timestep: Any) -> None:
        self._last = timestep

    def observe(self, action: Any, next_timestep: Any) -> None:
        self._transition = (self._last.observation, action, next_timestep)
        self._last = next_timestep

    def update(self, wait: bool = False) -> None:
        s, a, t = self._transition
        self._learner.learn(s, a, float(t.reward), float(t.discount or 0.0), t.observation)


@pytest.fixture
def run(own_place: Path) -> Iterator[Any]:
    with rollbook.init("corridor", "q", dir=own_place / "runs", sinks=(), keeper="inline") as run:
        yield run


def column(book: Book, key: str, x: str) -> list[tuple[Any, Any]]:
    rows = book.metrics([key], x=x).to_pylist()
    return [(row[x], row[key]) for row in rows if row[key] is not None]


@pytest.mark.core
def test_a_training_says_the_same_in_acmes_loggers_and_in_the_book(run: Any, own_place: Path, reads_as: Any) -> None:
    counter = native_counting.Counter()
    memory = {label: native.InMemoryLogger() for label in ("train_loop", "learner", "eval_loop")}
    files = {label: native.CSVLogger(str(own_place), label, add_uid=False) for label in memory}

    def logger(label: str) -> Any:
        return native.Dispatcher([memory[label], files[label], ours.RollbookLogger(run, label)])

    learner = Learner(logger("learner"), native_counting.Counter(counter, "learner", time_delta=0.0))
    train = acme.EnvironmentLoop(Corridor(), Agent(learner, 0.3, 1), counter=counter, logger=logger("train_loop"))
    evaluate = acme.EnvironmentLoop(Corridor(), Agent(learner, 0.0, 2), logger=logger("eval_loop"), should_update=False)
    for _ in range(5):
        train.run(num_episodes=6)
        evaluate.run(num_episodes=2)
    for file in files.values():
        file.close()

    book = run.book
    numbers = 0
    clock = {"train_loop": "env_step", "learner": "gradient_step", "eval_loop": "step"}
    entry = {"train_loop": "steps", "learner": "learner_steps", "eval_loop": "steps"}
    for label, records in memory.items():
        assert len(records.data) > 5
        with open(files[label].file_path, newline="") as file:
            cells = list(csv.DictReader(file))
        for key in records.data[0]:
            native_says = [(record[entry[label]], np.asarray(record[key]).item()) for record in records.data]
            assert column(book, f"{label}/{key}", clock[label]) == native_says, (label, key)
            # Acme's CSV has the digits of 32-bit floats where the value is one.
            exact = [np.float32(v) if isinstance(records.data[0][key], np.ndarray) else v for _, v in native_says]
            assert [type(v)(cell[key]) for v, cell in zip(exact, cells, strict=True)] == exact, (label, key)
            numbers += len(native_says)
    assert numbers > 500
    reads_as(book, {"train/return": "train_loop/episode_return", "test/return": "eval_loop/episode_return"})
    assert run.bill()["drops"] == {}
    assert evaluate.run_episode()["episode_return"] == pytest.approx(1.0 - 5 * 0.01)
    steps = [env_step for env_step, _ in column(book, "learner/td_error", "env_step")]
    assert steps == sorted(steps)


def test_make_logger_runs_in_the_loop_as_in_the_article(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    learner = Learner(ours.make_logger(run, prefix="learner"), ours.Counter())
    train = acme.EnvironmentLoop(
        Corridor(),
        Agent(learner, 0.3, 1),
        counter=ours.Counter(),
        logger=ours.make_logger(run, prefix="train", smoothing_regex="return"),
    )
    eval_logger = ours.make_logger(run, prefix="eval", aggregate_regex="return")
    evaluate = acme.EnvironmentLoop(Corridor(), Agent(learner, 0.0, 2), logger=eval_logger, should_update=False)
    for _ in range(3):
        train.run(num_episodes=4)
        evaluate.run(num_episodes=5)
        eval_logger.dump()
    book = run.book
    raw = [value for _, value in column(book, "train/episode_return", "env_step")]
    smoothed = [value for _, value in column(book, "train/episode_return_smoothed_0.99", "env_step")]
    average = c = 0.0
    for value, found in zip(raw, smoothed, strict=True):
        average, c = value * (1 - c) + average * c, 0.9 * c + 0.099
        assert found == pytest.approx(average, rel=1e-12)
    assert len(raw) == 12
    returns = [value for _, value in column(book, "eval/episode_return", "step")]
    means = [value for _, value in column(book, "eval/episode_return_mean", "step")]
    assert means == pytest.approx([np.mean(returns[i : i + 5]) for i in (0, 5, 10)])
    out = capsys.readouterr().out
    assert out.count("[Eval] ") == 3
    assert "[Train] Episode Length" in out


def test_a_logger_factory_and_nested_rewards_work_in_the_loop(run: Any) -> None:
    class Two(Corridor):
        def step(self, action: int) -> Any:
            timestep = super().step(action)
            return timestep._replace(reward={"goal": timestep.reward, "pair": np.ones(2, np.float32)})

        def reward_spec(self) -> Any:
            scalar = dm_env.specs.Array((), np.float32)
            return {"goal": scalar, "pair": dm_env.specs.Array((2,), np.float32)}

    class Idle(Agent):
        def update(self, wait: bool = False) -> None: ...

    factory = ours.LoggerFactory(run, time_delta=None)
    agent = Idle(Learner(factory("learner"), ours.Counter()), 0.5, 3)
    acme.EnvironmentLoop(Two(), agent, logger=factory("actor", "steps", 0)).run(num_episodes=3)
    goals = column(run.book, "actor/episode_return/goal", "env_step")
    assert len(goals) == 3
    pairs = [row for row in run.book.histograms().to_pylist() if row["key"] == "actor/episode_return/pair"]
    assert [list(row["values"]) for row in pairs] == [
        [float(b - a)] * 2 for a, b in zip([0, *[s for s, _ in goals]], [s for s, _ in goals], strict=False)
    ]


@pytest.mark.skipif(not NEWER, reason="the loop of dm-acme 0.2.4 takes no observers")
def test_observers_of_acmes_and_of_ours_run_in_the_loop(run: Any) -> None:
    from acme.utils import observers

    class Idle(Agent):
        def update(self, wait: bool = False) -> None: ...

    memory = native.InMemoryLogger()
    agent = Idle(Learner(ours.NoOpLogger(), ours.Counter()), 1.0, 3)
    loop = acme.EnvironmentLoop(
        Corridor(),
        agent,
        logger=native.Dispatcher([memory, ours.RollbookLogger(run, "train_loop")]),
        observers=[observers.ActionNormObserver(), ours.EpisodeObserver(run)],
    )
    loop.run(num_episodes=6)
    norms = [record["action_norm_avg"] for record in memory.data]
    assert [v for _, v in column(run.book, "train_loop/action_norm_avg", "env_step")] == norms
    episodes = run.book.episodes().to_pylist()
    assert [row["length"] for row in episodes] == [record["episode_length"] for record in memory.data]
    returns = [float(record["episode_return"]) for record in memory.data]  # summed in 32 bits there
    assert [row["return"] for row in episodes] == pytest.approx(returns, rel=1e-6)
    assert [row["env_step"] for row in episodes] == [record["steps"] for record in memory.data]
    assert all(row["truncated"] == (row["length"] == 30 and row["return"] < 0) for row in episodes)
    assert {row["terminated"] for row in episodes} <= {True, False}


# -- what Acme's own loggers get wrong, and ours do not


class Slow:
    def __init__(self) -> None:
        import threading

        self.data: list[Any] = []
        self.gate = threading.Event()

    def write(self, data: Any) -> None:
        self.gate.wait(PATIENCE)
        self.data.append(data)

    def close(self) -> None: ...


@pytest.mark.parametrize(("loggers", "loses"), [(native, True), (ours, False)])
def test_asynchronous_records_and_close(loggers: Any, loses: bool) -> None:
    slow = Slow()
    logger = loggers.AsyncLogger(slow)
    for i in range(5):
        logger.write({"i": i})
    slow.gate.set()
    logger.close()
    assert (len(slow.data) < 5) == loses


@pytest.mark.parametrize(("loggers", "loses"), [(native, True), (ours, False)])
def test_the_last_record_behind_a_time_filter(loggers: Any, loses: bool) -> None:
    memory = loggers.InMemoryLogger()
    logger = loggers.TimeFilter(memory, time_delta=100.0)
    for i in range(3):
        logger.write({"i": i})
    logger.close()
    assert [record["i"] for record in memory.data] == ([0] if loses else [0, 2])


@pytest.mark.parametrize(("loggers", "loses"), [(native, True), (ours, False)])
def test_columns_that_appear_later(loggers: Any, loses: bool, own_place: Path) -> None:
    logger = loggers.CSVLogger(str(own_place), add_uid=False)
    logger.write({"a": 1})
    logger.write({"a": 2, "late": 3})
    logger.close()
    with open(logger.file_path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert ("late" not in rows[1]) == loses


@pytest.mark.parametrize(("counting", "loses"), [(native_counting, True), (ours.counting, False)])
def test_increments_just_before_the_end(counting: Any, loses: bool) -> None:
    parent = counting.Counter()
    child = counting.Counter(parent, "child", time_delta=100.0)
    for _ in range(6):
        child.increment(steps=1)
    if hasattr(child, "close"):
        child.close()
    assert parent.get_counts() == {"child_steps": 1 if loses else 6}


@pytest.mark.parametrize(("loggers", "loses"), [(native, True), (ours, False)])
def test_one_failing_logger_and_the_others(loggers: Any, loses: bool) -> None:
    class Failing(loggers.Logger):  # type: ignore[misc, name-defined]
        def write(self, data: Any) -> None:
            raise OSError("no space")

        def close(self) -> None: ...

    memory = loggers.InMemoryLogger()
    logger = loggers.Dispatcher([Failing(), memory])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            logger.write({"a": 1})
        except OSError:
            assert loses
    assert (not memory.data) == loses


def test_the_terminal_shows_something_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    native.TerminalLogger("train").write({"a": 1})
    assert capsys.readouterr().out == ""
    ours.TerminalLogger("train").write({"a": 1})
    assert capsys.readouterr().out == "[Train] A = 1\n"


def test_the_example_runs(own_place: Path) -> None:
    import os
    import subprocess

    example = Path(__file__).parents[2] / "examples" / "acme_loop.py"
    stand_in = own_place / "launchpad.py"
    stand_in.write_text("def register_stop_handler(h): ...\ndef unregister_stop_handler(h): ...\n")
    paths = [str(Path(rollbook.__file__).parents[1]), str(own_place)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(example), "--rounds", "3"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "15 training episodes" in done.stdout


def test_acmes_own_tests_of_loggers_filters_and_counters_pass_with_ours_in_their_place(own_place: Path) -> None:
    import os
    import subprocess

    program = Path(__file__).with_name("acme_own_tests.py")
    environment = {**os.environ, "PYTHONPATH": str(Path(rollbook.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Ran 16 tests" in done.stderr
