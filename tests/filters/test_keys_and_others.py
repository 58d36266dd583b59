from __future__ import annotations

import math

import pytest

from rollbook.errors import BadInput, UnknownOption
from rollbook.protocols import Row
from rollbook.sinks import Csv, Memory, filters
from rollbook.sinks.filters import Clocked, DropNone, DropNonFinite, Every, Gate, Merge, Prefix, Rename, Select, Smooth
from rollbook.sinks.filters._rows import row_from_json, row_to_json
from rollbook.values import Histogram, Image, Video


def through(make, *values, **clocks):
    kept = Memory()
    make(kept).write([Row(float(i), clocks, value) for i, value in enumerate(values)])
    return [dict(row.values) for row in kept.rows]


def test_none_is_dropped_and_nan_is_not():
    assert through(DropNone, {"a": None, "b": 0.0, "c": ""}, {"a": None}) == [{"b": 0.0, "c": ""}]
    (row,) = through(DropNone, {"a": math.nan})
    assert math.isnan(row["a"])


def test_numbers_that_are_not_finite_are_dropped():
    found = through(DropNonFinite, {"a": math.nan, "b": 1, "c": -math.inf, "d": "nan"}, {"a": math.inf})
    assert found == [{"b": 1, "d": "nan"}]


def test_keys_are_selected_by_where_the_pattern_is_found():
    row = {"train/return": 1, "train/length": 2, "test/return": 3}
    assert through(lambda to: Select(to, keys="return"), row) == [{"train/return": 1, "test/return": 3}]
    assert through(lambda to: Select(to, keys="return", drop="^test"), row, {"test/return": 1}) == [{"train/return": 1}]
    with pytest.raises(BadInput, match="neither"):
        Select(Memory())


def test_keys_are_renamed_by_name_and_by_pattern():
    rename = {"names": {"a": "alpha"}, "pattern": r"^update/(\w+)", "replace": r"learner/\1"}
    assert through(lambda to: Rename(to, **rename), {"a": 1, "update/loss": 2, "b": 3}) == [
        {"alpha": 1, "learner/loss": 2, "b": 3}
    ]


def test_a_new_name_never_takes_the_place_of_another_value():
    assert through(lambda to: Rename(to, {"a": "b"}), {"a": 1, "b": 2}, {"b": 2, "a": 1}) == [
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
    ]
    assert through(lambda to: Rename(to, pattern=r"\d", replace="n"), {"x1": 1, "x2": 2}) == [{"xn": 1, "x2": 2}]


def test_two_keys_can_swap_names():
    assert through(lambda to: Rename(to, {"a": "b", "b": "a"}), {"a": 1, "b": 2}) == [{"b": 1, "a": 2}]


@pytest.mark.parametrize("options", [{}, {"pattern": "a"}, {"replace": "a"}, {"pattern": "(a)", "replace": r"\2"}])
def test_a_renaming_that_cannot_be_is_refused(options):
    with pytest.raises(BadInput, match="Rename"):
        Rename(Memory(), **options)


def test_a_prefix_stands_before_every_key():
    assert through(lambda to: Prefix(to, "seed3/"), {"a": 1, "b/c": 2}) == [{"seed3/a": 1, "seed3/b/c": 2}]


def test_a_gate_lets_through_what_its_function_likes():
    assert through(lambda to: Gate(to, lambda row: row.values["a"] > 1), {"a": 1}, {"a": 2}) == [{"a": 2}]


def test_a_gate_finds_its_function_by_name_so_that_a_keeper_can_use_it():
    gate = filters.make("gate", Memory(), when="math:isfinite")
    assert gate.options == {"when": "math:isfinite"}
    for place in ("math", "math:nothing", "no.such.module:f", "math:pi"):
        with pytest.raises(BadInput, match=r"[Gg]ate"):
            Gate(Memory(), place)


def test_clocks_become_values_without_replacing_any():
    assert through(Clocked, {"a": 1, "epoch": 9}, env_step=5, epoch=2) == [{"a": 1, "epoch": 9, "env_step": 5}]
    assert through(lambda to: Clocked(to, ["env_step", "step"], prefix="clock/"), {"a": 1}, env_step=5, epoch=2) == [
        {"a": 1, "clock/env_step": 5}
    ]


def test_rows_of_one_reading_become_one_row():
    kept = Memory()
    merge = Merge(kept)
    merge.write([Row(0.0, {"env_step": 1}, {"a": 1}, "x", seq=1), Row(0.1, {"env_step": 1}, {"b": 2}, "y", seq=2)])
    assert kept.rows == []
    merge.write([Row(0.2, {"env_step": 2}, {"a": 3}, "x", seq=3)])
    merge.close()
    assert [(dict(row.values), row.scope, row.seq) for row in kept.rows] == [
        ({"a": 1, "b": 2}, "", 2),
        ({"a": 3}, "x", 3),
    ]


def test_a_key_that_comes_twice_at_one_reading_loses_no_value():
    kept = Memory()
    merge = Merge(kept, "epoch")
    merge.write([Row(0.0, {"epoch": 1}, {"a": i}) for i in range(3)])
    merge.write([Row(1.0, {"env_step": 1}, {"b": 1})])
    merge.close()
    assert [dict(row.values) for row in kept.rows] == [{"a": 0}, {"a": 1}, {"a": 2}, {"b": 1}]


def test_filters_show_how_they_are_stacked():
    stack = Smooth(Every(Csv(), seconds=1), "return")
    assert repr(stack).startswith("Smooth(Every(<rollbook.sinks.csv.Csv")
    assert "seconds=1" in repr(stack)
    assert stack.accepts == Csv().accepts


def test_names_and_options_that_do_not_exist_are_answered_with_those_that_do():
    with pytest.raises(UnknownOption, match="Did you mean 'every'"):
        filters.make("evry", Memory())
    with pytest.raises(UnknownOption, match="Did you mean 'seconds'"):
        filters.make("every", Memory(), second=1)
    with pytest.raises(BadInput, match="Its options: keys, coeff, mode"):
        filters.make("smooth", Memory())


def test_a_row_held_back_survives_a_restart_whole():
    row = Row(
        1.5,
        {"env_step": 2**60},
        {
            "nan": math.nan,
            "big": 10**30,
            "on": True,
            "h": Histogram([0.0, math.inf], [2.0], low=0.0, high=math.inf, total=math.nan, total_squares=1.0),
            "i": Image("media/x.png", 2, 3),
            "v": Video("media/x.mp4", 2, 3, 4, 5.5),
        },
        "train",
        "w",
        1,
        2,
        3,
    )
    back = row_from_json(row_to_json(row))
    assert repr(back) == repr(row)
