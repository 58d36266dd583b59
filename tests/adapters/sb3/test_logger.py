"""The logger and its outputs, as Stable-Baselines3's programs use them, without that library."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollbook.adapters.sb3 import (
    CSVOutputFormat,
    Figure,
    FormatUnsupportedError,
    HParam,
    HumanOutputFormat,
    Image,
    JSONOutputFormat,
    KVWriter,
    Logger,
    RollbookOutputFormat,
    Video,
    configure,
    make_output_format,
)
from rollbook.errors import LoggingFailed, RollbookWarning, UnknownOption


class Keeps(KVWriter):
    """An output as a user writes it: zips the two dicts, has no close."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        self.rows.append((step, key_values))
        for (key, _), (same, _) in zip(sorted(key_values.items()), sorted(key_excluded.items()), strict=True):
            assert key == same


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_last_value_recorded_wins() -> None:
    logger, out = Logger(None, []), Keeps()
    logger.output_formats.append(out)
    logger.record("a", 1)
    logger.record("a", 2)
    logger.dump(7)
    assert out.rows == [(7, {"a": 2})]


def test_means_are_of_what_came_since_the_last_dump_and_none_says_nothing() -> None:
    out = Keeps()
    logger = Logger(None, [out])
    for value in (1.0, None, 3.0):
        logger.record_mean("m", value)
    logger.dump()
    logger.record_mean("m", 10.0)
    logger.dump()
    logger.record_mean("m", None)
    logger.dump()
    assert [row for _, row in out.rows] == [{"m": 2.0}, {"m": 10.0}, {}]


def test_a_recorded_value_replaces_the_mean_before_it_with_its_weight() -> None:
    logger = Logger(None, [])
    logger.record_mean("m", 10.0)
    logger.record_mean("m", 10.0)
    logger.record("m", 4.0)
    logger.record_mean("m", 10.0)
    assert logger.name_to_value["m"] == 10.0


def test_looking_at_a_value_that_is_not_there_changes_nothing() -> None:
    out = Keeps()
    logger = Logger(None, [out, HumanOutputFormat(io.StringIO())])
    assert logger.name_to_value["time/fps"] == 0.0
    logger.record("a", 1)
    logger.dump()
    assert out.rows == [(0, {"a": 1})]


def test_an_output_may_keep_the_row_it_was_given() -> None:
    class Changes(Keeps):
        def write(self, key_values: Any, key_excluded: Any, step: int = 0) -> None:
            super().write(dict(key_values), key_excluded, step)
            key_values.clear()

    first, second = Changes(), Keeps()
    logger = Logger(None, [first, second])
    logger.record("a", 1)
    logger.dump()
    assert second.rows == [(0, {"a": 1})]
    assert logger.name_to_value == {}


def test_an_output_that_fails_costs_the_others_nothing() -> None:
    class Broken(Keeps):
        def write(self, key_values: Any, key_excluded: Any, step: int = 0) -> None:
            raise OSError("disk full")

    before, after = Keeps(), Keeps()
    logger = Logger(None, [before, Broken(), after])
    logger.record("a", 1)
    with pytest.warns(RollbookWarning, match=r"Broken\.write\(\).*disk full"):
        logger.dump(1)
    logger.record("b", 2)
    logger.dump(2)
    assert before.rows == after.rows == [(1, {"a": 1}), (2, {"b": 2})]


def test_a_strict_run_raises_what_would_have_been_counted(strict_run: Any) -> None:
    logger = Logger(None, [RollbookOutputFormat(strict_run)])
    logger.record("a", object())
    with pytest.raises(LoggingFailed):
        logger.dump()


def test_a_disabled_logger_drops_rows_instead_of_leaking_them_later() -> None:
    out = Keeps()
    logger = Logger(None, [out])
    logger.set_level(50)
    logger.record("stale", 1)
    logger.dump()
    logger.set_level(20)
    logger.record("fresh", 2)
    logger.dump()
    assert out.rows == [(0, {"fresh": 2})]


@pytest.mark.parametrize("exclude", ["csv", ("csv",), ["csv", "json"], {"csv"}])
def test_exclusions_may_be_one_name_or_any_collection(tmp_path: Path, exclude: Any) -> None:
    logger = Logger(None, [CSVOutputFormat(tmp_path / "p.csv")])
    logger.record("shown", 1)
    logger.record("hidden", 2, exclude=exclude)
    logger.dump()
    assert lines(tmp_path / "p.csv") == [{"shown": "1"}]


def test_exclusions_are_honoured_format_by_format(run: Any, rows: Any, tmp_path: Path) -> None:
    logger = configure(tmp_path, ["csv", "json", "log"], run=run)
    for name in ("csv", "json", "log", "rollbook", "stdout", "tensorboard"):
        logger.record(f"not_{name}", 1, exclude=name)
    logger.dump(5)
    logger.close()
    everything = {f"not_{name}" for name in ("csv", "json", "log", "rollbook", "stdout", "tensorboard")}
    assert set(lines(tmp_path / "progress.csv")[0]) == everything - {"not_csv"}
    assert set(json.loads((tmp_path / "progress.json").read_text())) == everything - {"not_json"}
    text = (tmp_path / "log.txt").read_text()
    assert "not_log" not in text
    assert "not_stdout" in text
    assert set(run.book.keys()) >= everything - {"not_rollbook"}
    assert "not_rollbook" not in run.book.keys()  # noqa: SIM118  # a method of the book, not of a dict


def test_a_dump_in_which_all_is_excluded_leaves_no_blank_line(tmp_path: Path) -> None:
    logger = Logger(None, [CSVOutputFormat(tmp_path / "p.csv"), JSONOutputFormat(tmp_path / "p.json")])
    logger.record("a", 1, exclude=("csv", "json"))
    logger.dump()
    logger.close()
    assert (tmp_path / "p.csv").read_text() == ""
    assert (tmp_path / "p.json").read_text() == ""


def test_columns_come_in_the_order_of_recording_in_every_process(tmp_path: Path) -> None:
    program = (
        "import sys; from rollbook.adapters.sb3 import CSVOutputFormat as C;"
        "c = C(sys.argv[1]); c.write({'z': 1}, {}); c.write({'d': 1, 'a': 2, 'c': 3, 'b': 4}, {}); c.close()"
    )
    headers = set()
    for seed in ("1", "2", "3"):
        path = tmp_path / f"{seed}.csv"
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", program, str(path)], check=True, env=env)
        headers.add(path.read_text().splitlines()[0])
    assert headers == {"z,d,a,c,b"}


def test_text_and_lists_in_a_csv_are_read_back_whole(tmp_path: Path) -> None:
    out = CSVOutputFormat(tmp_path / "p.csv")
    out.write({"note": 'two\nlines, "quoted"', "list": [1, 2], "array": np.array([1.5, 2.5]), "none": None}, {})
    out.write({"late, with comma": np.float32(0.1)}, {})
    out.close()
    first, second = lines(tmp_path / "p.csv")
    assert first["note"] == 'two\nlines, "quoted"'
    assert first["list"] == "[1, 2]"
    assert first["array"] == "[1.5, 2.5]"
    assert first["none"] == ""
    assert second["late, with comma"] == "0.1"


def test_json_lines_are_strict_and_integers_stay_integers(tmp_path: Path) -> None:
    out = JSONOutputFormat(tmp_path / "p.json")
    row = {
        "i": np.int64(2**60 + 1),
        "b": np.bool_(True),
        "f": np.float64(0.1),
        "nan": math.nan,
        "a": np.arange(3),
        "o": {1: object},
    }
    out.write(row, {})
    out.close()
    found = json.loads((tmp_path / "p.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    assert found == {"i": 2**60 + 1, "b": True, "f": 0.1, "nan": None, "a": [0, 1, 2], "o": {"1": str(object)}}


def test_files_of_an_earlier_training_are_continued(run: Any, tmp_path: Path) -> None:
    for value in (1, 2):
        logger = configure(tmp_path, ["csv", "json", "log"], run=run)
        logger.record("a", value)
        logger.dump(value)
        logger.close()
    assert [row["a"] for row in lines(tmp_path / "progress.csv")] == ["1", "2"]
    assert len((tmp_path / "progress.json").read_text().splitlines()) == 2


def test_the_table_groups_keys_and_aligns_values() -> None:
    file = io.StringIO()
    values = {"time/fps": 417, "time/total_timesteps": 2048, "rollout/ep_rew_mean": 21.734567, "lr": np.float32(0.1)}
    HumanOutputFormat(file).write(values, {})
    assert file.getvalue().splitlines() == [
        "---------------------------------",
        "| lr                 | 0.1      |",
        "| rollout/           |          |",
        "|    ep_rew_mean     | 21.7     |",
        "| time/              |          |",
        "|    fps             | 417      |",
        "|    total_timesteps | 2048     |",
        "---------------------------------",
    ]


def test_long_keys_stay_different_when_they_are_shortened() -> None:
    file = io.StringIO()
    HumanOutputFormat(file, max_length=20).write({"a/" + "x" * 30 + "1": 1, "a/" + "x" * 30 + "2": 2}, {})
    names = [line.split("|")[1] for line in file.getvalue().splitlines() if line.startswith("|    ")]
    assert len(names) == len(set(names)) == 2
    assert all(len(name) <= 22 for name in names)


def test_a_table_cannot_hold_pictures_and_shows_the_rest() -> None:
    file = io.StringIO()
    values = {"a": 1, "v": Video(None, 1), "f": Figure(None, False), "i": Image(None, "HW"), "h": HParam({}, {"x": 1})}
    HumanOutputFormat(file).write(values, {})
    assert [line for line in file.getvalue().splitlines() if "|" in line] == ["| a | 1 |"]
    HumanOutputFormat(file).write({}, {})
    assert file.getvalue().count("a") == 1


@pytest.mark.parametrize("name", ["stdout", "log", "json", "csv"])
@pytest.mark.parametrize(
    "value", [Video(np.zeros((1, 1, 1, 1, 1)), 1), Figure(None, False), Image(None, "HWC"), HParam({}, {"m": 1.0})]
)
def test_with_compat_a_format_raises_for_what_it_cannot_hold(name: str, value: Any, tmp_path: Path, rows: Any) -> None:
    output = make_output_format(name, tmp_path, compat=True)
    keeps = Keeps()
    logger = Logger(str(tmp_path), [output, keeps])
    logger.record("picture", value)
    with pytest.raises(FormatUnsupportedError, match=type(value).__name__.lower()):
        logger.dump(1)
    assert list(keeps.rows[0][1]) == ["picture"]  # the others were served
    logger.record("loss", 1.0)
    logger.dump(2)
    logger.record("picture", value, exclude=("stdout", "log", "json", "csv"))
    logger.dump(3)


def test_with_compat_keys_that_are_shortened_to_the_same_raise() -> None:
    output = HumanOutputFormat(io.StringIO(), max_length=8, compat=True)
    with pytest.raises(ValueError, match="Key 'long/a_key_b' truncated"):
        output.write({"long/a_key_a": 1, "long/a_key_b": 2}, {})


def test_text_lines_heed_the_level_and_reach_the_book(run: Any) -> None:
    file = io.StringIO()
    logger = Logger(None, [HumanOutputFormat(file), RollbookOutputFormat(run)])
    logger.debug("not shown")
    logger.info("loss", 3)  # noqa: PLE1205  # not the standard library's logger
    logger.set_level(50)
    logger.error("not shown either")
    assert file.getvalue() == "loss 3\n"
    assert [row["text"] for row in run.book.text().to_pylist()] == ["loss 3"]


def test_closing_tolerates_outputs_without_close() -> None:
    class WithoutClose:
        def write(self, *args: Any) -> None: ...

    Logger(None, [Keeps(), WithoutClose()]).close()


def test_unknown_formats_are_named_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(UnknownOption, match=r"tensorbord.*Did you mean 'tensorboard'"):
        configure(tmp_path, ["tensorbord"], run=False)
    with pytest.raises(ValueError, match="Unknown format specified"):
        make_output_format("xml", tmp_path)
    with pytest.raises(ValueError, match="Expected file or str"):
        HumanOutputFormat(3)


def test_formats_may_be_one_string_or_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = configure(tmp_path, "csv,json", run=False)
    assert [type(out) for out in logger.output_formats] == [CSVOutputFormat, JSONOutputFormat]
    monkeypatch.setenv("SB3_LOG_FORMAT", "json")
    monkeypatch.setenv("SB3_LOGDIR", str(tmp_path / "other"))
    logger = configure(run=False)
    assert [type(out) for out in logger.output_formats] == [JSONOutputFormat]
    assert logger.get_dir() == str(tmp_path / "other")


def test_a_training_without_a_run_gets_one_named_after_its_folder(tmp_path: Path) -> None:
    options = {"keeper": "inline", "sinks": (), "dir": tmp_path / "runs"}
    logger = configure(tmp_path / "ppo_cartpole", ["csv"], run_options=options)
    run = logger.output_formats[-1].run
    assert (run.project, run.name) == ("stable-baselines3", "ppo_cartpole")
    logger.close()
    assert run.status == "finished"


def test_each_dump_is_a_row_at_its_native_step(run: Any, rows: Any) -> None:
    logger = Logger(None, [RollbookOutputFormat(run)])
    for step in (2048, 4096):
        logger.record("rollout/ep_rew_mean", step / 100)
        logger.record("train/approx_kl", np.float32(0.1))
        logger.record("time/fps", step)
        logger.dump(step)
    assert rows(run, "rollout/ep_rew_mean", x="env_step") == [(2048, 20.48), (4096, 40.96)]
    assert rows(run, "time/fps", x="step") == [(2048, 2048), (4096, 4096)]
    assert rows(run, "train/approx_kl") == [(float(np.float32(0.1)),)] * 2


def test_arrays_become_histograms_and_single_elements_numbers(run: Any, rows: Any) -> None:
    logger = Logger(None, [RollbookOutputFormat(run)])
    logger.record("single", np.array([1.5]))
    logger.record("zero_d", np.array(2.5))
    logger.record("many", np.arange(10.0))
    logger.record("list", [1.0, 2.0, 3.0])
    logger.record("text", "hello")
    logger.record("none", None)
    logger.dump(1)
    assert rows(run, "single") == [(1.5,)]
    assert rows(run, "zero_d") == [(2.5,)]
    assert [row["key"] for row in run.book.histograms().to_pylist()] == ["many", "list"]
    assert [(row["key"], row["text"]) for row in run.book.text().to_pylist()] == [("text", "hello")]
    assert run.bill()["drops"] == {}


def test_pictures_films_and_figures_are_media_of_the_run(run: Any) -> None:
    figures = pytest.importorskip("matplotlib.figure")
    logger = Logger(None, [RollbookOutputFormat(run)])
    logger.record("image", Image(np.zeros((3, 8, 10), dtype=np.uint8), "CHW"), exclude=("stdout", "log"))
    logger.record("video", Video(np.zeros((1, 4, 3, 8, 10), dtype=np.uint8), 20))
    logger.record("figure", Figure(figures.Figure(), close=True))
    logger.dump(3)
    found = {row["key"]: row for row in run.book.media().to_pylist()}
    assert {key: row["kind"] for key, row in found.items()} == {"image": "image", "video": "video", "figure": "figure"}
    assert (found["image"]["width"], found["image"]["height"]) == (10, 8)
    assert (found["video"]["frames"], found["video"]["fps"]) == (4, 20)


def test_hyper_parameters_go_to_configuration_and_summary(run: Any) -> None:
    logger = Logger(None, [RollbookOutputFormat(run)])
    logger.record("hparams", HParam({"lr": 0.1}, {"rollout/ep_len_mean": 0}))
    logger.dump(0)
    assert run.config["hparams"] == {"lr": 0.1}
    assert run.summary["rollout/ep_len_mean"] == 0.0
    with pytest.raises(Exception, match="metric_dict"):
        HParam({"lr": 0.1}, {})
