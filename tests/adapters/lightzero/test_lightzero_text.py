"""Tables and text logs: byte for byte what LightZero's users know, without the faults."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import numpy as np

import rollbook
from rollbook.adapters.lightzero import TextLogger, build_logger, get_tabulate_vars, get_tabulate_vars_hor


def test_four_names_stand_side_by_side() -> None:
    found = get_tabulate_vars_hor(
        {"cur_lr_avg": 0.001, "total_loss_avg": 0.098862, "q_value_avg": 1.045718, "target_q_value_avg": 0.157632}
    )
    assert found == (
        "\n"
        "+-------+------------+----------------+-------------+--------------------+\n"
        "| Name  | cur_lr_avg | total_loss_avg | q_value_avg | target_q_value_avg |\n"
        "+-------+------------+----------------+-------------+--------------------+\n"
        "| Value | 0.001000   | 0.098862       | 1.045718    | 0.157632           |\n"
        "+-------+------------+----------------+-------------+--------------------+\n"
    )


def test_the_fifth_name_begins_a_second_block_and_texts_and_lists_stay() -> None:
    found = get_tabulate_vars_hor({"a": 0, "b": np.float32(0.5), "c": "iteration_0.pth.tar", "d": [1.0, 2.0], "e": -1})
    assert found == (
        "\n"
        "+-------+----------+----------+---------------------+------------+\n"
        "| Name  | a        | b        | c                   | d          |\n"
        "+-------+----------+----------+---------------------+------------+\n"
        "| Value | 0.000000 | 0.500000 | iteration_0.pth.tar | [1.0, 2.0] |\n"
        "+-------+----------+----------+---------------------+------------+\n"
        "+-------+-----------+\n"
        "| Name  | e         |\n"
        "+-------+-----------+\n"
        "| Value | -1.000000 |\n"
        "+-------+-----------+\n"
    )


def test_a_multiple_of_four_has_no_stray_line_unless_asked_for() -> None:
    values = dict.fromkeys("abcd", 1.0)
    assert not get_tabulate_vars_hor(values).endswith("\n\n")
    assert get_tabulate_vars_hor(values, compat=True) == get_tabulate_vars_hor(values) + "\n"


def test_a_table_one_name_a_line_keeps_six_decimals_and_takes_text() -> None:
    assert get_tabulate_vars({"loss": 1.0, "name": "x"}) == (
        "\n"
        "+------+----------+\n"
        "| Name |    Value |\n"
        "+======+==========+\n"
        "| loss | 1.000000 |\n"
        "+------+----------+\n"
        "| name |        x |\n"
        "+------+----------+"
    )


def test_a_line_begins_with_time_place_and_level(tmp_path: Path) -> None:
    logger = TextLogger(tmp_path / "log" / "learner", "learner")
    logger.info("value is %d", 3)
    logger.debug("not shown")
    logger.error("two\nlines")
    lines = (tmp_path / "log" / "learner" / "learner_logger.txt").read_text().splitlines()
    head = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]\[test_lightzero_text\.py:\d+\]"
    assert re.fullmatch(head + r"\[INFO\] value is 3", lines[0])
    assert re.fullmatch(head + r"\[ERROR\] two", lines[1])
    assert lines[2:] == ["lines"]


def test_the_file_is_there_at_once_and_is_appended_to(tmp_path: Path) -> None:
    TextLogger(tmp_path, "a")
    assert (tmp_path / "a_logger.txt").read_text() == ""
    TextLogger(tmp_path, "a").info("x")
    TextLogger(tmp_path, "a").info("y")
    assert len((tmp_path / "a_logger.txt").read_text().splitlines()) == 2


def test_two_experiments_in_one_process_do_not_mix_their_lines(tmp_path: Path) -> None:
    """DI-engine's loggers are global by name: both files get every line from the second on."""
    first, _ = build_logger(tmp_path / "one", "learner", need_tb=False)
    second, _ = build_logger(tmp_path / "two", "learner", need_tb=False)
    assert first is not None
    assert second is not None
    first.info("from one")
    second.info("from two")
    assert "from two" not in (tmp_path / "one" / "learner_logger.txt").read_text()
    assert "from one" not in (tmp_path / "two" / "learner_logger.txt").read_text()


def test_pythons_root_logger_stays_as_it_was(tmp_path: Path) -> None:
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    build_logger(tmp_path, "x", need_tb=False)
    assert (root.level, list(root.handlers)) == before


def test_build_logger_gives_what_was_asked_for(tmp_path: Path) -> None:
    with rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline") as run:
        text, events = build_logger(tmp_path / "t", "x", run=run)
        assert text is not None
        assert events is not None
        assert build_logger(tmp_path / "t", "x", need_text=False, need_tb=False) == (None, None)
        events.add_scalar("mine_iter/loss", 0.5, 7)
        assert text.get_tabulate_vars_hor({"a": 1}).startswith("\n+")
        table = run.book.metrics(["mine_iter/loss"])
        assert table.column("mine_iter/loss").to_pylist() == [0.5]
        assert table.column("gradient_step").to_pylist() == [7]


def test_a_file_that_cannot_be_written_is_reported_and_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file, no folder")
    told: list[OSError] = []
    logger = TextLogger(tmp_path / "log", "x", failed=told.append)
    logger.info("hello")
    assert len(told) == 2
