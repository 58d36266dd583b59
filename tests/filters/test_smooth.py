from __future__ import annotations

import math

import pytest

from rollbook.errors import BadInput, UnknownOption
from rollbook.protocols import Row
from rollbook.sinks.filters import Smooth


def smoothed(kept, values, **options):
    Smooth(kept, "ret", **options).write([Row(float(i), {}, {"ret": v}) for i, v in enumerate(values)])
    name = f"ret_smoothed_{options.get('coeff', 0.99)}"
    return [row.values.get(name) for row in kept.rows]


def test_the_warm_up_gives_the_numbers_of_the_article(kept):
    assert smoothed(kept, [10, 20, 30, 40]) == pytest.approx([10, 19.01, 27.932781, 36.76248581449])
    assert kept.rows[0].values["ret"] == 10


def test_a_long_constant_series_stays_what_it_is(kept):
    assert smoothed(kept, [3.5] * 200) == pytest.approx([3.5] * 200)


def test_the_bias_corrected_mean_is_the_weighted_mean_of_what_was_seen(kept):
    values, c = [1.0, 5.0, 2.0, 8.0], 0.9
    found = smoothed(kept, values, coeff=c, mode="bias_corrected")
    for n in range(1, 5):
        weights = [c ** (n - 1 - i) for i in range(n)]
        expected = sum(w * v for w, v in zip(weights, values, strict=False)) / sum(weights)
        assert found[n - 1] == pytest.approx(expected)


def test_nan_and_infinity_leave_the_average_as_it_was(kept):
    found = smoothed(kept, [1.0, math.nan, math.inf, 10**400, 3.0], coeff=0.5)
    assert found[1:4] == [None, None, None]
    assert found[0] == 1.0
    assert found[4] == pytest.approx(3.0 * 0.95 + 1.0 * 0.05)


def test_keys_that_do_not_match_and_values_that_are_no_numbers_stay_alone(kept):
    row = Row(0.0, {}, {"loss": 1.0, "return/text": "high", "return/flag": True})
    Smooth(kept, "return").write([row])
    assert dict(kept.rows[0].values) == dict(row.values)


def test_a_second_smoothing_behind_smooths_the_smoothed_key_too(kept):
    Smooth(Smooth(kept, "ret", 0.5), "ret", 0.9).write([Row(0.0, {}, {"ret": 2.0})])
    assert list(kept.rows[0].values) == [
        "ret",
        "ret_smoothed_0.9",
        "ret_smoothed_0.5",
        "ret_smoothed_0.9_smoothed_0.5",
    ]


@pytest.mark.parametrize("coeff", [1, -0.1, 2, math.nan, "0.9", True])
def test_a_coefficient_that_cannot_be_is_refused(kept, coeff):
    with pytest.raises(BadInput, match="less than 1"):
        Smooth(kept, "x", coeff)


def test_a_pattern_that_is_none_is_refused_with_what_to_do(kept):
    with pytest.raises(BadInput, match=r"re\.escape"):
        Smooth(kept, "a[b")
    with pytest.raises(UnknownOption, match="warm_up"):
        Smooth(kept, "x", mode="warmup")
