"""JSON, YAML and pickles that programs write without a tool: which runs are in them, and which files hold none."""

# ruff: noqa: E501  (a table: one file a line)

from __future__ import annotations

import collections
import io
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rollbook
from cases import examples
from rollbook.formats.importers._pickled import Unknown, value_of_pickle

R = [1.0, 2.0, 4.0, 8.0]
"""The returns of each training."""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


ROWS = [{"episode": n, "reward": r, "info": {"lives": 3}} for n, r in enumerate(R)]

HELD: dict[str, tuple[str, Any, dict[str, tuple[str, Any, int]]]] = {
    # file, content, {algo or "": (key, environment or None, number of runs)}
    "settings beside lists": ("results/training_stats.json", {"episodes": 4, "alpha": 0.1, "episode_rewards": R}, {"": ("train/return", None, 1)}),
    "a history inside": ("results/ppo_metrics.json", {"algo": "ppo", "seed": 3, "history": {"env_steps": [0, 10, 20, 30], "mean_return": R}}, {"ppo": ("train/return", None, 1)}),
    "lists of several lengths": ("out/training_metrics.json", {"episode_rewards": R, "losses": [0.5] * 9, "note": "x"}, {"": ("train/return", None, 1)}),
    "an unknown name": ("out/dump.json", {"episode_rewards": R}, {"": ("train/return", None, 1)}),
    "rows": ("out/train.json", ROWS, {"": ("train/return", None, 1)}),
    "rows inside": ("out/curriculum.json", {"stage": 2, "performance_history": [{"episode": n, "episode_reward": r} for n, r in enumerate(R)]}, {"": ("train/return", None, 1)}),
    "steps as names": ("out/evals.json", {str(100 * n): {"mean_reward": r} for n, r in enumerate(R)}, {"": ("train/return", None, 1)}),
    "iterations as names": ("run/logs/log_3", {f"iteration_{n}": {"train_average_return": [r]} for n, r in enumerate(R)}, {"": ("train/return", None, 1)}),
    "a list for each algorithm": ("out/rewards.json", {"PPO": R, "SAC": R}, {"ppo": ("train/return", None, 1), "sac": ("train/return", None, 1)}),
    "lists for each algorithm": ("out/comparison.json", {"ppo": {"episode_rewards": R}, "dqn": {"episode_rewards": R}, "gap": 0.5}, {"ppo": ("train/return", None, 1), "dqn": ("train/return", None, 1)}),
    "algorithms of seeds": ("out/all_results.pkl", {"ppo": {42: {"episode_rewards": R}, 7: {"episode_rewards": R}}, "dqn": {42: {"episode_rewards": R}, 7: {"episode_rewards": R}}}, {"ppo": ("train/return", None, 2), "dqn": ("train/return", None, 2)}),
    "Dopamine's baselines": ("atari/pong.json", [{"Iteration": n, "Value": r, "Agent": a} for a in ("DQN", "C51") for _ in range(3) for n, r in enumerate(R)], {"dqn": ("train/return", "pong", 3), "c51": ("train/return", "pong", 3)}),
    "Dopamine's baselines in turns": ("atari/pong_Impala.json", [{"Iteration": n, "Value": r, "Agent": a} for a in ("DQN", "C51") for n, r in enumerate(R) for _ in range(3)], {"dqn": ("train/return", "pong", 3), "c51": ("train/return", "pong", 3)}),
    "YAML": ("out/results.yaml", {"algo": "td3", "episode_rewards": R}, {"td3": ("train/return", None, 1)}),
    "numbers as texts": ("out/results.json", [{"episode": n, "episode_reward": f"{r:.1f}"} for n, r in enumerate(R)], {"": ("train/return", None, 1)}),
}  # fmt: skip


def write(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix in (".json", ".yaml"):  # JSON is YAML
        file.write_text(json.dumps(content))
    else:
        file.write_bytes(pickle.dumps(content))


@pytest.mark.parametrize("case", HELD)
def test_each_training_in_a_file_is_a_run_with_its_algorithm_seed_and_every_return(case: str, tmp_path: Path) -> None:
    path, content, expected = HELD[case]
    write(tmp_path / "study" / path, content)
    runs = rollbook.open(tmp_path / "study")
    assert not runs.problems
    found = collections.Counter(row["algo"] or "" for row in runs.rows())
    assert found == {algo: n for algo, (_key, _env, n) in expected.items()}
    seeds = [book.seed for book in runs]
    for row in runs.rows():
        book = runs.one(row["name"])
        key, env, n = expected[row["algo"] or ""]
        assert row["env"] == env
        assert book.series(key).mean.tolist() == R
        assert np.all(np.diff(book.series(key).x) > 0)
        assert n != 2 or sorted(seeds) == [7, 7, 42, 42]
    names = [row["name"] for row in runs.rows()]
    assert len(set(names)) == len(names)


def test_what_stands_beside_the_lists_is_the_configuration(tmp_path: Path) -> None:
    write(tmp_path / "metrics.json", {"algo": "ppo", "seed": 3, "config": {"lr": 0.1}, "gamma": 0.9, "returns": R})
    runs = rollbook.open(tmp_path)
    (book,) = runs
    assert (book.seed, book.config["lr"], book.config["gamma"]) == (3, 0.1, 0.9)
    assert runs.rows()[0]["algo"] == "ppo"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q_table.json", {"0,1": [0.1, 0.2, 0.3, 0.4], "1,1": [0.1, 0.2, 0.3, 0.4]}),
        ("results.json", {"ppo": {"partition": [1, 2, 3, 4]}, "dp": {"partition": [4, 3, 2, 1]}}),
        ("eval_metrics.json", {"mean_reward": -427.2, "std_reward": 0.0, "n_episodes": 50}),
        ("vocab.json", {"reward": 17, "score": 18}),
        ("package.json", {"version": "1", "scores": [1, 2, 3, 4]}),
        ("prompts.json", [{"index": 0, "text": "a"}, {"index": 1, "text": "b"}]),
        ("space.json", {"low": [0.0, 0.0, 0.0], "high": [1.0, 1.0, 1.0]}),
    ],
)
def test_what_is_no_training_is_no_run(name: str, content: object, tmp_path: Path) -> None:
    write(tmp_path / name, content)
    runs = rollbook.open(tmp_path)
    assert len(runs) == 0
    assert bool(runs.problems) == (name in ("results.json", "eval_metrics.json"))  # their names say they hold results


def test_a_table_of_anything_with_numbered_rows_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "food.csv").write_text(",food,fat\n0,egg,1.5\n1,rice,0.5\n2,oil,9.5\n")
    (tmp_path / "curve.csv").write_text(",reward\n0,1.5\n1,0.5\n2,9.5\n")
    (book,) = rollbook.open(tmp_path)
    assert book.name == "curve"


def test_rows_with_a_return_and_a_length_and_no_counter_are_episodes(tmp_path: Path) -> None:
    (tmp_path / "dqn_rewards.csv").write_text("reward,length,result\n1.5,10,win\n2.5,20,loss\n1.0,30,win\n")
    (book,) = rollbook.open(tmp_path)
    series = book.series("train/return", x="episode")
    assert (series.x.tolist(), series.mean.tolist()) == ([0, 1, 2], [1.5, 2.5, 1.0])


def test_only_the_newest_of_dopamines_logs_is_read_as_it_holds_the_others(tmp_path: Path) -> None:
    for n in (1, 9, 10):
        held = {
            f"iteration_{k}": {"train_average_return": [float(k)], "eval_average_return": [k + 0.5]} for k in range(n)
        }
        write(tmp_path / "study" / "dqn_pong" / "logs" / f"log_{n}", held)
    (book,) = rollbook.open(tmp_path / "study")
    assert book.name == "dqn_pong"
    assert book.series("train/return").x.tolist() == list(range(10))
    assert book.series("test/return").mean.tolist() == [n + 0.5 for n in range(10)]


# -- pickles

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=examples(60))
@given(PLAIN, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_values_come_out_of_a_pickle_as_they_went_in(value: object, protocol: int) -> None:
    assert value_of_pickle(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_and_numbers_of_numpy_come_out_as_lists_and_numbers(protocol: int) -> None:
    arrays = [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
        np.arange(3) > 1,
    ]
    value = {"a": arrays, "n": np.float32(1.5), "m": np.int64(7), "d": collections.defaultdict(list, {"x": [1.0]})}
    said = value_of_pickle(pickle.dumps(value, protocol))
    assert said == {"a": [array.tolist() for array in arrays], "n": 1.5, "m": 7, "d": {"x": [1.0]}}


class Hostile:
    """Writes a file where it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self.file,)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_in_a_pickle_is_run_and_what_is_plain_beside_it_is_read(protocol: int, tmp_path: Path) -> None:
    told = tmp_path / "it ran"
    file = tmp_path / "results.pkl"
    file.write_bytes(pickle.dumps({"agent": Hostile(told), "episode_rewards": R}, protocol))
    (book,) = rollbook.open(tmp_path)
    assert book.series("train/return").mean.tolist() == R
    said = value_of_pickle(pickle.dumps([Hostile(told)], protocol))
    assert isinstance(said[0], Unknown)
    assert not told.exists()
    pickle.loads(pickle.dumps(Hostile(told), protocol))
    assert told.exists()


def test_a_pickle_of_objects_alone_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "results.pkl").write_bytes(pickle.dumps(Hostile(tmp_path / "ran")))
    runs = rollbook.open(tmp_path)
    assert len(runs) == 0
    assert "results.pkl" in str(runs.problems)


@settings(max_examples=examples(60))
@given(st.integers(0, 400), st.integers(0, 255))
def test_a_damaged_pickle_raises_nothing_but_a_value_error(place: int, byte: int) -> None:
    data = bytearray(pickle.dumps({"a": np.arange(4.0), "b": [1, "x", None, (1.5,)]}))
    data[place % len(data)] = byte
    try:
        value_of_pickle(bytes(data))
    except ValueError:
        pass


def test_values_that_lie_in_each_other_many_times_are_read_once() -> None:
    value: list[Any] = [1.0, "x"]
    for _ in range(60):
        value = [value, value]
    stream = io.BytesIO()
    pickle.dump(value, stream)
    assert len(value_of_pickle(stream.getvalue())) == 2
