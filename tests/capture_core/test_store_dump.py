"""Store then log: what dump() says about what store() was given."""

from __future__ import annotations

import math
import os
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.capture import store_dump
from rollbook.capture.store_dump import Store
from rollbook.values.describe import Blocks, Pile
from waiting import PATIENCE, pause


def test_a_dump_gives_mean_population_std_median_and_n() -> None:
    store = Store()
    for value in (1.0, 2.0, 4.0):
        store.store({"ret": value})
    row = store.dump()
    assert list(row) == ["ret/mean", "ret/std", "ret/median", "ret/n"]
    assert row["ret/mean"] == pytest.approx(7 / 3)
    assert row["ret/std"] == pytest.approx(math.sqrt(14 / 9))
    assert row["ret/median"] == 2.0
    assert row["ret/n"] == 3
    assert type(row["ret/n"]) is int


def test_minimum_and_maximum_come_only_when_asked_for() -> None:
    store = Store()
    store.store(ret=3)
    store.store(ret=-1)
    row = store.dump(with_min_and_max=True)
    assert (row["ret/min"], row["ret/max"]) == (-1.0, 3.0)
    store.store(ret=1)
    assert "ret/min" not in store.dump()


def test_average_only_leaves_out_spread_and_median() -> None:
    store = Store()
    store.store(ret=3)
    assert store.dump(average_only=True) == {"ret/mean": 3.0, "ret/n": 1}
    store.store(ret=5)
    both = store.dump(average_only=True, with_min_and_max=True)
    assert both == {"ret/mean": 5.0, "ret/n": 1, "ret/min": 5.0, "ret/max": 5.0}


def test_a_key_without_new_values_gives_n_0_alone() -> None:
    store = Store()
    store.store(ret=3, length=1)
    store.dump()
    store.store(length=2)
    assert store.dump(["ret", "length"], with_min_and_max=True, average_only=True) == {
        "ret/n": 0,
        "length/mean": 2.0,
        "length/n": 1,
        "length/min": 2.0,
        "length/max": 2.0,
    }
    assert store.dump(["never"]) == {"never/n": 0}


def test_a_dump_of_nothing_gives_nothing() -> None:
    assert Store().dump(with_min_and_max=True) == {}
    store = Store()
    store.store(ret=1)
    assert store.dump([]) == {}
    assert store.dump() == {"ret/mean": 1.0, "ret/std": 0.0, "ret/median": 1.0, "ret/n": 1}


def test_a_dump_of_one_key_leaves_the_others_for_later() -> None:
    store = Store()
    store.store(a=1, b=2)
    assert "b/n" not in store.dump(["a"])
    assert store.dump("b")["b/mean"] == 2.0


def test_every_value_is_appended_raw_and_at_once() -> None:
    rows: list[dict[str, Any]] = []
    store = Store(rows.append)
    store.store({"ret": 1.0, "who": "me"}, length=3)
    assert rows == [{"ret": 1.0, "who": "me", "length": 3}]


def test_nested_dicts_arrays_and_lists_count_each_number() -> None:
    store = Store()
    store.store({"loss": {"policy": 1.0, "value": np.float32(0.5)}})
    store.store({"adv": np.arange(6.0).reshape(2, 3), "l": [1, (2,)]})
    row = store.dump()
    assert row["loss/policy/mean"] == 1.0
    assert row["loss/value/mean"] == 0.5
    assert (row["adv/n"], row["adv/mean"], row["adv/median"]) == (6, 2.5, 2.5)
    assert (row["l/n"], row["l/mean"]) == (2, 1.5)


def test_bools_and_zero_dimensional_arrays_are_numbers() -> None:
    store = Store()
    store.store(success=True, loss=np.array(2.0, dtype=np.float16))
    store.store(success=np.bool_(False), loss=np.int8(4))
    row = store.dump()
    assert (row["success/mean"], row["loss/mean"]) == (0.5, 3.0)


def test_what_is_no_number_is_counted_appended_and_left_out() -> None:
    counted: list[tuple[str, int]] = []
    rows: list[dict[str, Any]] = []
    store = Store(rows.append, count=lambda cause, n, _message: counted.append((cause, n)))
    store.store(name="text", nothing=None, z=1j, words=np.array(["a"]), huge=10**400, ok=1)
    assert {key for key in store.dump() if key.endswith("/mean")} == {"ok/mean"}
    assert counted == [("store_not_a_number", 1)] * 5
    assert len(rows) == 1


numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=64),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(-1, 1).map(lambda x: 1e8 + x),
)


@given(st.lists(numbers, min_size=1, max_size=60))
def test_the_statistics_are_those_of_numpy(values: list[float]) -> None:
    store = Store()
    for value in values:
        store.store(x=value)
    row = store.dump(with_min_and_max=True)
    with np.errstate(all="ignore"):
        array = np.array(values, dtype=np.float64)
        wide = array.astype(np.longdouble)  # numpy's own sums would be the less exact side
        expected = {"median": np.median(array), "min": array.min(), "max": array.max()}
        mean, std = wide.mean(), wide.std()
    for name, value in expected.items():
        np.testing.assert_array_equal(row[f"x/{name}"], float(value), err_msg=name)  # -0.0 is 0.0
    np.testing.assert_allclose(row["x/mean"], float(mean), rtol=1e-12, atol=1e-300)
    if np.isfinite(std) and float(std) < 1e150:  # above, the squares leave the floats: infinite, as numpy's are
        # The distance from a mean that is right to one part in 2**53 cannot be smaller than that part,
        # and the square of a distance below 1e-150 is no longer a normal float.
        np.testing.assert_allclose(row["x/std"], float(std), rtol=1e-9, atol=abs(float(mean)) * 3e-16 + 1e-150)
    if math.isfinite(row["x/mean"]):
        assert row["x/min"] <= row["x/mean"] <= row["x/max"]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.lists(st.integers(1, 40), max_size=20))
def test_beyond_the_bound_all_but_the_median_stay_exact(values: list[float], cuts: list[int]) -> None:
    folded = Blocks()
    start = 0
    for size in [*cuts, len(values)]:
        folded.add(values[start : start + size])
        start += size
    mean, std, median, low, high = Pile((), folded).describe()
    assert mean == pytest.approx(np.mean(values), rel=1e-9, abs=1e-9)
    assert std == pytest.approx(np.std(values), rel=1e-9, abs=1e-6)
    assert (low, high) == (min(values), max(values))
    assert median == np.median(values)  # the sample holds all of them still


def test_a_key_stays_small_however_rarely_one_dumps() -> None:
    store = Store()
    n = store_dump.EXACT_UP_TO + 10_000
    values = np.arange(float(n))
    np.random.default_rng(0).shuffle(values)
    store.store(x=values[:10])
    tracemalloc.start()
    store.store(x=values[10:])
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2_000_000
    assert peak < 4_000_000
    row = store.dump(with_min_and_max=True)
    assert row["x/n"] == n
    assert row["x/mean"] == pytest.approx(values.mean(), rel=1e-12)
    assert row["x/std"] == pytest.approx(values.std(), rel=1e-12)
    assert (row["x/min"], row["x/max"]) == (0.0, n - 1.0)
    assert row["x/median"] == pytest.approx(n / 2, rel=0.03)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nan_and_infinity_are_not_hidden_beyond_the_bound(bad: float) -> None:
    folded = Blocks()
    folded.add([1.0, 2.0])
    folded.add([bad])
    folded.add([3.0])
    mean, std, _median, low, high = Pile([4.0], folded).describe()
    assert math.isnan(std)
    if math.isnan(bad):
        assert all(map(math.isnan, (mean, low, high)))
    else:
        assert (mean, low, high) == (math.inf, 1.0, math.inf)


def test_a_million_values_stored_by_threads_that_dump_at_the_same_time_are_each_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_dump, "EXACT_UP_TO", 5_000)
    store = Store()
    done = threading.Event()
    dumped: list[dict[str, float]] = []

    def work(base: int) -> None:
        for i in range(20_000):
            store.store({"x": float(base + i), "y": 1})

    def dump() -> None:
        while not done.is_set():
            if row := store.dump(average_only=True):
                dumped.append(row)
            pause(0)  # without it the four wait for the lock for minutes where the machine is busy

    threads = [threading.Thread(target=work, args=(i * 20_000,)) for i in range(4)]
    dumper = threading.Thread(target=dump)
    for thread in [*threads, dumper]:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    dumper.join()
    dumped.append(store.dump(average_only=True))
    n = sum(row.get("x/n", 0) for row in dumped)
    total = sum(row["x/mean"] * row["x/n"] for row in dumped if row.get("x/n"))
    assert n == 80_000
    assert total == pytest.approx(sum(range(80_000)), rel=1e-9)
    assert sum(row.get("y/n", 0) for row in dumped) == 80_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_empty_and_is_not_stuck_behind_its_parents_thread() -> None:
    store = Store()
    store.store(x=1.0)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        token = store._lock.acquire(0.0)
        assert token is not None
        held.set()
        release.wait(PATIENCE)
        store._lock.release(token)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(PATIENCE)
    child = os.fork()
    if child == 0:
        try:
            store.store(x=5.0)
            os._exit(0 if store.dump()["x/mean"] == 5.0 else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    release.set()
    holder.join()
    assert os.waitstatus_to_exitcode(status) == 0
    assert store.dump()["x/mean"] == 1.0


class FakeDeviceArray:
    """A device scalar that may only be read by a batch fetch."""

    reads = 0

    def __init__(self, value: float) -> None:
        self.value = value
        self.device = type("device", (), {"type": "cuda"})()
        self.shape: tuple[int, ...] = ()
        self.size = 1

    def detach(self) -> FakeDeviceArray:
        return self

    def clone(self) -> FakeDeviceArray:
        return FakeDeviceArray(self.value)

    def item(self) -> float:
        FakeDeviceArray.reads += 1
        return self.value


def test_device_values_are_not_read_before_the_dump_and_may_be_overwritten_meanwhile() -> None:
    FakeDeviceArray.reads = 0
    store = Store()
    loss = FakeDeviceArray(1.0)
    for value in (1.0, 3.0):
        loss.value = value
        store.store(loss=loss)
    assert FakeDeviceArray.reads == 0
    loss.value = 99.0
    assert store.dump()["loss/mean"] == 2.0
    assert FakeDeviceArray.reads == 2
