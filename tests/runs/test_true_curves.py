"""A group's curve is that of the group to its end, however its runs log: by `runs.curves` and on the page alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rollbook
from rollbook.errors import BadInput
from rollbook.stats import align

END = 30_000


def record(folder: Path, name: str, seed: int, every: int, level: float, *, first: int = 0, end: int = END) -> None:
    """A training of `end` steps whose episodes end every `every` steps, from step `first` on."""
    with rollbook.init("p", name, seed=seed, config={"algo": name}, dir=folder, sinks=[], keeper="inline") as run:
        for step in range(first + every, end + 1, every):
            run.log({"train/return": level}, env_step=step)
        run.log({"update/loss": 0.0}, env_step=end)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four good seeds with episodes of 491 to 494 steps, and a bad one with episodes of 20."""
    folder = tmp_path_factory.mktemp("runs")
    record(folder, "ppo", 0, 20, 20.0)
    for seed in range(1, 5):
        record(folder, "ppo", seed, 490 + seed, 492.0)
    return folder


def test_a_curve_does_not_end_with_its_worst_seed_alone(folder: Path) -> None:
    (group,) = rollbook.open(folder).curves("train/return", x="env_step", by="config.algo").groups
    shown = np.isfinite(group.band.centre_P)
    assert group.band.centre_P[shown][-1] == 492.0  # the interquartile mean of five
    assert group.n_P[shown].tolist() == [5] * int(shown.sum())
    assert group.aligned.x_P[shown][-1] == END


def test_nor_does_it_begin_with_it(folder: Path) -> None:
    (group,) = rollbook.open(folder).curves("train/return", x="env_step", by="config.algo").groups
    shown = np.isfinite(group.band.centre_P)
    assert set(group.band.centre_P[shown]) == {492.0}
    assert 494 <= group.aligned.x_P[shown][0] < 700


def test_a_run_that_ended_earlier_has_no_value_beyond_its_end_and_one_run_is_no_group(tmp_path: Path) -> None:
    record(tmp_path, "ppo", 0, 500, 1.0, end=10_000)
    record(tmp_path, "ppo", 1, 500, 2.0, end=10_400)
    record(tmp_path, "ppo", 2, 500, 3.0, end=20_000)
    (group,) = rollbook.open(tmp_path).curves("train/return", x="env_step", by="config.algo").groups
    x_P, shown = group.aligned.x_P, np.isfinite(group.band.centre_P)
    assert x_P[shown][-1] == 10_000  # at 10,500 one run is left, the second ended at 10,400
    assert group.n_P[x_P == 10_000].tolist() == [3]
    assert group.n_P[-1] == 1


def test_a_run_that_begins_late_keeps_nobody_waiting(tmp_path: Path) -> None:
    """It was forked at step 5,000: it does not lack a value before."""
    record(tmp_path, "ppo", 0, 500, 1.0)
    record(tmp_path, "ppo", 1, 500, 2.0)
    record(tmp_path, "ppo", 2, 500, 3.0, first=5_000)
    (group,) = rollbook.open(tmp_path).curves("train/return", x="env_step", by="config.algo").groups
    x_P, shown = group.aligned.x_P, np.isfinite(group.band.centre_P)
    assert x_P[shown][0] == 500
    assert group.n_P[x_P == 500].tolist() == [2]
    assert group.n_P[-1] == 3


def test_one_run_alone_is_shown_as_it_is(tmp_path: Path) -> None:
    record(tmp_path, "ppo", 0, 500, 1.0)
    (group,) = rollbook.open(tmp_path).curves("train/return", x="env_step", by="config.algo").groups
    assert np.isfinite(group.band.centre_P).all()


def test_where_the_end_is_not_known_the_last_value_holds_as_long_as_rows_are_apart() -> None:
    runs = {"a": ([0, 100, 200], [1, 2, 3]), "b": ([0, 90, 180], [4, 5, 6]), "dead": ([0, 50], [7, 8])}
    grid = [0, 100, 180, 190, 200]
    held = align(runs, grid=grid, crashed=["dead"], ends=dict.fromkeys(runs))
    np.testing.assert_array_equal(held.values_RP, [[1, 2, 2, 2, 3], [4, 5, 6, 6, 6], [7, *[np.nan] * 4]])
    known = align(runs, grid=grid, crashed=["dead"], ends={"b": 190.0})
    np.testing.assert_array_equal(known.values_RP[1], [4, 5, 6, 6, np.nan])


@pytest.mark.parametrize("verb", ["sweep", "curves", "compare"])
def test_a_seed_below_0_is_refused_in_words(folder: Path, verb: str) -> None:
    runs = rollbook.open(folder)
    asked = {
        "sweep": lambda: runs.sweep("train/return", seed=-1),
        "curves": lambda: runs.curves("train/return", by="seed", seed=-1),
        "compare": lambda: runs.compare("train/return", by="seed", seed=-1),
    }
    with pytest.raises(BadInput, match=r"seed=-1: a seed of random numbers must be 0 or more"):
        asked[verb]()
