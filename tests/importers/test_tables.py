"""Tables as programs, spreadsheets and browsers write them: each cell is read as what it says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.formats import importers
from rollbook.formats.importers import _tables, csv
from rollbook.formats.importers._tables import records_of, value_of
from rollbook.protocols import Row

LONG_AGO = (1.6e9, 1.6e9)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def rows_of(path: Path, **options: Any) -> tuple[list[Row], dict[str, int]]:
    (run,) = importers.make("csv", **options).runs(path)
    return list(run.rows()), run.left_out


def write(path: Path, content: str | bytes, *, when: tuple[float, float] | None = LONG_AGO) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if when is not None:
        os.utime(path, when)
    return path


PLAIN = "step,mean_reward,loss\n0,1.5,1.0\n100,2.25,0.5\n200,-3.0,0.25\n"
DIALECTS = {
    "commas": PLAIN,
    "tabs": PLAIN.replace(",", "\t"),
    "semicolons": PLAIN.replace(",", ";"),
    "semicolons and decimal commas": PLAIN.replace(",", ";").replace(".", ","),
    "bars": PLAIN.replace(",", "|"),
    "blanks": PLAIN.replace(",", " "),
    "columns of blanks": PLAIN.replace(",", "   "),
    "a byte order mark": PLAIN.encode("utf-8-sig"),
    "UTF-16": PLAIN.encode("utf-16"),
    "lines of Windows": PLAIN.replace("\n", "\r\n"),
    "lines of the old Mac": PLAIN.replace("\n", "\r"),
    "comments before it": "# made by train.py\n# lr=0.1, gamma=0.9\n" + PLAIN,
    "numpy's header": "# " + PLAIN.replace(",", " "),
    "an empty line before it": "\n\n" + PLAIN,
    "a separator at the end": PLAIN.replace("\n", ",\n"),
    "quotes": '"step","mean_reward","loss"\n"0","1.5","1.0"\n"100","2.25","0.5"\n"200","-3.0","0.25"\n',
    "quotes and no end": '"step","mean_reward","loss"\n"0","1.5","1.0"\n"100","2.25","0.5"\n"200","-3.0","0.25"',
    "the row's number of pandas": ",step,mean_reward,loss\n0,0,1.5,1.0\n1,100,2.25,0.5\n2,200,-3.0,0.25\n",
    "its header again": PLAIN.replace("200,", "step,mean_reward,loss\n200,"),
    "printed tensors": PLAIN.replace("0.25", "tensor(0.25)").replace("1.5", "np.float64(1.5)").replace("1.0", "[1.0]"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_table_is_the_same_however_it_is_written(dialect: str, tmp_path: Path) -> None:
    rows, left_out = rows_of(write(tmp_path / "log.csv", DIALECTS[dialect]))
    assert left_out == {}
    found = [(row.clocks["step"], row.values["mean_reward"], row.values["loss"]) for row in rows]
    assert found == [(0, 1.5, 1.0), (100, 2.25, 0.5), (200, -3.0, 0.25)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12), ("1_2", "1_2"), ("1_2.5", "1_2.5"), ("1,000", 1000), ("-1,234,567.5", -1234567.5), ("1,2", "1,2"),
        ("None", None), ("null", None), ("NA", None), ("n/a", None), ("true", True), ("FALSE", False),
        ("inf", float("inf")),
        ("tensor(0.5)", 0.5), ("tensor(-2e-3, device='cuda:0', grad_fn=<MeanBackward0>)", -0.002), ("[[7]]", 7),
        ("np.float32(1.5)", 1.5), ("array([3.])", 3.0), ("[1 2]", "[1 2]"), ("v1", "v1"), ("ppo", "ppo"),
    ],
)  # fmt: skip
def test_a_cell_is_what_it_says(text: str, value: object) -> None:
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


def test_a_last_line_without_its_end_counts_if_it_is_whole_and_is_spoken_of_if_not(tmp_path: Path) -> None:
    whole = write(tmp_path / "run-ppo-tag-loss.csv", "Wall time,Step,Value\n1700000000,0,0.500\n1700000001,1,0.250")
    assert [row.clocks["step"] for row in rows_of(whole)[0]] == [0, 1]
    uncertain = write(tmp_path / "uncertain.csv", "step,loss\n0,0.5\n100,0.25\n200,12")
    rows, left_out = rows_of(uncertain)
    assert [row.clocks["step"] for row in rows] == [0, 100]
    assert list(left_out) == ["last lines of uncertain.csv without their end, whose last number may be cut"]
    assert "without their end" in " ".join(map(str, rollbook.open(tmp_path).problems))


def test_a_line_that_is_being_written_is_read_once_its_writer_is_gone(tmp_path: Path) -> None:
    file = write(tmp_path / "study" / "log.csv", "step,loss\n0,0.5\n100,0.2", when=None)
    (book,) = rollbook.open(tmp_path / "study")
    stat = file.stat()
    assert book.metrics("loss").num_rows == 1
    assert not rollbook.open(tmp_path / "study").problems
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns - 3600 * 10**9))
    (book,) = rollbook.open(tmp_path / "study")
    assert book.metrics("loss").num_rows == 2


def test_columns_that_come_later_are_read_under_their_own_header(tmp_path: Path) -> None:
    rows, left_out = rows_of(write(tmp_path / "log.csv", "step,loss\n0,1\n100,2\nstep,loss,kl\n200,3,4\n"))
    assert left_out == {}
    assert [dict(row.values) for row in rows] == [{"loss": 1}, {"loss": 2}, {"loss": 3, "kl": 4}]


def test_equal_names_of_columns_are_numbered_as_pandas_does(tmp_path: Path) -> None:
    rows, _ = rows_of(write(tmp_path / "log.csv", "step,loss,loss,Loss\n0,1,2,3\n1,4,5,6\n"))
    assert [dict(row.values) for row in rows] == [
        {"loss": 1, "loss.1": 2, "Loss": 3},
        {"loss": 4, "loss.1": 5, "Loss": 6},
    ]


@pytest.mark.parametrize(
    "stamp", ["1700000000", "1700000000000", "1700000000000000", "2023-11-14T22:13:20Z", "2023-11-14 22:13:20"]
)
def test_times_in_any_unit_are_times(stamp: str, tmp_path: Path) -> None:
    rows, _ = rows_of(write(tmp_path / "log.csv", f"timestamp,step,loss\n{stamp},0,1\n{stamp},1,2\n"))
    assert [row.time for row in rows] == [1.7e9, 1.7e9]


def test_of_a_table_with_a_row_for_each_metric_each_metric_is_a_key(tmp_path: Path) -> None:
    lines = [
        f"{exp},{seed},{metric},{t},{t + seed}"
        for exp in ("sac", "ppo")
        for seed in (1, 2)
        for metric in ("return", "length")
        for t in (0, 100)
    ]
    write(tmp_path / "all.csv", "\n".join(["exp_name,seed,metric,env_step,value", *lines, ""]))
    runs = rollbook.open(tmp_path)
    assert sorted((row["algo"], row["seed"]) for row in runs.rows()) == [("ppo", 1), ("ppo", 2), ("sac", 1), ("sac", 2)]
    for book in runs:
        for key in ("return", "length"):
            found = book.metrics(key, x="env_step")
            assert (found["env_step"].to_pylist(), found[key].to_pylist()) == ([0, 100], [book.seed, 100 + book.seed])


@pytest.mark.parametrize("between", ["", "episode,return\n"])
def test_trainings_that_were_appended_to_one_table_are_runs_of_their_own(between: str, tmp_path: Path) -> None:
    one, two = ("".join(f"{n},{base + n}\n" for n in range(1, 5)) for base in (10, 20))
    write(tmp_path / "log.csv", f"episode,return\n{one}{between}{two}")
    write(tmp_path / "other.csv", "step,loss\n0,1\n100,2\n50,3\n150,4\n")  # gone back to a checkpoint
    write(tmp_path / "steps.csv", "step,reward\n" + "0,1\n1,1\n2,1\n" * 3)  # episodes, step by step
    found = {book.name: book.metrics(attempts="all") for book in rollbook.open(tmp_path)}
    assert {name: rows.num_rows for name, rows in found.items()} == {"log": 4, "log-2": 4, "other": 4, "steps": 9}
    assert found["log"]["return"].to_pylist() == [11, 12, 13, 14]
    assert found["log-2"]["return"].to_pylist() == [21, 22, 23, 24]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_counter_that_stands_still_is_where_a_training_shall_end_and_no_clock(ending: str, tmp_path: Path) -> None:
    """As in the trainer_log.jsonl of LLaMA-Factory."""
    rows = [{"current_steps": 10 * n, "total_steps": 400, "epoch": n, "loss": 1 / n} for n in range(1, 5)]
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    text = "\n".join(lines if ending == "csv" else map(json.dumps, rows)) + "\n"
    write(tmp_path / f"trainer_log.{ending}", text)
    (book,) = rollbook.open(tmp_path)
    found = book.metrics()
    assert found["gradient_step"].to_pylist() == [10, 20, 30, 40]
    assert "env_step" not in found.column_names


def test_steps_with_a_fraction_are_cut_where_none_become_equal(tmp_path: Path) -> None:
    """Averages over environments count so: no row may be missing from the curve."""
    rows, _ = rows_of(write(tmp_path / "log.csv", "env_step,loss\n0.0,1\n1666666.6666666667,2\n3333333.3333333335,3\n"))
    assert [row.clocks for row in rows] == [{"env_step": 0}, {"env_step": 1666666}, {"env_step": 3333333}]
    rows, _ = rows_of(write(tmp_path / "half.csv", "epoch,loss\n0.25,1\n0.5,2\n0.75,3\n"))
    assert [dict(row.clocks) for row in rows] == [{}, {}, {}]


def test_a_counter_that_holds_names_is_no_axis(tmp_path: Path) -> None:
    write(tmp_path / "table.csv", ",PPO,SAC\nHopper-v4,2262.50 ± 1196.81,1428.55 ± 62.40\nAnt-v4,1.0 ± 0.1,2.0 ± 0.1\n")
    write(tmp_path / "games.csv", "game,score\nAlien,812.5\nPong,19.0\n")
    runs = rollbook.open(tmp_path)
    assert len(runs) == 0
    assert "2 files" in " ".join(map(str, runs.problems))


def test_a_monitor_file_that_a_second_program_went_on_with_keeps_the_order_of_its_lines(tmp_path: Path) -> None:
    head = '#{{"t_start": {}, "env_id": "Hopper-v4"}}\nr,l,t\n'
    again = head.format(1.6e9) + "1.0,10,1.0\n2.0,20,2.0\n"
    for name, more in (("headers", head.format(1.6001e9)), ("lines", "")):
        write(tmp_path / name / "monitor.csv", again + more + "3.0,30,1.0\n4.0,40,2.0\n")
    for book in rollbook.open(tmp_path):
        assert book.metrics("train/return", x="env_step")["train/return"].to_pylist() == [1.0, 2.0, 3.0, 4.0]
    assert not rollbook.open(tmp_path).problems


def test_of_wandbs_export_a_run_has_only_rows_in_which_it_has_a_value(tmp_path: Path) -> None:
    write(tmp_path / "wandb_export.csv", '"Step","a - ret","b - ret"\n"0","1.5",""\n"100","","2.5"')
    found = {book.name: book.metrics().to_pylist() for book in rollbook.open(tmp_path)}
    assert {name.rpartition("-")[2]: [(row["step"], row["ret"]) for row in rows] for name, rows in found.items()} == {
        "a": [(0, 1.5)],
        "b": [(100, 2.5)],
    }


def test_the_work_for_a_table_grows_with_its_rows_and_not_with_its_runs_times_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def counted(*args: Any) -> Iterator[tuple[list[str], list[str]]]:
        for record in records_of(*args):
            seen.append(None)
            yield record

    def lines_read(seeds: int) -> int:
        lines = [f"{seed},{t},{t}" for seed in range(seeds) for t in range(50)]
        file = write(tmp_path / str(seeds) / "all.csv", "\n".join(["seed,step,loss", *lines, ""]))
        seen.clear()
        assert [len(list(run.rows())) for run in importers.make("csv").runs(file)] == [50] * seeds
        return len(seen)

    monkeypatch.setattr(_tables, "records_of", counted)
    monkeypatch.setattr(csv, "records_of", counted)
    assert lines_read(40) < 20 * lines_read(4)
