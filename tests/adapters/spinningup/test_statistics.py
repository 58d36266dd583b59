"""Statistics over everything that was stored, on all ranks, in float64."""

from __future__ import annotations

import math
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.adapters.spinningup import statistics as stats
from waiting import PATIENCE


def test_large_counts_keep_all_their_digits() -> None:
    mean, std, low, high = stats.sample_statistics([16_777_217, 16_777_217]) or ()
    assert (mean, std, low, high) == (16_777_217.0, 0.0, 16_777_217.0, 16_777_217.0)


def test_blocks_of_several_axes_count_every_element() -> None:
    block = np.array([[1.0, 2.0, 2.0], [1.0, 2.0, 2.0], [1.0, 2.0, 2.0]])
    mean, std, low, high = stats.sample_statistics([block]) or ()
    assert mean == pytest.approx(15 / 9)
    assert std == pytest.approx(block.std())
    assert (low, high) == (1.0, 2.0)


def test_arrays_scalars_and_lists_may_be_mixed() -> None:
    mean, _, low, high = stats.sample_statistics([np.array([1.0, 2.0]), 3, [4.0], np.float32(5)]) or ()
    assert (mean, low, high) == (3.0, 1.0, 5.0)


def test_nothing_stored_has_no_statistics() -> None:
    assert stats.sample_statistics([]) is None
    assert all(math.isnan(x) for x in stats.mpi_statistics_scalar([]))


def test_nan_is_not_hidden() -> None:
    mean, std, _, _ = stats.sample_statistics([1.0, math.nan]) or ()
    assert math.isnan(mean)
    assert math.isnan(std)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=50))
def test_they_agree_with_numpy(values: list[float]) -> None:
    mean, std, low, high = stats.sample_statistics(values) or ()
    assert mean == pytest.approx(np.mean(values), rel=1e-12, abs=1e-9)
    assert std == pytest.approx(np.std(values), rel=1e-9, abs=1e-6)
    assert (low, high) == (min(values), max(values))


class World:
    """MPI's world for threads: rank and size, and reductions at a barrier."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.local = threading.local()
        self.barrier = threading.Barrier(size)
        self.slots: list[Any] = [None] * size

    def Get_rank(self) -> int:
        return int(self.local.rank)

    def Get_size(self) -> int:
        return self.size

    def _all(self, value: Any) -> list[Any]:
        self.slots[self.local.rank] = value
        self.barrier.wait(PATIENCE)
        found = list(self.slots)
        self.barrier.wait(PATIENCE)
        return found

    def Allreduce(self, mine: Any, out: Any, op: str) -> None:
        parts = self._all(np.array(mine))
        out[:] = np.sum(parts, axis=0) if op == "sum" else np.max(parts, axis=0)

    def bcast(self, text: str, root: int) -> str:
        return str(self._all(text)[root])

    def on_all_ranks(self, work: Callable[[int], Any]) -> list[Any]:
        results: list[Any] = [None] * self.size

        def one(rank: int) -> None:
            self.local.rank = rank
            results[rank] = work(rank)

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        return results


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(3)
    module = types.ModuleType("mpi4py.MPI")
    module.COMM_WORLD, module.SUM, module.MAX = world, "sum", "max"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", module)
    return world


def test_all_ranks_see_the_statistics_of_all_samples(world: World) -> None:
    parts = [[1.0, 2.0], [], [6.0]]
    found = world.on_all_ranks(lambda rank: stats.sample_statistics(parts[rank]))
    assert found == [(3.0, pytest.approx(np.std([1, 2, 6])), 1.0, 6.0)] * 3


def test_ranks_that_all_lack_samples_agree_on_that(world: World) -> None:
    assert world.on_all_ranks(lambda rank: stats.sample_statistics([])) == [None] * 3


def test_only_rank_0_has_files_and_all_write_to_one_run(world: World, tmp_path: Any) -> None:
    from rollbook.adapters.spinningup import EpochLogger

    def program(rank: int) -> tuple[Any, Any]:
        logger = EpochLogger(
            output_dir=str(tmp_path / "exp"),
            exp_name="exp",
            run_options={"keeper": "inline", "sinks": (), "dir": tmp_path / "runs"},
        )
        logger.store(EpRet=float(rank))
        logger.log_tabular("Epoch", 0)
        logger.log_tabular("EpRet", with_min_and_max=True)
        row = dict(logger.log_current_row)
        logger.dump_tabular()
        return logger.output_dir, row, logger.run.id

    found = world.on_all_ranks(program)
    assert [folder for folder, _, _ in found] == [str(tmp_path / "exp"), None, None]
    assert len({identity for _, _, identity in found}) == 1
    for _, row, _ in found:
        assert row["AverageEpRet"] == 1.0
        assert (row["MinEpRet"], row["MaxEpRet"]) == (0.0, 2.0)
    lines = (tmp_path / "exp" / "progress.txt").read_text().splitlines()
    assert len(lines) == 2


@pytest.mark.parametrize(
    "stored",
    [
        [1.0, 2, np.float64(3.5), np.float32(0.1)],
        [np.array(1.5, np.float32), np.array([2.0]), np.array([[3, 4]])],
        [np.array([True, False]), np.array(2)],
        [1.0, np.array([2.0, 3.0]), [4, (5, 6.0)], np.bool_(True)],
    ],
)
def test_every_mixture_of_kinds_is_one_flat_array(stored: list[object]) -> None:
    def flat(item: object) -> list[float]:
        if isinstance(item, (list, tuple)):
            return [number for inner in item for number in flat(inner)]
        return [float(number) for number in np.asarray(item).reshape(-1)]

    found = stats.as_samples(stored)
    assert found.dtype == np.float64
    assert found.tolist() == flat(stored)
