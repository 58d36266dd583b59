"""The statistics of numbers that were logged: one median and one histogram for all who give them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.capture.store_dump import Store
from rollbook.protocols import Row
from rollbook.sinks import Memory
from rollbook.sinks.filters import Aggregate
from rollbook.values.describe import EXACT_UP_TO, Blocks, Pile, Sample, describe, histogram_of

LOGNORMAL = np.random.default_rng(3).lognormal(size=200_000)


def test_200_000_numbers_have_one_median_in_a_dump_and_in_a_filter() -> None:
    store = Store()
    store.store(x=LOGNORMAL)
    dumped = store.dump()
    sink = Memory()
    aggregate = Aggregate(sink, "x")
    aggregate.write([Row(0.0, {}, {"x": value}) for value in LOGNORMAL.tolist()])
    aggregate.write([Row(1.0, {}, {}, mark="dump", keys=("x",))])
    values = next(row.values for row in sink.rows if row.values)
    assert dumped["x/median"] == values["x_median"]
    assert dumped["x/median"] == pytest.approx(float(np.median(LOGNORMAL)), rel=0.02)


@given(st.lists(st.integers(0, 700), min_size=1, max_size=12), st.integers(1, 32).map(lambda n: 2 * n))
def test_a_sample_is_the_same_however_its_values_come_in(sizes: list[int], most: int) -> None:
    values = [float(n) for n in range(sum(sizes))]
    at_once, bit_by_bit = Sample(most), Sample(most)
    at_once.add(values)
    for size in sizes:
        bit_by_bit.add(values[bit_by_bit.n : bit_by_bit.n + size])
    assert list(at_once.values) == list(bit_by_bit.values)
    assert len(at_once.values) <= most
    stretch = 2**at_once.level
    assert [int(value) // stretch for value in at_once.values] == list(range(len(at_once.values)))
    assert len(at_once.values) >= min(len(values), most // 2)


@pytest.mark.parametrize("period", [2, 8, 64, 4096])
def test_no_period_of_the_values_falls_in_with_the_sample(period: int) -> None:
    n = 2**19
    sample = Sample(2**12)
    sample.add([float(i % period < period // 2) for i in range(n)])
    share = sum(sample.values) / len(sample.values)
    assert abs(share - 0.5) < 0.05  # three standard errors of 2,048 draws, and half as much again


@pytest.mark.parametrize(("tries", "allowed"), [(4, 0), pytest.param(60, 9, marks=pytest.mark.long)])
def test_the_rank_of_a_sampled_median_is_right_to_within_the_stated_bound(tries: int, allowed: int) -> None:
    numbers = Sample()
    numbers.add([float(n) for n in range(EXACT_UP_TO * 2)])
    drawn = np.array(numbers.values, dtype=int)  # which values are drawn follows from their numbers alone
    misses = 0
    for seed in range(tries):
        values = np.random.default_rng(seed).permutation(EXACT_UP_TO * 2)
        misses += abs(np.median(values[drawn]) / len(values) - 0.5) > 0.008
    blocks = Blocks()
    blocks.add(values.tolist())
    assert blocks.describe().median == np.median(values[drawn])
    assert misses <= allowed


def test_a_pile_taken_back_is_as_it_was_also_over_the_folding_of_its_values() -> None:
    pile = Pile()
    for value in range(EXACT_UP_TO - 2):
        pile.add(float(value))
    before, size = pile.describe(), pile.size()
    for _ in range(10):
        pile.add(math.nan)
    pile.back_to(size)
    assert pile.n == EXACT_UP_TO - 2
    assert pile.describe() == before == describe([float(value) for value in range(EXACT_UP_TO - 2)])


def test_a_histogram_leaves_out_what_is_not_finite_and_says_nothing_of_nothing() -> None:
    shape = histogram_of(np.array([0.0, 1.0, math.nan, math.inf]), bins=2)
    assert shape is not None
    assert (shape.counts, shape.edges) == ((1.0, 1.0), (0.0, 0.5, 1.0))
    assert (shape.low, shape.high, shape.total) == (0.0, 1.0, 1.0)
    assert histogram_of(np.array([math.nan])) is None
    assert histogram_of(np.array([])) is None
