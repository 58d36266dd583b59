"""The loggers: terminal, CSV, memory, asynchronous, and what wraps another one."""

from __future__ import annotations

import csv
import gc
import io
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forked_programs import Interpreter
from rollbook.adapters import acme
from rollbook.errors import BadInput, RollbookWarning
from waiting import PATIENCE


class Failing(acme.Logger):
    def write(self, data: Any) -> None:
        raise RuntimeError("disk on fire")

    def close(self) -> None:
        raise RuntimeError("cannot close")


# -- the surface


def test_acmes_names_and_submodule_paths_are_all_there() -> None:
    assert acme.base.Logger is acme.Logger
    assert acme.base.to_numpy is acme.to_numpy
    assert acme.terminal.TerminalLogger is acme.TerminalLogger
    assert acme.aggregators.Dispatcher is acme.Dispatcher
    assert acme.filters.NoneFilter is acme.NoneFilter
    assert acme.filters.TimeFilter is acme.TimeFilter
    assert acme.csv.CSVLogger is acme.CSVLogger
    assert acme.asynchronous.AsyncLogger is acme.AsyncLogger
    assert acme.auto_close.AutoCloseLogger is acme.AutoCloseLogger
    assert acme.constant.ConstantLogger is acme.ConstantLogger
    assert acme.dataframe.InMemoryLogger is acme.InMemoryLogger
    assert acme.counting.Counter is acme.Counter


def test_importing_the_adapter_needs_neither_acme_nor_numpy(interpreter: Interpreter) -> None:
    code = (
        "import sys; import rollbook.adapters.acme\n"
        "print([m for m in ('acme', 'numpy', 'tree', 'torch') if m in sys.modules])"
    )
    done = interpreter.run(code, env=os.environ)
    assert done.stdout.strip() == "[]"


def test_to_numpy_gives_new_containers_of_the_same_kind_and_order() -> None:
    class Tensor:
        def __init__(self) -> None:
            self.detached = False

        def detach(self) -> Tensor:
            self.detached = True
            return self

        def cpu(self) -> Tensor:
            return self

        def numpy(self) -> np.ndarray:
            assert self.detached, "a tensor that requires grad refuses numpy()"
            return np.array([1.0])

    given = {"z": Tensor(), "a": [1, (2, Tensor())], 3: "text"}
    found = acme.to_numpy(given)
    assert list(found) == ["z", "a", 3]
    assert found is not given
    np.testing.assert_array_equal(found["z"], [1.0])
    np.testing.assert_array_equal(found["a"][1][1], [1.0])


# -- terminal


def test_the_terminal_shows_one_sorted_line_per_record() -> None:
    lines: list[str] = []
    logger = acme.TerminalLogger("train_loop", lines.append)
    logger.write({"c": "foo", "a": 1337, "big_value": 42.0001, "n": np.int64(5), "r": np.array(3.3, np.float32)})
    logger.write({"b": True})
    assert lines == [
        "[Train Loop] A = 1337 | Big Value = 42.000 | C = foo | N = 5 | R = 3.300",
        "[Train Loop] B = True",
    ]


def test_no_label_shows_no_label() -> None:
    lines: list[str] = []
    acme.TerminalLogger(None, lines.append).write({"a": 1})
    acme.TerminalLogger(print_fn=lines.append).write({"a": 1})
    assert lines == ["A = 1", "A = 1"]


def test_a_throttled_terminal_shows_the_first_and_the_last_line() -> None:
    lines: list[str] = []
    logger = acme.TerminalLogger("", lines.append, time_delta=1000.0)
    for i in range(4):
        logger.write({"i": i})
    logger.close()
    assert lines == ["I = 0", "I = 3"]


def test_the_default_terminal_prints(capsys: pytest.CaptureFixture[str]) -> None:
    acme.TerminalLogger("t").write({"a": 1})
    assert capsys.readouterr().out == "[T] A = 1\n"


def test_compat_prints_numpy_as_acme_does() -> None:
    values = {"n": np.int64(5), "r": np.array(3.3, np.float32), "f": 0.5}
    assert acme.serialize(values, compat=True) == f"F = 0.500 | N = 5.000 | R = {np.float32(3.3)!s}"


# -- CSV


def rows_of(path: str) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return [dict(row) for row in csv.DictReader(file)]


def test_text_values_round_trip_through_the_csv_file(tmp_path: Path) -> None:
    inputs = [{"c": "foo", "a": "1337", "b": "42.0001"}, {"c": "fo,o2", "a": "1338", "b": "43.0001"}]
    logger = acme.CSVLogger(str(tmp_path), label="test")
    for data in inputs:
        logger.write(data)
    logger.close()
    assert Path(logger.file_path).parts[-3:] == ("logs", "test", "logs.csv")
    assert rows_of(logger.file_path) == inputs
    assert b"\r" not in Path(logger.file_path).read_bytes()


def test_every_row_is_in_the_file_before_it_is_closed(tmp_path: Path) -> None:
    logger = acme.CSVLogger(tmp_path)
    for i in range(3):
        logger.write({"i": i})
        assert len(rows_of(logger.file_path)) == i + 1


def test_keys_that_appear_later_become_columns(tmp_path: Path) -> None:
    logger = acme.CSVLogger(tmp_path, add_uid=False)
    logger.write({"b": 1, "none_first": None})
    logger.write({"b": 2, "loss": 0.5, "none_first": 3})
    logger.close()
    assert rows_of(logger.file_path) == [
        {"b": "1", "none_first": "", "loss": ""},
        {"b": "2", "none_first": "3", "loss": "0.5"},
    ]


def test_a_second_writer_continues_under_the_header_that_is_there(tmp_path: Path) -> None:
    first = acme.CSVLogger(tmp_path, add_uid=False)
    first.write({"a": 1, "b": 2})
    first.close()
    second = acme.CSVLogger(tmp_path, add_uid=False)
    second.write({"b": 3, "c": 4})
    second.close()
    assert rows_of(second.file_path) == [{"a": "1", "b": "2", "c": ""}, {"a": "", "b": "3", "c": "4"}]


def test_a_row_cut_short_by_a_kill_does_not_spoil_the_next(tmp_path: Path) -> None:
    first = acme.CSVLogger(tmp_path, add_uid=False)
    first.write({"a": 1, "b": 2})
    first.close()
    with open(first.file_path, "a") as file:
        file.write("3,4")
    second = acme.CSVLogger(tmp_path, add_uid=False)
    second.write({"a": 5, "b": 6})
    assert rows_of(second.file_path) == [{"a": "1", "b": "2"}, {"a": "5", "b": "6"}]


def test_a_file_of_the_caller_stays_open_and_keeps_its_header(tmp_path: Path) -> None:
    with (tmp_path / "mine.csv").open("a") as file:
        logger = acme.CSVLogger(file, flush_every=1)
        logger.write({"a": 1})
        with pytest.warns(RollbookWarning, match="no column 'late'"):
            logger.write({"a": 2, "late": 3})
        logger.close()
        assert not file.closed
    assert rows_of(str(tmp_path / "mine.csv")) == [{"a": "1"}, {"a": "2"}]


def test_a_stream_without_a_mode_is_as_good_as_a_file() -> None:
    stream = io.StringIO()
    acme.CSVLogger(stream).write({"a": 1})
    assert stream.getvalue() == "a\n1\n"


def test_a_file_not_opened_for_appending_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "x").open("w") as file, pytest.raises(ValueError, match="'w'"):
        acme.CSVLogger(file)
    with pytest.raises(ValueError, match="flush_every=0"):
        acme.CSVLogger(tmp_path, flush_every=0)


def test_processes_started_in_the_same_second_do_not_share_a_file(interpreter: Interpreter) -> None:
    code = "from rollbook.adapters.acme import paths; print(paths.get_unique_id()[0])"
    names = {interpreter.run(code, env=os.environ).stdout for _ in range(2)}
    assert len(names) == 2
    assert all(names)


# -- memory and wrappers


def test_what_is_kept_in_memory_does_not_change_any_more() -> None:
    logger = acme.InMemoryLogger()
    record = {"a": np.zeros(2), "b": 1}
    logger.write(record)
    record["a"][0] = 9
    record["b"] = 2
    np.testing.assert_array_equal(logger.data[0]["a"], [0, 0])
    assert logger.data[0]["b"] == 1


def test_constants_give_way_to_the_record_and_say_so() -> None:
    kept = acme.InMemoryLogger()
    logger = acme.ConstantLogger({"level": "easy", "seed": 1}, kept)
    logger.write({"x": 1})
    with pytest.warns(RollbookWarning, match="'seed'"):
        logger.write({"seed": 2})
    assert list(kept.data) == [{"level": "easy", "seed": 1, "x": 1}, {"level": "easy", "seed": 2}]


def test_a_timestamp_is_added_and_a_clash_is_reported() -> None:
    kept = acme.InMemoryLogger()
    logger = acme.TimestampLogger(kept, "time", clock=lambda: 12.5)
    logger.write({"x": 1})
    with pytest.warns(RollbookWarning, match="'time'"):
        logger.write({"time": 0})
    assert list(kept.data) == [{"x": 1, "time": 12.5}, {"time": 12.5}]


def test_nested_records_become_flat_under_a_label() -> None:
    kept = acme.InMemoryLogger()
    logger = acme.FlattenDictLogger(kept, "Logs", raw_keys=("steps",))
    logger.write({"steps": 1, "loss": {"pi": 2, "v": {"a": 3}}, "empty": {}})
    assert list(kept.data) == [{"steps": 1, "Logs/loss/pi": 2, "Logs/loss/v/a": 3}]
    with pytest.warns(RollbookWarning, match="Logs/a/b"):
        logger.write({"a/b": 1, "a": {"b": 2}})


def test_a_dispatcher_reaches_every_logger_although_one_fails() -> None:
    first, last = acme.InMemoryLogger(), acme.InMemoryLogger()
    logger = acme.Dispatcher([first, Failing(), last], serialize_fn=acme.to_numpy)
    with pytest.warns(RollbookWarning, match="disk on fire"):
        logger.write({"x": 1})
    logger.write({"x": 2})
    with pytest.warns(RollbookWarning, match="cannot close"):
        logger.close()
    assert [len(kept.data) for kept in (first, last)] == [2, 2]
    assert sum(logger.failures.values()) == 3


def test_warnings_turned_into_errors_do_not_reach_the_loop(recwarn: pytest.WarningsRecorder) -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        acme.Dispatcher([Failing()]).write({"x": 1})


def test_an_auto_close_logger_closes_once_when_collected_or_closed() -> None:
    closed: list[int] = []

    class Closing(acme.InMemoryLogger):
        def close(self) -> None:
            closed.append(1)

    logger = acme.AutoCloseLogger(Closing())
    logger.write({"x": 1})
    del logger
    gc.collect()
    assert closed == [1]
    logger = acme.AutoCloseLogger(Closing())
    logger.close()
    logger.close()
    assert closed == [1, 1]
    with pytest.raises(ValueError, match="after close"):
        logger.write({"x": 1})


# -- asynchronous


def test_close_waits_until_every_record_is_written() -> None:
    """Acme stops the thread and drops what is queued: of five quick records one was kept."""
    gate, kept = threading.Event(), acme.InMemoryLogger()

    class Slow(acme.Logger):
        def write(self, data: Any) -> None:
            gate.wait(PATIENCE)
            kept.write(data)

    logger = acme.AsyncLogger(Slow())
    for i in range(50):
        logger.write({"i": i})
    assert kept.data == []
    gate.set()
    logger.close()
    assert [record["i"] for record in kept.data] == list(range(50))


def test_a_failing_destination_does_not_stop_the_records_after_it() -> None:
    kept: list[int] = []

    class Sometimes(acme.Logger):
        def write(self, data: Any) -> None:
            if data["i"] == 1:
                raise OSError("once")
            kept.append(data["i"])

    logger = acme.AsyncLogger(Sometimes())

    def burst() -> None:
        for i in range(4):
            logger.write({"i": i})
        logger.flush()

    with pytest.warns(RollbookWarning, match="once"):  # said by its own thread, whenever that comes to it
        burst()
    logger.close()
    assert kept == [0, 2, 3]


def test_records_after_close_and_beyond_the_queue_are_counted_not_lost_silently() -> None:
    gate, kept = threading.Event(), acme.InMemoryLogger()

    class Slow(acme.Logger):
        def write(self, data: Any) -> None:
            gate.wait(PATIENCE)
            kept.write(data)

    logger = acme.AsyncLogger(Slow(), queue_size=2)

    def burst() -> None:
        for i in range(10):
            logger.write({"i": i})

    with pytest.warns(RollbookWarning, match="slower"):
        burst()
    gate.set()
    logger.close()
    with pytest.warns(RollbookWarning, match="after close"):
        logger.write({"i": 99})
    assert logger.dropped + len(kept.data) == 11


def test_a_program_that_ends_without_close_writes_what_was_queued(interpreter: Interpreter) -> None:
    code = (
        "import time\n"
        "from rollbook.adapters import acme\n"
        "class Slow(acme.Logger):\n"
        "    def write(self, data):\n"
        "        time.sleep(0.02); print(data['i'], flush=True)\n"
        "logger = acme.AsyncLogger(Slow())\n"
        "for i in range(5): logger.write({'i': i})\n"
    )
    done = interpreter.run(code, env=os.environ)
    assert done.stdout.split() == ["0", "1", "2", "3", "4"]


def test_a_queue_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="queue_size=0"):
        acme.AsyncLogger(acme.NoOpLogger(), queue_size=0)
