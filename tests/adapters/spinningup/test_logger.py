"""A program written for Spinning Up's logger, with its import changed."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.adapters.spinningup import DummyLogger, EpochLogger, Logger, install, setup_logger_kwargs
from rollbook.errors import BadInput, LoggingFailed, RollbookWarning, UnknownOption


def table(logger: Logger) -> list[dict[str, str]]:
    with open(f"{logger.output_dir}/progress.txt", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def epoch(logger: EpochLogger, number: int, returns: list[float]) -> None:
    for value in returns:
        logger.store(EpRet=value, EpLen=10)
    logger.store(VVals=np.array([0.5, 1.5]))
    logger.log_tabular("Epoch", number)
    logger.log_tabular("EpRet", with_min_and_max=True)
    logger.log_tabular("EpLen", average_only=True)
    logger.log_tabular("VVals")
    logger.log_tabular("TotalEnvInteracts", (number + 1) * 4000)
    logger.dump_tabular()


def test_names_and_order_of_columns_are_spinning_ups(run: Any, tmp_path: Path) -> None:
    logger = EpochLogger(str(tmp_path / "exp"), "progress.txt", "vpg", run=run)
    epoch(logger, 0, [-50.5, -31.5])
    header = (tmp_path / "exp" / "progress.txt").read_text().splitlines()[0]
    expected = "Epoch AverageEpRet StdEpRet MaxEpRet MinEpRet EpLen AverageVVals StdVVals TotalEnvInteracts"
    assert header.split("\t") == expected.split()
    assert table(logger)[0]["AverageEpRet"] == "-41.0"
    assert table(logger)[0]["StdEpRet"] == "9.5"


def test_the_book_holds_each_dumped_number_at_its_epoch_and_step(run: Any, rows: Any, tmp_path: Path) -> None:
    logger = EpochLogger(str(tmp_path / "exp"), run=run)
    for number in range(3):
        epoch(logger, number, [float(number), number + 2.0])
    logger.close()
    native = table(logger)
    for key in native[0]:
        found = [value for (value,) in rows(run, key)]
        assert found == [float(line[key]) for line in native], key
    assert rows(run, "AverageEpRet", x="env_step") == [(4000, 1.0), (8000, 2.0), (12000, 3.0)]
    assert rows(run, "AverageEpRet", x="epoch") == [(0, 1.0), (1, 2.0), (2, 3.0)]


def test_every_stored_value_is_kept_raw(run: Any, rows: Any, tmp_path: Path) -> None:
    logger = EpochLogger(str(tmp_path / "exp"), run=run)
    epoch(logger, 0, [1.0, 2.0])
    epoch(logger, 1, [3.0])
    assert rows(run, "store/EpRet", x="epoch") == [(0, 1.0), (0, 2.0), (1, 3.0)]
    assert [row["return"] for row in run.book.episodes().to_pylist()] == [1.0, 2.0, 3.0]
    assert [row["length"] for row in run.book.episodes().to_pylist()] == [10, 10, 10]
    assert run.book.histograms().num_rows == 2


def test_an_epoch_without_a_finished_episode_has_empty_cells(run: Any, rows: Any, tmp_path: Path) -> None:
    logger = EpochLogger(str(tmp_path / "exp"), run=run)
    epoch(logger, 0, [])
    epoch(logger, 1, [5.0])
    assert [row["AverageEpRet"] for row in table(logger)] == ["", "5.0"]
    assert rows(run, "AverageEpRet", x="epoch") == [(1, 5.0)]
    logger.epoch_dict["EpRet"] = []
    assert all(np.isnan(logger.get_stats("EpRet")))


def test_a_key_may_come_late_and_rows_may_lack_keys(run: Any, tmp_path: Path) -> None:
    logger = Logger(str(tmp_path / "exp"), run=run)
    logger.log_tabular("a", 1)
    logger.dump_tabular()
    logger.log_tabular("late", 2)
    logger.dump_tabular()
    assert table(logger) == [{"a": "1", "late": ""}, {"a": "", "late": "2"}]


def test_a_folder_that_is_used_again_keeps_its_rows(run: Any, tmp_path: Path, capsys: Any) -> None:
    for number in range(2):
        logger = EpochLogger(str(tmp_path / "exp"), run=run)
        epoch(logger, number, [1.0])
        logger.close()
    assert [row["Epoch"] for row in table(logger)] == ["0", "1"]
    assert "already exists" in capsys.readouterr().out
    logger = Logger(str(tmp_path / "exp"), run=run, existing="replace")
    assert (tmp_path / "exp" / "progress.txt").read_text() == ""


def test_a_key_that_is_set_twice_keeps_the_later_value_and_says_so(run: Any, tmp_path: Path) -> None:
    logger = Logger(str(tmp_path / "exp"), run=run)
    logger.log_tabular("a", 1)
    with pytest.warns(RollbookWarning, match="'a'"):
        logger.log_tabular("a", 2)
    logger.dump_tabular()
    assert table(logger) == [{"a": "2"}]
    assert run.bill()["drops"]["set_twice"] == 1


def test_strict_runs_raise_instead(strict_run: Any, tmp_path: Path) -> None:
    logger = Logger(str(tmp_path / "exp"), run=strict_run)
    logger.log_tabular("a", 1)
    with pytest.raises(LoggingFailed):
        logger.log_tabular("a", 2)


def test_a_dump_of_nothing_writes_nothing(run: Any, tmp_path: Path) -> None:
    logger = Logger(str(tmp_path / "exp"), run=run)
    logger.dump_tabular()
    logger.log_tabular("a", 1)
    logger.dump_tabular()
    logger.dump_tabular()
    assert (tmp_path / "exp" / "progress.txt").read_text() == "a\n1\n"


def test_tabs_and_newlines_in_texts_do_not_break_the_table(run: Any, tmp_path: Path) -> None:
    logger = Logger(str(tmp_path / "exp"), run=run)
    logger.log_tabular("note\twith tab", "one\ttwo\nthree")
    logger.log_tabular("x", 1)
    logger.dump_tabular()
    assert table(logger) == [{"note\twith tab": "one\ttwo\nthree", "x": "1"}]


def test_the_printed_table_shows_whole_numbers_whole(run: Any, tmp_path: Path, capsys: Any) -> None:
    logger = Logger(str(tmp_path / "exp"), run=run)
    logger.log_tabular("TotalEnvInteracts", 400_123)
    logger.log_tabular("AverageEpRet", np.float32(-41.25))
    logger.log_tabular("note", "a text of more than fifteen letters")
    capsys.readouterr()
    logger.dump_tabular()
    lines = capsys.readouterr().out.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert "400123" in lines[1]
    assert "-41.2" in lines[2]
    assert "\x1b" not in "".join(lines)


def test_compat_has_the_old_numbers_and_the_old_errors(run: Any, tmp_path: Path) -> None:
    logger = EpochLogger(str(tmp_path / "exp"), run=run, compat=True)
    logger.store(x=16_777_217)
    logger.log_tabular("x", average_only=True)
    assert logger.log_current_row["x"] == 16_777_216
    with pytest.raises(AssertionError, match="already set"):
        logger.log_tabular("x", 1)
    logger.dump_tabular()
    with pytest.raises(AssertionError, match="new key"):
        logger.log_tabular("y", 1)
    with pytest.raises(KeyError):
        logger.log_tabular("never_stored")
    with pytest.raises(IndexError):
        logger.log_tabular("x")
    assert logger.log_headers == ["x"]


def test_compat_writes_the_text_of_a_float32(run: Any, tmp_path: Path) -> None:
    logger = EpochLogger(str(tmp_path / "exp"), run=run, compat=True)
    logger.store(EpRet=18.0)
    logger.store(EpRet=19.1)
    logger.log_tabular("EpRet", with_min_and_max=True)
    logger.log_tabular("Time", 0.1)
    logger.dump_tabular()
    assert (tmp_path / "exp" / "progress.txt").read_text().splitlines()[1] == "18.55\t0.5500002\t19.1\t18.0\t0.1"


def test_get_stats_leaves_what_is_stored(run: Any, tmp_path: Path) -> None:
    logger = EpochLogger(str(tmp_path / "exp"), run=run)
    logger.store(EpCost=1.0)
    logger.store(EpCost=3.0)
    assert logger.get_stats("EpCost") == (2.0, 1.0)
    logger.log_tabular("EpCost")
    assert logger.log_current_row == {"AverageEpCost": 2.0, "StdEpCost": 1.0}
    assert logger.epoch_dict["EpCost"] == []


def test_subclasses_may_override_log_tabular(run: Any, tmp_path: Path) -> None:
    class Mine(EpochLogger):
        def log_tabular(self, key: str, val: Any = None, **options: Any) -> None:
            super().log_tabular(f"my/{key}", val, **options)

    logger = Mine(str(tmp_path / "exp"), run=run)
    logger.log_tabular("a", 1)
    assert logger.log_current_row == {"my/a": 1}


def test_a_key_that_is_stored_and_never_logged_does_not_grow_for_ever(
    run: Any, tmp_path: Path, tuned: Callable[..., None]
) -> None:
    tuned(stored_values=10)
    logger = EpochLogger(str(tmp_path / "exp"), run=run, raw=False)
    for i in range(10):
        logger.store(forgotten=i)
    with pytest.warns(RollbookWarning, match="forgotten"):
        logger.store(forgotten=10)
    for i in range(11, 25):
        logger.store(forgotten=i)
    assert len(logger.epoch_dict["forgotten"]) <= 10
    assert logger.epoch_dict["forgotten"][-1] == 24


def test_a_program_without_a_run_gets_one_named_after_the_experiment(tmp_path: Path) -> None:
    options = {"keeper": "inline", "sinks": (), "dir": tmp_path / "runs"}
    with EpochLogger(**setup_logger_kwargs("vpg", 7, tmp_path / "data", run_options=options)) as logger:
        epoch(logger, 0, [1.0])
        assert (logger.run.project, logger.run.name, logger.run.seed) == ("vpg", "vpg", 7)
    assert logger.run.status == "finished"


def test_the_seed_that_an_algorithm_saves_with_its_arguments_is_that_of_its_run(run: Any, tmp_path: Path) -> None:
    options = {"keeper": "inline", "sinks": (), "dir": tmp_path / "runs"}
    for folder, saved, expected in (("vpg", 3, 3), ("vpg_s7", 3, 7), ("none", None, None), ("odd", True, None)):
        with EpochLogger(str(tmp_path / folder), run_options=options) as logger:
            logger.save_config({"seed": saved})
            assert logger.run.seed == expected
    with EpochLogger(str(tmp_path / "given"), run=run) as logger:
        logger.save_config({"seed": 5})
    assert run.seed == 5
    with rollbook.init("p", "said", seed=1, **options) as said, EpochLogger(str(tmp_path / "said"), run=said) as logger:
        logger.save_config({"seed": 5})
        assert said.seed == 1, "a run of the caller keeps what its caller said"


def test_an_exception_in_the_block_makes_the_run_crashed(tmp_path: Path) -> None:
    options = {"keeper": "inline", "sinks": (), "dir": tmp_path / "runs"}
    logger = Logger(str(tmp_path / "x"), run_options=options)
    with pytest.raises(ZeroDivisionError), logger:
        _ = 1 / 0
    assert logger.run.status == "crashed"


def test_the_book_can_be_left_out(tmp_path: Path) -> None:
    logger = EpochLogger(str(tmp_path / "exp"), run=False)
    epoch(logger, 0, [1.0])
    logger.save_config({"a": 1})
    logger.close()
    assert logger.run is None
    assert len(table(logger)) == 1


def test_a_file_that_cannot_be_written_does_not_stop_the_training(run: Any, rows: Any, tmp_path: Path) -> None:
    logger = EpochLogger(str(tmp_path / "exp"), run=run)
    logger._table.close()
    with pytest.warns(RollbookWarning, match=r"progress\.txt"):
        epoch(logger, 0, [1.0])
    epoch(logger, 1, [2.0])
    assert rows(run, "AverageEpRet") == [(1.0,), (2.0,)]
    assert run.bill()["drops"]["progress_file"] == 2


def test_bad_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownOption, match=r"apend.*append"):
        Logger(str(tmp_path), run=False, existing="apend")
    with pytest.raises(BadInput, match="not a rollbook run"):
        Logger(str(tmp_path), run="my run")
    with pytest.raises(BadInput, match="cannot be used as a tracker"):
        Logger(str(tmp_path), run=False, trackers=[3])


def test_the_dummy_logger_does_nothing_under_every_name() -> None:
    logger = DummyLogger("anything", exp_name="x")
    logger.store(EpRet=1)
    logger.log_tabular("a", with_min_and_max=True)
    assert logger.dump_tabular() is None


def test_install_stands_in_for_the_original_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spinup.utils.logx", None)
    install()
    from spinup.utils.logx import EpochLogger as Installed  # type: ignore[import-not-found]

    assert Installed is EpochLogger


def test_the_configuration_is_in_file_and_run(run: Any, tmp_path: Path) -> None:
    logger = EpochLogger(str(tmp_path / "exp"), exp_name="vpg", run=run)
    logger.save_config({"gamma": 0.99, "seed": 7, "env_fn": lambda: None, "logger": logger})
    text = (tmp_path / "exp" / "config.json").read_text()
    assert '    "seed":\t7' in text
    found = json.loads(text)
    assert found["exp_name"] == "vpg"
    assert "0x" not in text
    assert run.config["gamma"] == 0.99


class Experiment:
    """An old-style Neptune experiment."""

    def __init__(self) -> None:
        self.metrics: list[Any] = []
        self.properties: dict[str, Any] = {}

    def log_metric(self, *args: Any) -> None:
        self.metrics.append(args)

    def set_property(self, key: str, value: Any) -> None:
        self.properties[key] = value


def test_a_neptune_experiment_gets_rows_and_configuration(run: Any, tmp_path: Path) -> None:
    experiment = Experiment()
    more: list[Any] = []
    arguments = setup_logger_kwargs("ppo", 0, tmp_path, neptune_experiment=experiment, run=run)
    logger = EpochLogger(**arguments, trackers=[lambda row, step: more.append((step, row))])
    logger.save_config({"ac_kwargs": {"hidden_sizes": [64, 64]}})
    logger.store(EpRet=3.0)
    logger.log_tabular("EpRet")
    logger.log_tabular("TestEpRet", average_only=True)  # nothing was stored: no number is made up
    logger.log_tabular("TotalEnvInteracts", 0)
    logger.log_tabular("note", "text")
    logger.dump_tabular()
    assert experiment.metrics == [("AverageEpRet", 0, 3.0), ("StdEpRet", 0, 0.0), ("TotalEnvInteracts", 0, 0)]
    assert experiment.properties == {"ac_kwargs.hidden_sizes": [64, 64], "exp_name": "ppo"}
    assert more == [(0, {"AverageEpRet": 3.0, "StdEpRet": 0.0, "TotalEnvInteracts": 0})]


def test_a_stored_key_may_be_called_like_the_average_of_another(run: Any, rows: Any, tmp_path: Path) -> None:
    logger = EpochLogger(str(tmp_path / "exp"), run=run)
    logger.store(Ret=1.0, AverageRet=7.0)
    logger.log_tabular("Ret")
    with pytest.warns(RollbookWarning, match="'AverageRet'"):
        logger.log_tabular("AverageRet", average_only=True)
    logger.dump_tabular()
    assert table(logger) == [{"AverageRet": "7.0", "StdRet": "0.0"}]
    assert rows(run, "store/Ret") + rows(run, "store/AverageRet") == [(1.0,), (7.0,)]


def test_loggers_without_a_folder_do_not_share_one(run: Any) -> None:
    first, second = Logger(run=run), Logger(run=run)
    assert first.output_dir != second.output_dir


def test_a_closed_logger_holds_no_file_and_may_be_closed_twice(run: Any, tmp_path: Path) -> None:
    logger = Logger(str(tmp_path / "exp"), run=run)
    logger.log_tabular("a", 1)
    logger.dump_tabular()
    logger.close()
    logger.close()
    assert logger.output_file.closed
