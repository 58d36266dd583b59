"""The filters: what passes, when, and what they add."""

from __future__ import annotations

import gc
import math
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forked_programs import Interpreter
from rollbook.adapters import acme
from rollbook.errors import BadInput


class Kept(acme.Logger):
    """Keeps records. Defines `write` alone, as loggers did in 2020."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []
        self.flushed = 0

    def write(self, data: Any) -> None:
        self.data.append(dict(data))


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_logger_that_defines_write_only_can_be_made_and_closed() -> None:
    logger = Kept()
    logger.write({"a": 1})
    logger.close()
    assert logger.data == [{"a": 1}]


def test_none_filter_drops_none_and_keeps_nan_and_what_lies_deeper() -> None:
    kept = Kept()
    acme.NoneFilter(kept).write({"a": None, "b": math.nan, "c": {"d": None}, "e": 0})
    (record,) = kept.data
    assert list(record) == ["b", "c", "e"]
    assert math.isnan(record["b"])
    assert record["c"] == {"d": None}


def test_time_filter_passes_the_first_record_and_then_one_per_stretch() -> None:
    kept, clock = Kept(), Clock()
    logger = acme.TimeFilter(kept, 1.0, clock=clock)
    for i in range(31):
        logger.write({"i": i})
        clock.now += 0.125
    assert [record["i"] for record in kept.data] == [0, 9, 18, 27]


def test_time_filter_never_drops_the_last_record() -> None:
    kept, clock = Kept(), Clock()
    logger = acme.TimeFilter(kept, 1.0, clock=clock)
    for i in range(5):
        logger.write({"i": i})
    assert [record["i"] for record in kept.data] == [0]
    logger.close()
    assert [record["i"] for record in kept.data] == [0, 4]
    logger.close()
    assert len(kept.data) == 2


def test_time_filter_hands_on_the_last_record_when_it_is_never_closed() -> None:
    kept = Kept()
    logger = acme.TimeFilter(kept, 1000.0)
    logger.write({"i": 0})
    logger.write({"i": 1})
    del logger
    gc.collect()
    assert [record["i"] for record in kept.data] == [0, 1]


def test_a_program_that_ends_without_close_still_shows_its_last_record(interpreter: Interpreter) -> None:
    code = (
        "from rollbook.adapters import acme\n"
        "logger = acme.TimeFilter(acme.TerminalLogger('t'), 1000.0)\n"
        "for i in range(3): logger.write({'i': i})\n"
    )
    done = interpreter.run(code, env=os.environ)
    assert done.stdout.split("\n") == ["[T] I = 0", "[T] I = 2", ""]


def test_time_filter_in_compat_mode_drops_what_acme_drops() -> None:
    kept = Kept()
    logger = acme.TimeFilter(kept, 1000.0, compat=True)
    for i in range(3):
        logger.write({"i": i})
    logger.close()
    assert kept.data == [{"i": 0}]


def test_a_record_that_waits_is_not_changed_by_its_owner() -> None:
    kept = Kept()
    logger = acme.TimeFilter(kept, 1000.0)
    record = {"i": 0}
    logger.write(record)
    record["i"] = 1
    logger.write(record)
    record["i"] = 2
    logger.close()
    assert kept.data == [{"i": 0}, {"i": 1}]


def test_time_filter_refuses_a_negative_stretch() -> None:
    with pytest.raises(ValueError, match="-1"):
        acme.TimeFilter(Kept(), -1)


def test_key_filter_keeps_in_the_order_asked_for_and_needs_no_optional_key() -> None:
    kept = Kept()
    logger = acme.KeyFilter(kept, keep=("b", "a"))
    logger.write({"a": 1, "b": 2, "c": 3})
    logger.write({"a": 1})
    assert [list(record.items()) for record in kept.data] == [[("b", 2), ("a", 1)], [("a", 1)]]


def test_key_filter_takes_a_text_as_one_key() -> None:
    kept = Kept()
    acme.KeyFilter(kept, drop="steps").write({"step": 1, "s": 2, "steps": 3})
    assert kept.data == [{"step": 1, "s": 2}]


@pytest.mark.parametrize("arguments", [{}, {"keep": ("a",), "drop": ("b",)}, {"keep": ()}])
def test_key_filter_takes_exactly_one_of_keep_and_drop(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        acme.KeyFilter(Kept(), **arguments)


def test_gated_filter_passes_evenly_within_each_power() -> None:
    kept = Kept()
    logger = acme.GatedFilter.logarithmic(kept, n=10)
    for t in range(1001):
        logger.write({"t": t})
    expected = [*range(10), *range(10, 100, 10), *range(100, 1001, 100)]
    assert [record["t"] for record in kept.data] == expected


def test_gated_filter_passes_periodically() -> None:
    kept = Kept()
    logger = acme.GatedFilter.periodic(kept, interval=10)
    for t in range(35):
        logger.write({"t": t})
    assert [record["t"] for record in kept.data] == [0, 10, 20, 30]


def test_gated_filter_names_a_base_or_interval_that_cannot_be() -> None:
    with pytest.raises(BadInput, match="n=1"):
        acme.GatedFilter.logarithmic(Kept(), n=1)
    with pytest.raises(BadInput, match="interval=0"):
        acme.GatedFilter.periodic(Kept(), interval=0)


def test_smoothing_filter_follows_the_articles_warm_up() -> None:
    kept = Kept()
    logger = acme.SmoothingFilter(kept, "return", 0.99)
    for value in (10, 20, 30, 40):
        logger.write({"episode_return": value, "other": 1})
    assert list(kept.data[0]) == ["episode_return", "other", "episode_return_smoothed_0.99"]
    smoothed = [record["episode_return_smoothed_0.99"] for record in kept.data]
    assert smoothed == pytest.approx([10, 19.01, 27.932781, 36.76248581449], rel=1e-14)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(0, 0.999))
def test_smoothing_is_the_recurrence_of_the_article_for_any_series(values: list[float], coeff: float) -> None:
    kept = Kept()
    logger = acme.SmoothingFilter(kept, "^x$", coeff)
    average = c = 0.0
    for value in values:
        logger.write({"x": value})
        average = value * (1 - c) + average * c
        c = 0.9 * c + 0.1 * coeff
        assert kept.data[-1][f"x_smoothed_{coeff}"] == average


def test_one_nan_does_not_spoil_a_smoothed_series() -> None:
    kept = Kept()
    logger = acme.SmoothingFilter(kept, "x", 0.5)
    for value in (1.0, math.nan, None, math.inf, 2.0):
        logger.write({"x": value})
    assert ["x_smoothed_0.5" in record for record in kept.data] == [True, False, False, False, True]
    assert kept.data[-1]["x_smoothed_0.5"] == pytest.approx(2.0 * 0.95 + 1.0 * 0.05)


def test_arrays_are_smoothed_elementwise() -> None:
    kept = Kept()
    logger = acme.SmoothingFilter(kept, "x", 0.5)
    logger.write({"x": np.array([1.0, 2.0])})
    logger.write({"x": np.array([3.0, 4.0])})
    np.testing.assert_allclose(kept.data[-1]["x_smoothed_0.5"], [2.9, 3.9])


def test_smoothing_refuses_a_coefficient_that_never_forgets() -> None:
    with pytest.raises(BadInput, match=r"1\.0"):
        acme.SmoothingFilter(Kept(), "x", 1.0)


def test_aggregate_filter_writes_five_statistics_and_the_last_of_the_rest() -> None:
    kept = Kept()
    logger = acme.AggregateFilter(kept, "return")
    values = [1.0, 5.0, 3.0, -2.0]
    for i, value in enumerate(values):
        logger.write({"episode_return": np.float32(value), "episodes": i})
    assert kept.data == []
    logger.dump()
    assert kept.data == [
        {
            "episode_return_mean": np.mean(values),
            "episode_return_std": np.std(values),
            "episode_return_median": np.median(values),
            "episode_return_max": 5.0,
            "episode_return_min": -2.0,
            "episodes": 3,
        }
    ]


def test_rows_with_different_keys_aggregate_by_name() -> None:
    """Acme's stacking goes by position: it would give b = [1, 10], c = [2, 20]."""
    kept = Kept()
    logger = acme.AggregateFilter(kept, "^[abc]$")
    logger.write({"a": 1, "b": 2})
    logger.write({"b": 10, "c": 20})
    logger.dump()
    (record,) = kept.data
    assert record["a_mean"] == 1
    assert record["b_mean"] == 6
    assert record["c_mean"] == 20


def test_none_is_no_value_for_an_aggregate_and_text_gives_its_last() -> None:
    kept = Kept()
    logger = acme.AggregateFilter(kept, "x|name")
    logger.write({"x": None, "name": "a"})
    logger.write({"x": 3, "name": "b"})
    logger.dump()
    assert kept.data[0]["x_mean"] == 3
    assert kept.data[0]["name"] == "b"


def test_arrays_aggregate_over_all_their_elements() -> None:
    kept = Kept()
    logger = acme.AggregateFilter(kept, "x")
    logger.write({"x": np.array([1.0, 2.0])})
    logger.write({"x": np.array([[3.0]])})
    logger.dump()
    assert kept.data[0]["x_mean"] == 2.0
    assert kept.data[0]["x_max"] == 3.0


def test_a_dump_of_nothing_writes_nothing() -> None:
    kept = Kept()
    logger = acme.AggregateFilter(kept, "x")
    logger.dump()
    logger.close()
    assert kept.data == []


def test_what_was_not_dumped_is_dumped_at_close() -> None:
    kept = Kept()
    logger = acme.AggregateFilter(kept, "x")
    logger.write({"x": 1})
    logger.close()
    assert kept.data[0]["x_mean"] == 1.0


def test_a_dump_that_fails_keeps_its_values_for_the_next() -> None:
    class Broken(Kept):
        works = False

        def write(self, data: Any) -> None:
            if not self.works:
                raise OSError("no space")
            super().write(data)

    broken = Broken()
    logger = acme.AggregateFilter(broken, "x")
    logger.write({"x": 1})
    with pytest.raises(OSError, match="no space"):
        logger.dump()
    broken.works = True
    logger.write({"x": 3})
    logger.dump()
    assert broken.data[0]["x_mean"] == 2.0


def test_two_dumps_within_a_stretch_of_the_time_filter_both_arrive() -> None:
    kept = Kept()
    logger = acme.AggregateFilter(acme.TimeFilter(kept, 1000.0), "x")
    for value in (1, 2):
        logger.write({"x": value})
        logger.dump()
    assert [record["x_mean"] for record in kept.data] == [1.0, 2.0]


def test_a_pattern_that_is_none_is_named() -> None:
    with pytest.raises(BadInput, match=r"\(unclosed"):
        acme.AggregateFilter(Kept(), "(unclosed")
