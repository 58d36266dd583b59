"""CSV files of training come over with their counters as clocks and their times as times."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rollbook
import wild
from rollbook.cli.app import app
from rollbook.errors import BadInput, UnknownOption
from rollbook.formats import importers
from rollbook.formats.importers._tables import value_of
from rollbook.protocols import Row


def rows_of(path: Path, **options: Any) -> tuple[list[Row], dict[str, int]]:
    runs = list(importers.make("csv", **options).runs(path))  # several, where a training begins anew
    return [row for run in runs for row in run.rows()], {what: n for run in runs for what, n in run.left_out.items()}


def write(path: Path, lines: list[list[Any]], delimiter: str = ",") -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows(lines)
    return path


def test_counters_of_a_framework_are_clocks_and_seconds_since_the_start_are_times(tmp_path: Path) -> None:
    header = ["time/total_timesteps", "time/iterations", "time/time_elapsed", "train/loss", "note"]
    path = write(tmp_path / "progress.csv", [header, [2048, 1, 3, 0.5, ""], [4096, 2, 6.5, "", "better"]])
    os.utime(path, (1.6e9, 1.6e9))
    rows, left_out = rows_of(path)
    assert left_out == {}
    assert [(row.time, dict(row.clocks)) for row in rows] == [
        (1.6e9 - 3.5, {"env_step": 2048, "epoch": 1}),
        (1.6e9, {"env_step": 4096, "epoch": 2}),
    ]
    assert rows[0].values["train/loss"] == 0.5
    assert "note" not in rows[0].values
    assert rows[1].values["note"] == "better"
    assert "train/loss" not in rows[1].values


def test_any_column_can_be_named_a_clock_and_unix_seconds_are_taken_as_they_are(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.csv", [["updates", "when", "loss"], [5, 1.7e9, 1.0], [6, 1.7e9 + 1, "nan"]])
    rows, _ = rows_of(path, clock="updates=gradient_step", time="when")
    assert [(row.time, dict(row.clocks)) for row in rows] == [
        (1.7e9, {"gradient_step": 5}),
        (1.7e9 + 1, {"gradient_step": 6}),
    ]
    assert repr(rows[1].values["loss"]) == "nan"
    with pytest.raises(BadInput, match=r"no column 'update'\. It has: updates, when, loss"):
        rows_of(path, clock="update=epoch")
    with pytest.raises(UnknownOption, match="clock"):
        importers.make("csv", clocks="updates")


def test_monitor_files_are_episodes(tmp_path: Path) -> None:
    path = tmp_path / "0.monitor.csv"
    path.write_text(f"#{json.dumps({'t_start': 1.6e9, 'env_id': 'CartPole'})}\nr,l,t\n10.0,10,1.5\n30.5,31,4.0\n2,")
    (done,) = importers.import_runs(path, dir=tmp_path / "runs")
    assert (done.rows, done.left_out) == (2 + 2, {"lines that are half written": 1})
    (book,) = rollbook.open(tmp_path / "runs")
    episodes = book.episodes()
    assert episodes["return"].to_pylist() == [10.0, 30.5]
    assert episodes["env_step"].to_pylist() == [10, 41]
    assert [moment.timestamp() for moment in episodes["time"].to_pylist()] == [1.6e9 + 1.5, 1.6e9 + 4.0]


def test_spinning_ups_tables_are_read_by_tabs(tmp_path: Path) -> None:
    path = write(tmp_path / "progress.txt", [["Epoch", "AverageEpRet", "TotalEnvInteracts"], [0, 20.5, 4000]], "\t")
    rows, _ = rows_of(path)
    assert rows[0].clocks["env_step"] == 4000
    assert rows[0].values["AverageEpRet"] == 20.5


def test_the_command_imports_says_where_and_what_not_and_names_what_it_can_read(tmp_path: Path) -> None:
    path = write(tmp_path / "progress.csv", [["step", "loss"], [1, 0.5], [2], [3, 0.25]])
    done = CliRunner().invoke(app, ["import", str(path), "--dir", str(tmp_path / "runs"), "--project", "old"])
    assert done.exit_code == 0, done.output
    assert "runs/old/progress-" in done.output
    assert "2 rows" in done.output
    assert "left out, 1 x: lines of progress.csv that do not fit its header" in done.output
    again = CliRunner().invoke(app, ["import", str(path), "--dir", str(tmp_path / "runs"), "--project", "old"])
    assert "nothing new" in again.output
    formats = CliRunner().invoke(app, ["import", str(path), "--formats"]).output
    assert all(name in formats for name in importers.names())
    wrong = CliRunner().invoke(app, ["import", str(tmp_path), "--dir", str(tmp_path / "runs"), "--format", "cvs"])
    assert "Did you mean 'csv'" in wrong.output
    (tmp_path / "none").mkdir()
    wrong = CliRunner().invoke(app, ["import", str(tmp_path / "none"), "--dir", str(tmp_path / "runs")])
    assert "no importer reads what is there" in wrong.output
    for seed in (0, 1):
        (tmp_path / "many" / f"seed {seed}").mkdir(parents=True)
        (tmp_path / "many" / f"seed {seed}" / "progress.csv").write_text("step,loss\n1,0.5\n")
    many = CliRunner().invoke(app, ["import", str(tmp_path / "many"), "--dir", str(tmp_path / "runs")])
    assert many.output.count("1 row") == 2


CELLS = st.one_of(
    st.none(),
    st.integers(-(2**80), 2**80),
    st.floats(),
    st.booleans(),
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8),
)


@settings(suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.integers(0, 2**60), CELLS, CELLS), min_size=1, max_size=10))
def test_what_a_csv_file_holds_is_what_is_read(tmp_path_factory: Any, lines: list[tuple[Any, ...]]) -> None:
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    write(path, [["env_step", "a/b", "c"], *(["" if cell is None else cell for cell in line] for line in lines)])
    rows, left_out = rows_of(path)
    assert left_out == {}
    assert [row.clocks["env_step"] for row in rows] == [line[0] for line in lines]
    for row, (_step, first, second) in zip(rows, lines, strict=True):
        for key, cell in (("a/b", first), ("c", second)):
            if isinstance(cell, str):  # `test_tables.py` has what a text may say
                read_as = value_of(cell)
                assert read_as is None or str(row.values.get(key, "")).strip() in (cell.strip(), str(read_as))
            else:
                assert repr(row.values.get(key)) == repr(cell)


def test_a_seed_of_each_episode_divides_no_table_where_a_counter_goes_through(tmp_path: Path) -> None:
    lines = [f"{volume},{n},{volume * 4 + n},{1_000 + volume * 4 + n},{n / 2}" for volume in range(3) for n in range(4)]
    (tmp_path / "training_log.csv").write_text(
        "\n".join(["volume,episode,global_episode,seed,total_reward", *lines, ""])
    )
    (book,) = rollbook.open(tmp_path)
    assert book.seed is None
    assert book.metrics("total_reward", x="episode")["episode"].to_pylist() == list(range(12))


def test_a_result_of_each_seed_is_still_no_curve(tmp_path: Path) -> None:
    lines = [f"{seed},1000,{seed * 10.0}" for seed in range(5)]
    (tmp_path / "final.csv").write_text("\n".join(["seed,episode,score", *lines, ""]))
    assert len(rollbook.open(tmp_path)) == 0


@pytest.mark.parametrize("between", [",", " ", ", "])
def test_lines_of_two_numbers_are_episode_and_return_where_the_first_counts(between: str, tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("".join(f"{n}{between}{-100.5 + n}\n" for n in range(1, 6)))
    (book,) = rollbook.open(tmp_path)
    found = book.metrics("train/return", x="episode")
    assert found["episode"].to_pylist() == [1, 2, 3, 4, 5]
    assert found["train/return"].to_pylist() == [-99.5, -98.5, -97.5, -96.5, -95.5]


def test_lines_of_two_numbers_that_count_nothing_are_no_scores(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("0.5,1\n0.7,2\n0.1,3\n")
    assert len(rollbook.open(tmp_path)) == 0


def test_exports_of_several_charts_of_wandb_are_one_set_of_runs(tmp_path: Path) -> None:
    for n, (key, values) in enumerate({"return": [1.5, 2.5], "loss": [0.25, 0.5]}.items()):
        wild.table(
            tmp_path / f"wandb_export_2026-01-0{n + 1}.csv",
            {
                "Step": [1, 2 + n],
                **{f"{run} - {key}{end}": values for run in ("ppo_s0", "sac_s1") for end in ("", "__MAX")},
            },
        )
    runs = rollbook.open(tmp_path)
    assert sorted((row["name"], row["algo"], row["seed"]) for row in runs.rows()) == [
        ("ppo_s0", "ppo", 0),
        ("sac_s1", "sac", 1),
    ]
    for book in runs:
        assert book.series("return").mean.tolist() == [1.5, 2.5]
        assert book.series("loss").x.tolist() == [1, 3]


def test_of_a_chart_that_was_exported_twice_the_later_file_counts(tmp_path: Path) -> None:
    for n, values in enumerate(([1.0, 2.0], [1.0, 2.0, 3.0])):
        file = tmp_path / f"wandb_export_{n}.csv"
        wild.table(file, {"Step": [*range(len(values))], "ppo - return": values, f"ppo - other{n}": values})
        os.utime(file, (1.7e9 + n, 1.7e9 + n))
    (book,) = rollbook.open(tmp_path)
    assert book.series("return").mean.tolist() == [1.0, 2.0, 3.0]
    assert {"other0", "other1"} <= {*book.keys()}
