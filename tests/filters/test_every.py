from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.errors import BadInput, UnknownOption
from rollbook.protocols import Row
from rollbook.sinks import Memory
from rollbook.sinks.filters import Every

FINAL = Row(1e9, {}, {}, mark="final")


def rows_at(*times: float, key: str = "x") -> list[Row]:
    return [Row(time, {"env_step": int(time * 100)}, {key: float(i)}, seq=i) for i, time in enumerate(times)]


def test_the_first_row_of_each_stretch_of_time_passes(kept):
    Every(kept, seconds=1).write(rows_at(0, 0.4, 0.999, 1.0, 1.5, 2.0, 2.9, 7))
    assert [row.time for row in kept.rows] == [0, 1.0, 2.0, 7]


def test_the_last_row_is_delivered_at_the_final_mark_before_the_mark(kept):
    every = Every(kept, seconds=10)
    every.write(rows_at(0, 1, 2, 3))
    every.write([FINAL])
    assert [row.time for row in kept.rows] == [0, 3, 1e9]
    every.close()
    assert len(kept.rows) == 3


def test_the_last_row_is_delivered_at_close_if_none_was_final(kept):
    every = Every(kept, seconds=10)
    every.write(rows_at(0, 1, 2, 3))
    every.close()
    assert [row.time for row in kept.rows] == [0, 3]


def test_nothing_is_repeated_at_the_end_if_the_last_row_had_passed(kept):
    every = Every(kept, seconds=1)
    every.write([*rows_at(0, 0.5, 1), FINAL])
    assert [row.time for row in kept.rows] == [0, 1, 1e9]


def test_stretches_of_steps_begin_at_the_multiples_of_n(kept):
    Every(kept, steps=("env_step", 100)).write(rows_at(0.05, 0.99, 1.03, 1.5, 2.0, 5.5, 5.9))
    assert [row.clocks["env_step"] for row in kept.rows] == [5, 103, 200, 550]


def test_every_third_row_passes(kept):
    Every(kept, rows=3).write(rows_at(*range(8)))
    assert [row.seq for row in kept.rows] == [0, 3, 6]


def test_a_row_that_does_not_know_the_clock_passes(kept):
    Every(kept, steps=("epoch", 10)).write(rows_at(0, 1, 2))
    assert len(kept.rows) == 3


def test_a_rare_kind_of_row_is_not_starved_by_a_frequent_one(kept):
    often, rare = rows_at(*(i / 10 for i in range(30))), rows_at(0.55, 1.95, key="rare")
    Every(kept, seconds=1).write(sorted(often + rare, key=lambda row: row.time))
    assert [row.time for row in kept.rows if "rare" in row.values] == [0.55, 1.95]
    assert [row.time for row in kept.rows if "x" in row.values] == [0, 1, 2]


def test_rows_can_be_thinned_all_together(kept):
    often, rare = rows_at(0, 0.5, 1.0), rows_at(0.7, key="rare")
    Every(kept, seconds=1, per="all").write(sorted(often + rare, key=lambda row: row.time))
    assert [row.time for row in kept.rows] == [0, 1.0]


def test_keys_can_be_thinned_each_for_itself(kept):
    rows = [Row(0.0, {}, {"a": 1.0}), Row(0.5, {}, {"a": 2.0, "b": 1.0}), Row(1.2, {}, {"a": 3.0, "b": 2.0})]
    every = Every(kept, seconds=1, per="key")
    every.write(rows)
    assert [dict(row.values) for row in kept.rows] == [{"a": 1.0}, {"b": 1.0}, {"a": 3.0}]
    every.close()
    assert dict(kept.rows[-1].values) == {"b": 2.0}
    assert kept.rows[-1].time == 1.2


def test_text_is_never_thinned(kept):
    Every(kept, seconds=100).write([Row(float(i), {}, {"note": str(i)}) for i in range(5)])
    assert len(kept.rows) == 5


def test_a_row_slightly_out_of_order_does_not_begin_a_stretch_but_a_clock_set_back_does(kept):
    Every(kept, seconds=10).write(rows_at(100, 98, 101, 50, 55))
    assert [row.time for row in kept.rows] == [100, 50]


def test_a_rewind_of_steps_begins_new_stretches(kept):
    Every(kept, steps=("env_step", 100)).write(rows_at(10, 11, 10.5, 2, 2.5, 3))
    assert [row.clocks["env_step"] for row in kept.rows] == [1000, 1100, 200, 300]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "none"),
        ({"seconds": 1, "rows": 2}, "seconds and rows"),
        ({"seconds": 0}, "longer than 0"),
        ({"rows": -1}, "longer than 0"),
        ({"steps": "env_step"}, "steps=('env_step', 1000)"),
        ({"steps": ("env_step", 2.5)}, "whole number"),
    ],
)
def test_a_stretch_that_cannot_be_is_refused_in_words(kept, options, says):
    with pytest.raises(BadInput) as err:
        Every(kept, **options)
    assert says in str(err.value)


def test_an_unknown_grouping_names_the_known_ones(kept):
    with pytest.raises(UnknownOption, match="Did you mean 'key'"):
        Every(kept, rows=1, per="keys_")


@given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from("abc")), max_size=60), st.integers(0, 60))
def test_thinning_does_not_depend_on_restarts(steps, split):
    rows = [Row(i / 10, {"env_step": step}, {key: 1.0}, seq=i) for i, (step, key) in enumerate(steps)]
    whole, first, second = Memory(), Memory(), Memory()
    uninterrupted = Every(whole, steps=("env_step", 7))
    uninterrupted.write(rows)
    uninterrupted.close()
    before = Every(first, steps=("env_step", 7))
    before.write(rows[:split])
    after = Every(second, steps=("env_step", 7))
    after.set_state(json.loads(json.dumps(before.state())))
    after.write(rows[split:])
    after.close()
    assert first.rows + second.rows == whole.rows
