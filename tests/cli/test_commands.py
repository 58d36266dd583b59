"""The command line as a user meets it: what is printed, what programs get, and what the exit status says."""

from __future__ import annotations

import csv
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow.parquet
import pytest
from click import Context
from click.testing import CliRunner, Result

import rollbook
from rollbook.cli.app import app
from waiting import PATIENCE


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs and a killed one; one key drives terminals."""
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ROLLBOOK_RUN_ID", raising=False)
        for seed, status in enumerate(("finished", "killed", "finished")):
            run = rollbook.init("p", "n", seed=seed, dir=root, sinks=[], keeper="import", config={"lr": 0.1 * seed})
            for i in range(30):
                run.log({"train/return": float(i), "evil\x1b[2J": 1.0}, env_step=i)
                with run.timer("update"):
                    pass
            run.note("a note")
            run.finish(status)
    return root


@pytest.fixture
def rb(runs: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Calls the command line on these runs."""
    monkeypatch.setenv("ROLLBOOK_DIR", str(runs))

    def call(*arguments: str) -> Result:
        done = CliRunner().invoke(app, list(arguments))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    return call


def test_a_group_in_ls_has_its_centre_interval_and_the_runs_behind_them_or_a_column_of_each(
    rb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path))
    for seed in range(6):
        with rollbook.init("p", "n", seed=seed, dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
            run.log({"other" if seed == 5 else "train/return": 1.0 + seed}, env_step=0)
    line = ["ls", "--by", "name", "-m", "train/return"]
    assert re.search(r" 3 \(\S+ to \S+\), 5 of 6 runs$", rb(*line).stdout.rstrip())
    assert re.search(r" 3 \(\S+ to \S+\)$", rb(*line, "--where", "seed < 5").stdout.rstrip())
    (row,) = csv.DictReader(rb(*line, "--csv").stdout.splitlines())
    (key,) = (name.removesuffix(" low") for name in row if name.endswith(" low"))
    assert float(row[f"{key} low"]) < float(row[key]) == 3.0 < float(row[f"{key} high"])
    assert row[f"{key} n"] == "5"


def test_ls_lists_the_newest_first_and_gives_programs_all_of_it(rb: Any) -> None:
    done = rb("ls")
    lines = done.stdout.splitlines()
    assert (done.exit_code, len(lines)) == (0, 4)
    rows = json.loads(rb("ls", "--json").stdout)
    assert [(row["seed"], row["status"]) for row in rows] == [(2, "finished"), (1, "killed"), (0, "finished")]
    assert [row["seed"] for row in json.loads(rb("ls", "--where", "config.lr > 0.05", "--json").stdout)] == [2, 1]
    assert len(rb("ls", "--csv").stdout.splitlines()) == 4
    assert rb("ls", "--where", "no condition").exit_code == 1
    assert rb("ls", "nowhere").exit_code == 1


@pytest.mark.parametrize("name", ["last", "p/n", "n"])
def test_show_says_what_a_run_holds(rb: Any, name: str) -> None:
    done = rb("show", name)
    assert done.exit_code == 0
    assert "train/return" in done.stdout
    assert "\x1b[2J" not in done.stdout
    page = json.loads(rb("show", name, "--json").stdout)
    assert (page["seed"], page["tables"]["timings"], page["keys"]["train/return"]["value"]) == (2, 30, 29.0)


def test_a_run_that_is_not_there_is_an_error_that_names_those_that_are(rb: Any) -> None:
    for command in (["show"], ["tail"], ["sql", "select 1"], ["export"], ["watch"], ["verify"], ["repair"], ["seal"]):
        done = rb(command[0], "nothing", *command[1:])
        assert done.exit_code == 1, command
        assert "p/n" in done.stderr, command
        assert done.stdout == "", command


def test_tail_prints_the_last_rows(rb: Any) -> None:
    done = rb("tail", "last", "-n", "3", "--keys", "^train/", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["values"] for row in rows] == [{"train/return": float(i)} for i in (27, 28, 29)]
    assert rows[-1]["clocks"] == {"env_step": 29}
    assert rb("tail", "last", "-n", "0").stdout == ""
    assert len(rb("tail", "last").stdout.splitlines()) == 10
    assert "\x1b[2J" not in rb("tail", "last").stdout
    assert rb("tail", "last", "--keys", "(").exit_code == 2


def test_tail_f_goes_on_until_the_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    run = rollbook.init("p", "live", dir=tmp_path, sinks=[], keeper="import")
    for i in range(5):
        run.log({"x": float(i)}, env_step=i)
    arguments = [sys.executable, "-m", "rollbook", "tail", "-f", "last", "-n", "2", "--keys", "^x$", "--json"]
    with subprocess.Popen([*arguments, "--dir", str(tmp_path)], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        first = [json.loads(program.stdout.readline()) for _ in range(2)]
        run.log({"x": 5.0}, env_step=5)
        then = json.loads(program.stdout.readline())
        run.finish()
        rest = program.stdout.read()
        assert program.wait(PATIENCE) == 0
    assert [row["values"]["x"] for row in (*first, then)] == [3.0, 4.0, 5.0]
    assert rest == ""


def test_ctrl_c_ends_the_page_without_a_word(runs: Path) -> None:
    arguments = [sys.executable, "-m", "rollbook", "ui", str(runs), "--port", "0", "--no-open"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        # In a fresh checkout it first says that it builds the page.
        address = next(line for line in iter(program.stderr.readline, "") if "http://" in line).split()[-1]
        assert program.stderr.readline() == "Ctrl-C ends it.\n"
        urlopen(address + "api/hello", timeout=PATIENCE).close()  # also where the page cannot be built
        program.send_signal(signal.SIGINT)
        assert program.stderr.read().strip() == ""
        assert program.wait(PATIENCE) == 0


def test_ctrl_c_ends_a_command_with_status_130_and_no_traceback() -> None:
    class Interrupted(type(app)):  # type: ignore[misc]
        def resolve_command(self, _ctx: Any, _args: Any) -> Any:
            raise KeyboardInterrupt

    done = CliRunner().invoke(Interrupted("rollbook"), ["ls"])
    assert (done.exit_code, done.stdout, done.stderr) == (130, "", "\n")


def test_sql_answers_in_every_form_and_says_what_duckdb_says(rb: Any) -> None:
    query = 'select count(*) as n, avg("train/return") as m from metrics where "train/return" is not null'
    assert json.loads(rb("sql", "last", query, "--json").stdout) == [{"n": 30, "m": 14.5}]
    assert rb("sql", "last", query, "--csv").stdout.splitlines()[1:] == ["30,14.5"]
    assert rb("sql", "last", query).stdout.split() == ["n", "m", "30", "14.5"]
    done = rb("sql", "last", "selec")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "syntax error" in done.stderr


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "arrow"])
def test_export_writes_a_file_of_the_kind_its_ending_says(rb: Any, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"m.{ending}"
    done = rb("export", "last", "--keys", "train/return", "-x", "env_step", "-o", str(out))
    assert (done.exit_code, done.stdout) == (0, "")
    if ending == "parquet":
        assert pyarrow.parquet.read_table(out)["train/return"].to_pylist() == [float(i) for i in range(30)]
    if ending == "jsonl":
        assert [json.loads(line)["train/return"] for line in out.read_text().splitlines()] == list(range(30))
    if ending == "csv":
        assert len(out.read_text().splitlines()) == 31


def test_export_errors_are_reported_and_not_traced(rb: Any, tmp_path: Path) -> None:
    for arguments in (["-o", "m.xyz"], ["--table", "nope"], ["--keys", "nope"], ["-o", str(tmp_path / "no" / "m.csv")]):
        done = rb("export", "last", *arguments)
        assert done.exit_code == 1, arguments
        assert done.stderr.startswith("Error: "), arguments


def test_an_export_along_a_clock_counts_the_rows_that_have_no_place_on_it(rb: Any, tmp_path: Path) -> None:
    with rollbook.init("p", "late", dir=tmp_path, sinks=[], keeper="import") as run:
        for step in (None, None, 5, 6):
            run.log({"train/return": 1.0}, **({} if step is None else {"env_step": step}))
    words = ("export", str(run.folder), "--keys", "train/return", "--to", "csv")
    assert "left out: 2 rows" in rb(*words, "-x", "env_step").stderr
    assert "left out" not in rb(*words).stderr


def test_sql_lists_the_tables_that_it_can_be_asked_about(rb: Any) -> None:
    names = [row["name"] for row in json.loads(rb("sql", "last", "show tables;", "--json").stdout)]
    assert {"metrics", "episodes", "timings"} <= set(names)
    for name in names:
        assert rb("sql", "last", f"select count(*) from {name}").exit_code == 0, name


def test_what_a_sink_raises_while_rows_are_forwarded_is_an_error_line(rb: Any) -> None:
    done = rb("forward", "last", "--to", "memory", "-O", 'filters=[["gate", {"when": "builtins:len"}]]')
    assert (done.exit_code, done.stderr.startswith("Error: memory did not take the rows: TypeError: ")) == (1, True)
    assert "the same command sends all rows" in done.stderr


def test_verify_says_with_its_status_whether_something_is_wrong(rb: Any, runs: Path, tmp_path: Path) -> None:
    assert (rb("verify", "last").exit_code, json.loads(rb("verify", "last", "--json").stdout)) == (0, {"last": []})
    (part,) = Path(shutil.copytree(max((runs / "p").iterdir()), tmp_path / "n-12345678")).glob("data/text/*.parquet")
    part.write_bytes(part.read_bytes()[:-20])
    folder = str(tmp_path / "n-12345678")
    assert rb("verify", folder).exit_code == 1
    (problem,) = json.loads(rb("verify", folder, "--json").stdout)[folder]
    assert part.name in problem
    assert "set aside" in rb("repair", folder).stdout
    assert json.loads(rb("repair", folder, "--json").stdout) == {folder: ["nothing had to be done"]}
    assert rb("verify", folder).exit_code == 1, "what is lost stays said"


def test_seal_forward_and_watch_end_by_themselves_for_a_run_that_has(rb: Any, runs: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(max((runs / "p").iterdir()), tmp_path / "n-12345678"))
    assert rb("seal", str(folder)).exit_code == 0
    assert rb("forward", str(folder), "--to", "csv", "-O", "per_scope=false").exit_code == 0
    assert (folder / "log" / "csv" / "metrics.csv").is_file()
    assert rb("forward", str(folder), "--to", "nope").exit_code == 1
    assert rb("forward", str(folder), "--to", "csv", "-O", "per_scope").exit_code == 2
    done = rb("watch", str(folder))
    assert done.exit_code == 0
    assert "train/return" in done.stdout
    assert "\x1b[2J" not in done.stdout


def test_what_is_no_command_is_an_error_that_lists_them(rb: Any) -> None:
    done = rb("shwo")
    assert (done.exit_code, "Did you mean 'show'" in done.stderr) == (2, True)
    assert rb("ls", "--bogus").exit_code == 2
    assert rb("--version").stdout == f"rollbook {rollbook.__version__}\n"


def test_every_command_takes_the_folder_of_runs_as_dir(rb: Any, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in set(app.list_commands(Context(app))) - {
        "catalogue",
        "shapes",
        "label",
    }:  # about a remote; about no runs; about paths
        assert "--dir" in rb(name, "--help").stdout, name
    monkeypatch.delenv("ROLLBOOK_DIR")
    listed = [json.loads(rb("ls", *where, "--json").stdout) for where in (("--dir", str(runs)), (str(runs),))]
    assert len(listed[0]) == 3
    assert listed[0] == listed[1]
    assert rb("show", "last", "--dir", str(runs)).exit_code == 0


def test_where_no_run_is_the_command_line_says_so_in_its_own_words(
    rb: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        for command in (["show", "last"], ["tail", "last"], ["sql", "last", "select 1"], ["ls"]):
            done = rb(*command, "--dir", str(place))
            assert done.exit_code == (0 if command == ["ls"] and place.is_dir() else 1)
            assert "rollbook demo" in done.stderr
            assert "open(" not in done.stderr
            assert "one(" not in done.stderr


def test_where_all_runs_are_in_the_bin_the_command_line_says_that(rb: Any, tmp_path: Path) -> None:
    rollbook.init("p", "ppo", dir=tmp_path, sinks=[], keeper="import", rules=()).finish()
    rollbook.open(tmp_path).remove(dry_run=False)
    for command in (["show", "last"], ["ls"]):
        for folder in (tmp_path, tmp_path / "p"):
            said = rb(*command, "--dir", str(folder)).stderr
            assert f"1 run is in the bin. List them with: rollbook rm --bin --dir {tmp_path}" in said
            assert "rollbook demo" not in said
    assert "p/ppo" in rb("rm", "--bin", "--dir", str(tmp_path)).stdout


def test_counts_below_zero_are_refused(rb: Any) -> None:
    for arguments in (
        ["tail", "last", "-n", "-5"],
        ["ls", "--limit", "-1"],
        ["sql", "last", "select 1", "--limit", "0"],
    ):
        assert rb(*arguments).exit_code == 2, arguments


def test_a_table_that_a_run_lacks_is_named_with_those_it_has(rb: Any) -> None:
    done = rb("sql", "last", "select * from metric")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "Did you mean 'metrics'?" in done.stderr
    assert "pg_" not in done.stderr


def test_a_file_in_a_folder_that_is_not_there_is_named_as_it_was_asked_for(rb: Any, tmp_path: Path) -> None:
    out = str(tmp_path / "no" / "m.csv")
    done = rb("export", "last", "-o", out)
    assert out in done.stderr
    assert ".tmp" not in done.stderr


def test_ls_as_csv_has_a_column_for_each_setting(rb: Any) -> None:
    rows = list(csv.DictReader(rb("ls", "--csv").stdout.splitlines()))
    assert [float(row["config.lr"]) for row in rows] == [0.2, 0.1, 0.0]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_show_fits_the_terminal_and_says_where_it_cuts(
    tmp_path: Path, rb: Any, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    config = {f"a_setting_with_a_name_{i}": "word " * i for i in range(30)}
    with rollbook.init(
        "p", "wide", dir=tmp_path, sinks=[], keeper="import", config={**config, "net": {"deep": 3}}
    ) as run:
        run.log({"train/return": 1.0}, env_step=1)
        for stage in ("collect", "update"):
            with run.timer(stage):
                pass
        run.save_checkpoint({"w": 1}, score=2.0)
        run.save_checkpoint({"w": 2}, score=1.0)
    monkeypatch.setenv("COLUMNS", str(columns))
    done = rb("show", "last", "--dir", str(tmp_path))
    lines = done.stdout.splitlines()
    settings = [line for line in lines if "a_setting" in line]
    assert settings
    assert max(map(len, settings)) <= columns
    assert any("…" in line for line in lines)
    assert "settings more: --all shows them" in done.stdout
    assert "saved    2 kept" in done.stdout
    assert "best ckpt/" in done.stdout
    assert "last ckpt/" in done.stdout
    assert "collect " in done.stdout
    whole = rb("show", "last", "--dir", str(tmp_path), "--all").stdout
    assert all(f"{name}" in whole and value.strip() in whole for name, value in config.items())
    assert "net.deep" in whole
    assert "…" not in whole
    told = json.loads(rb("show", "last", "--dir", str(tmp_path), "--json").stdout)
    assert sorted(told["seconds"]) == ["collect", "update"]
    assert told["checkpoints"]["best"]["score"] == 2.0


def test_one_lucky_episode_is_listed_beside_the_last_one(tmp_path: Path) -> None:
    for name, returns in {"spike": [20.0, 480.0, 21.0], "steady": [100.0, 200.0, 300.0]}.items():
        with rollbook.init("p", name, dir=tmp_path, sinks=[], keeper="import") as run:
            for step, value in enumerate(returns):
                run.log({"charts/episodic_return": value}, env_step=step)
    listed = CliRunner().invoke(app, ["ls", "--dir", str(tmp_path)]).output.splitlines()
    assert re.search(r"\blast +best\b", listed[0])
    assert [bool(re.search(pair, "\n".join(listed))) for pair in (r" 21 +480 ", r" 300 +300 ")] == [True, True]
