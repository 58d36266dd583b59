from __future__ import annotations

import re

import pytest

from rollbook import sinks
from rollbook.errors import BadInput, UnknownOption
from rollbook.protocols import Row
from rollbook.sinks import Text
from rollbook.sinks._plain import file_name, plain
from rollbook.sinks.text import blocks, table


def log(folder, component):
    text = (folder / "log" / component / f"{component}_logger.txt").read_text("utf-8")
    return re.sub(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]", "[time]", text)


def test_a_component_has_a_log_of_aligned_tables(write):
    folder = write(Text(), {"update/loss/policy": -0.0123456789, "update/n": 3}, scope="update", env_step=7, epoch=1)
    assert log(folder, "update") == (
        "[time][INFO] env_step 7, epoch 1\n"
        "+-------------+------------+\n"
        "| Name        |      Value |\n"
        "+-------------+------------+\n"
        "| loss/policy | -0.0123457 |\n"
        "| n           |          3 |\n"
        "+-------------+------------+\n"
    )


def test_a_row_that_belongs_to_several_components_is_divided(write):
    folder = write(Text(), {"collector/reward_mean": 1.0, "learner/cur_lr": 0.001, "loose": 5})
    assert sorted(path.name for path in (folder / "log").iterdir()) == ["collector", "learner", "run"]
    assert "| loose |     5 |" in log(folder, "run")


def test_text_and_notes_stand_on_lines_of_their_own(write):
    folder = write(Text(), {"learner/structure": "Net(\n  (0): Linear\n)", "note": "lr halved"})
    assert log(folder, "learner") == "[time][INFO] structure: Net(\n      (0): Linear\n    )\n"
    assert log(folder, "run") == "[time][INFO] note: lr halved\n"


def test_four_names_stand_side_by_side_as_lightzero_users_know_them():
    values = [("cur_lr_avg", 0.001), ("total_loss_avg", 0.098862), ("q_value_avg", 1.045718)]
    values += [("target_q_value_avg", 0.157632), ("more", 1)]
    assert blocks(values) == (
        "+-------+------------+----------------+-------------+--------------------+\n"
        "| Name  | cur_lr_avg | total_loss_avg | q_value_avg | target_q_value_avg |\n"
        "+-------+------------+----------------+-------------+--------------------+\n"
        "| Value | 0.001000   | 0.098862       | 1.045718    | 0.157632           |\n"
        "+-------+------------+----------------+-------------+--------------------+\n"
        "+-------+----------+\n"
        "| Name  | more     |\n"
        "+-------+----------+\n"
        "| Value | 1.000000 |\n"
        "+-------+----------+\n"
    )


def test_wide_characters_do_not_shift_the_table():
    rows = table([("損失", 1.0), ("loss", 22.5)]).splitlines()
    assert rows[3] == "| 損失 |     1 |"
    assert rows[4] == "| loss |  22.5 |"


def test_a_frequent_component_is_written_once_a_second_and_its_last_row_in_any_case(run):
    sink = sinks.make("text")
    sink.open(run)
    sink.write([Row(100 + i / 10, {"env_step": i}, {"train/return": float(i)}, "train") for i in range(25)])
    sink.close()
    assert re.findall(r"env_step (\d+)", log(run.folder, "train")) == ["0", "10", "20", "24"]


def test_components_without_end_share_a_log(run):
    sink = Text()
    sink.open(run)
    sink.write([Row(0.0, {}, {f"c{i}/x": 1.0}) for i in range(80)])
    assert len(list((run.folder / "log").iterdir())) == 65
    assert log(run.folder, "other").count("\n| x") == 16
    again = Text()
    again.open(run)
    again.write([Row(1.0, {}, {"c79/x": 1.0, "c3/x": 1.0})])
    assert log(run.folder, "other").count("\n| x") == 17


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("loss/policy", "loss/policy"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\rb\x00", "a\\rb\\x00"),
        ("\u202eevil\u2069", "\\u202eevil\\u2069"),
        ("\x9b2J", "\\x9b2J"),
        ("漢é🎈", "漢é🎈"),
        ("\udc80", "\\udc80"),
    ],
)
def test_what_could_drive_a_terminal_is_written_out(text, shown):
    assert plain(text) == shown


def test_file_names_are_safe_and_do_not_meet():
    assert file_name("learner") == "learner"
    names = [
        file_name(text) for text in ("a b", "a_b", "a/b", "../x", "", "..", "CON", "con", "x" * 300, "x" * 301, "é")
    ]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,60}", name) for name in names)


def test_what_would_fill_the_logs_unread_is_left_out_unless_asked_for(write, tmp_path):
    values = {"host/cpu": 1.0, "rollbook/rows": 1, "time/collect_seconds": 0.1, "time/fps": 417, "train/x": 1}
    folder = write(Text(), values, {"host/cpu": 2.0})
    assert sorted(path.name for path in (folder / "log").iterdir()) == ["time", "train"]
    assert "seconds" not in log(folder, "time")
    folder = write(Text(leave_out=""), values)
    assert sorted(path.name for path in (folder / "log").iterdir()) == ["host", "rollbook", "time", "train"]
    with pytest.raises(BadInput, match="leave_out"):
        Text(leave_out="(")


def test_an_unknown_layout_names_the_known_ones():
    with pytest.raises(UnknownOption, match="Did you mean 'table'"):
        Text(layout="tables")
