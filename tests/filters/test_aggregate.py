from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.errors import UnknownOption
from rollbook.protocols import Row
from rollbook.sinks import Memory
from rollbook.sinks.filters import Aggregate, Prefix, Select
from rollbook.values.describe import EXACT_UP_TO

DUMP = Row(99.0, {"epoch": 3}, {}, seq=99, mark="dump")


def rows(*values: dict) -> list[Row]:
    return [Row(float(i), {"env_step": i}, value, seq=i) for i, value in enumerate(values)]


def reports(kept: Memory) -> list[dict]:
    return [dict(row.values) for row in kept.rows if not row.mark]


def test_a_dump_gives_five_statistics_and_the_last_value_of_the_rest(kept):
    Aggregate(kept, "ret").write([*rows({"ret": 1.0, "steps": 5}, {"ret": 4.0, "steps": 7}), DUMP])
    assert reports(kept) == [
        {"ret_mean": 2.5, "ret_std": 1.5, "ret_median": 2.5, "ret_max": 4.0, "ret_min": 1.0, "steps": 7}
    ]
    assert list(reports(kept)[0]) == ["ret_mean", "ret_std", "ret_median", "ret_max", "ret_min", "steps"]
    assert kept.rows[0].clocks == {"epoch": 3}
    assert kept.rows[-1] is DUMP


def test_rows_with_different_keys_aggregate_by_name(kept):
    Aggregate(kept, ".").write([*rows({"a": 1.0, "b": 2.0}, {"b": 10.0, "c": 20.0}, {"a": 3.0}), DUMP])
    (report,) = reports(kept)
    assert (report["a_mean"], report["b_mean"], report["c_mean"]) == (2.0, 6.0, 20.0)


def test_a_dump_of_nothing_writes_nothing_but_the_mark(kept):
    aggregate = Aggregate(kept, ".")
    aggregate.write([DUMP, DUMP])
    assert kept.rows == [DUMP, DUMP]
    aggregate.close()
    assert len(kept.rows) == 2


def test_each_dump_begins_again(kept):
    Aggregate(kept, "x").write([*rows({"x": 1.0}), DUMP, *rows({"x": 5.0}), DUMP])
    assert [report["x_mean"] for report in reports(kept)] == [1.0, 5.0]


@pytest.mark.parametrize("end", ["final", "close"])
def test_what_is_left_is_dumped_at_the_end(kept, end):
    aggregate = Aggregate(kept, "x")
    aggregate.write(rows({"x": 1.0}, {"x": 3.0}))
    if end == "final":
        aggregate.write([Row(9.0, {}, {}, mark="final")])
    aggregate.close()
    assert [report["x_mean"] for report in reports(kept)] == [2.0]
    assert kept.rows[0].clocks == {"env_step": 1}


def test_a_mark_that_names_keys_dumps_those_and_keeps_the_others(kept):
    named = Row(9.0, {}, {}, mark="dump", keys=("a",))
    Aggregate(kept, ".", statistics=["mean"]).write([*rows({"a": 1.0, "b": 2.0}), named, *rows({"b": 4.0}), DUMP])
    assert reports(kept) == [{"a_mean": 1.0}, {"b_mean": 3.0}]


def test_a_mark_made_in_a_scope_dumps_the_keys_of_that_scope(kept):
    mark = Row(9.0, {}, {}, scope="test", mark="dump")
    Aggregate(kept, ".", statistics=["max"]).write([*rows({"test/a": 1.0, "train/a": 2.0}), mark, DUMP])
    assert reports(kept) == [{"test/a_max": 1.0}, {"train/a_max": 2.0}]


def test_marks_follow_keys_that_another_filter_renames_or_drops(kept):
    named = Row(9.0, {}, {}, mark="dump", keys=("a",))
    Prefix(Aggregate(kept, ".", statistics=["min"]), "p/").write([*rows({"a": 1.0, "b": 2.0}), named])
    assert reports(kept) == [{"p/a_min": 1.0}]
    other = Memory()
    Select(Aggregate(other, "."), drop="a").write([*rows({"a": 1.0, "b": 2.0}), named])
    assert other.rows == []


def test_nan_spreads_and_truth_values_and_text_are_not_averaged(kept):
    Aggregate(kept, ".").write([*rows({"x": 1.0, "on": True, "s": "a"}, {"x": math.nan, "on": False, "s": "b"}), DUMP])
    (report,) = reports(kept)
    assert all(math.isnan(report[f"x_{name}"]) for name in ("mean", "std", "median", "max", "min"))
    assert (report["on"], report["s"]) == (False, "b")


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=1, max_size=50))
def test_the_statistics_are_those_of_numpy(values):
    kept = Memory()
    Aggregate(kept, "x").write([*rows(*({"x": value} for value in values)), DUMP])
    (report,) = reports(kept)
    with np.errstate(all="ignore"):
        expected = {"max": np.max(values), "min": np.min(values), "median": np.median(np.array(values) / 2) * 2}
    for name, value in expected.items():
        if math.isfinite(value):
            assert report[f"x_{name}"] == pytest.approx(value, rel=1e-12, abs=1e-300)
    if max(map(abs, values)) < 1e150:
        assert report["x_mean"] == pytest.approx(float(np.mean(values)), rel=1e-9, abs=1e-9 * max(map(abs, values)))
        assert report["x_std"] == pytest.approx(float(np.std(values)), rel=1e-6, abs=1e-9 * max(map(abs, values)))


def test_memory_is_bounded_and_all_but_the_median_stay_exact(kept):
    n = EXACT_UP_TO + 17
    aggregate = Aggregate(kept, "x")
    aggregate.write([Row(0.0, {}, {"x": float(i)}) for i in range(n)])
    assert len(aggregate._piles["x"].fresh) < EXACT_UP_TO
    aggregate.write([DUMP])
    (report,) = reports(kept)
    assert (report["x_min"], report["x_max"]) == (0.0, n - 1.0)
    assert report["x_mean"] == pytest.approx((n - 1) / 2)
    assert report["x_std"] == pytest.approx(math.sqrt((n * n - 1) / 12))
    assert report["x_median"] == pytest.approx((n - 1) / 2, rel=1e-3)


def test_a_refused_dump_across_the_thinning_of_values_can_be_repeated(kept):
    class Failing(Memory):
        fails = True

        def write(self, rows):
            if self.fails:
                raise OSError("not now")
            super().write(rows)

    to = Failing()
    aggregate = Aggregate(to, "x")
    some = [Row(0.0, {}, {"x": float(i)}) for i in range(EXACT_UP_TO - 3)]
    more = [*(Row(0.0, {}, {"x": float(i)}) for i in range(20)), DUMP]
    aggregate.write(some)
    state = json.dumps(aggregate.state())
    with pytest.raises(OSError, match="not now"):
        aggregate.write(more)
    assert json.dumps(aggregate.state()) == state
    to.fails = False
    aggregate.write(more)
    other = Aggregate(kept, "x")
    other.write([*some, *more])
    assert reports(to) == reports(kept)


def test_an_unknown_statistic_names_the_known_ones(kept):
    with pytest.raises(UnknownOption, match="median"):
        Aggregate(kept, "x", statistics=["average"])
