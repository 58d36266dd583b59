from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook import testing
from rollbook.protocols import Row
from rollbook.sinks._plain import wide
from rollbook.sinks._trend import POINTS, Trend, spark
from rollbook.sinks._view import compact, duration, lines, short, size
from rollbook.sinks.board import Board


def row(time, values=None, attempt=1, mark="", **clocks):
    return Row(time, clocks, values or {}, "", "w", 0, 1, attempt, mark)


def board_of(*rows, **options):
    board = Board("cartpole/ppo", **options)
    for one in rows:
        board.take(one)
    return board


def test_speed_share_done_and_time_left_follow_from_the_clock():
    board = board_of(*(row(100.0 + i, env_step=50 * i) for i in range(11)), total={"env_step": 2000})
    assert board.steps_per_second() == pytest.approx(50)
    assert board.share_done() == 0.25
    assert board.seconds_left() == pytest.approx(30)


def test_speed_is_that_of_the_last_half_minute():
    slow = [row(float(i), env_step=i) for i in range(100)]
    fast = [row(100.0 + i, env_step=100 + 1000 * i) for i in range(40)]
    assert board_of(*slow, *fast).steps_per_second() == pytest.approx(1000, rel=0.01)


def test_what_is_unknown_is_not_made_up():
    for board in (Board(), board_of(row(1.0, env_step=3)), board_of(row(1.0, {"x": 1.0}))):
        assert math.isnan(board.steps_per_second())
        assert math.isnan(board.seconds_left())
        assert math.isnan(board.share_done())
        assert lines(board)
        assert compact(board)


def test_a_late_evaluation_does_not_turn_progress_back_but_a_rewind_does():
    board = board_of(*(row(float(i), env_step=100 * i) for i in range(10)))
    board.take(row(10.0, {"test/return": 1.0}, env_step=300))
    assert board.clocks["env_step"] == 900
    for i in range(40):
        board.take(row(11.0 + i, env_step=200 + 10 * i))
    assert board.clocks["env_step"] == 590
    assert board.steps_per_second() == pytest.approx(10)


def test_a_new_attempt_begins_with_its_own_clocks():
    board = board_of(*(row(float(i), env_step=100 * i) for i in range(10)), row(99.0, attempt=2, env_step=300))
    assert board.clocks == {"env_step": 300}
    assert math.isnan(board.steps_per_second())


def test_shares_of_time_add_up_to_one_and_leave_inner_spans_to_the_outer_one():
    rows = [row(0.0)]
    for i in range(10):
        rows.append(row(1.0 + i, {"time/collect_seconds": 0.6}))
        rows.append(row(1.0 + i, {"time/update_seconds": 0.3}))
        rows.append(row(1.0 + i, {"time/update/backward_seconds": 0.2}))
    shares = board_of(*rows).stage_shares()
    assert shares == pytest.approx({"collect": 0.6, "update": 0.3, "other": 0.1})
    assert list(shares) == ["collect", "update", "other"]


def test_stages_that_overlap_share_what_they_have():
    rows = [row(0.0), *(row(1.0, {f"time/{name}_seconds": 1.0}) for name in "ab")]
    assert board_of(*rows).stage_shares() == {"a": 0.5, "b": 0.5}


def test_a_key_that_comes_more_often_than_the_view_is_drawn_is_shown_as_a_mean():
    board = board_of(*(row(i / 10, {"train/return": float(i)}) for i in range(300)), row(0.0, {"test/return": 7}))
    assert board.keys["train/return"].shown == 299
    board.drawn()
    assert board.keys["train/return"].shown == pytest.approx(sum(range(200, 300)) / 100)
    assert board.keys["test/return"].shown == 7
    assert "~249.5" in "\n".join(lines(board))
    assert "~ mean of 10 s" in "\n".join(lines(board))
    assert "train/return ~249.5" in compact(board)
    assert "(~ mean of 10 s)" in compact(board)


def test_a_count_is_shown_as_it_stands_however_often_it_comes():
    board = board_of(*(row(i / 10, {"steps": i, "lives": 3 - i % 2}) for i in range(300)))
    board.drawn()
    assert (board.keys["steps"].shown, board.keys["steps"].is_mean) == (299, False)
    assert (board.keys["lives"].shown, board.keys["lives"].is_mean) == (2.5, True)


@pytest.mark.long
def test_memory_is_bounded_whatever_arrives():
    board = Board()
    for i in range(30_000):
        board.take(row(i / 100, {f"k{i}": 1.0, "x": float(i)}, env_step=i))
    assert len(board.keys) <= 2_001
    assert len(board.keys["x"].trend.points) <= POINTS
    assert all(len(readings) < 400 for readings in board._readings.values())


def test_the_view_shows_what_a_person_looks_for():
    rows = [row(0.0)]
    for i in range(1, 21):
        rows.append(row(float(i), {"train/return": 10.0 * i, "loss/policy": -1 / i}, env_step=1000 * i, epoch=i // 10))
        rows += [row(float(i), {"time/collect_seconds": 0.75}), row(float(i), {"time/update_seconds": 0.25})]
    text = "\n".join(lines(board_of(*rows, total={"env_step": 40_000, "epoch": 4}), width=90))
    assert text == (
        "cartpole/ppo                                                                       0:00:20\n"
        "env_step  ████████████████░░░░░░░░░░░░░░░░   50%  20,000 / 40,000   1,000/s   0:00:20 left\n"
        "epoch 2 / 4\n"
        "\n"
        "train                             loss\n"
        "  return     200.0  ▁▁▂▃▄▅▆▇██      policy   -0.0500  ▁▆▇███████\n"
        "\n"
        "time   collect █████████ 75%   update ███ 25%"
    )


def test_a_key_of_no_scope_and_a_number_that_is_none_have_their_place():
    text = "\n".join(lines(board_of(row(0.0, {"loose": math.nan}), row(1.0, {"loose": math.inf})), colour=True))
    assert re.search(r"loose +\x1b\[31m +inf\x1b\[0m", text)


def test_what_matters_most_is_kept_when_there_is_no_room():
    values = {f"host/k{i}": 1.0 for i in range(30)} | {f"train/k{i}": 1.0 for i in range(30)}
    values |= {"update/loss/policy": 1.0, "test/return": 2.0}
    text = lines(board_of(row(0.0, values)), width=40, height=10)
    assert len(text) <= 10
    assert any("return" in line for line in text)
    assert any("loss/policy" in line for line in text)
    assert "and 58 more keys" in text[-1] or re.search(r"and \d+ more keys", text[-1])


@given(
    st.dictionaries(st.text(max_size=20) | st.sampled_from(testing.HOSTILE), st.floats() | st.integers(), max_size=12),
    st.integers(20, 200),
    st.integers(4, 60),
    st.booleans(),
)
def test_no_line_is_wider_than_asked_and_nothing_from_the_run_drives_the_terminal(values, width, height, unicode):
    board = board_of(row(0.0, values, env_step=1), row(5.0, values, env_step=10**15), total={"env_step": 10**16})
    board.title = "\x1b[2Jname\r\n" * 9
    board.drawn()
    found = lines(board, width=width, height=height, unicode=unicode)
    assert len(found) <= height
    for line in found:
        assert wide(line) <= width
        assert line.isprintable()
    for line in lines(board, width=width, height=height, colour=True):
        assert re.sub(r"\x1b\[\d*m", "", line).isprintable()
    assert compact(board).isprintable()


def test_one_line_says_how_far_how_fast_how_well_and_where_the_time_goes():
    rows = [row(0.0)]
    for i in range(1, 11):
        rows.append(row(float(i), {"train/return": 10.0 * i, "x": 1, "update/loss": 0.5}, env_step=1000 * i))
        rows.append(row(float(i), {"time/collect_seconds": 0.8}))
    board = board_of(*rows, total={"env_step": 40_000})
    assert compact(board) == (
        "[0:00:10] cartpole/ppo | env_step 10,000 of 40,000 (25%), 1,000/s, 0:00:30 left | "
        "train/return 100.0  update/loss 0.5000  x 1 | time: collect 80%, other 20%"
    )
    board.take(row(11.0, mark="final"))
    assert compact(board).endswith(" | finished")
    assert "left" not in compact(board)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (-0.0123456, "-0.0123"),
        (0.00012, "0.00012"),
        (1.23456, "1.235"),
        (212.4321, "212.4"),
        (475.0, "475.0"),
        (1204.4, "1,204"),
        (61440, "61,440"),
        (1.5e7, "1.5e+07"),
        (True, "true"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (10**30, "1.000e+30"),
    ],
)
def test_numbers_are_short_and_readable(value, shown):
    assert short(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0:00:00"), (3723.9, "1:02:03"), (90_061, "1d 1:01:01"), (math.nan, "-:--:--"), (-5, "0:00:00")],
)
def test_durations_are_clocks(seconds, shown):
    assert duration(seconds) == shown


def test_a_curve_keeps_its_shape_in_few_points():
    trend = Trend()
    for i in range(100_000):
        trend.take(float(i))
    assert len(trend.points) <= POINTS
    assert spark(trend.points, 8) == "▁▂▃▄▅▆▇█"
    assert spark(trend.points, 8, unicode=False) == "_.-:=+*#"
    assert spark([1.0, 1.0, 1.0], 8) == "▄▄▄"
    assert spark([1.0, math.nan, 2.0], 8) == "▁ █"
    assert spark([math.nan] * 5, 8) == ""
    assert spark([-1.7e308, 1.7e308], 8) == "▁█"


def test_bytes_are_shown_in_the_unit_that_fits() -> None:
    assert [size(n) for n in (0, 999, 1500, 4.6e9, -2e6, float("nan"))] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "4.6 GB",
        "-2.0 MB",
        "nan",
    ]
