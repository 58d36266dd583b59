"""The rules over runs that are there already say what they would have said while the run trained."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from rollbook import health
from rollbook.cli.app import app
from rollbook.errors import UnknownOption
from rollbook.protocols import Alert, Row
from rollbook.runs.checking import check
from rollbook.schema.columns import columns_of
from rollbook.testing import some_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy run, one whose learning rate is gone, and a folder of another tool with a loss that is lost."""
    folder = tmp_path_factory.mktemp("runs")
    rates: dict[str, Callable[[int], float]] = {"well": lambda i: 1e-3, "ill": lambda i: 1e-3 if i < 30 else 0.0}
    for name, rate in rates.items():
        with rollbook.init("checked", name, dir=folder / "own", sinks=[], rules=(), keeper="inline") as run:
            for i in range(90):
                run.log({"train/learning_rate": rate(i), "train/loss": math.sin(i)}, env_step=i)
    (folder / "foreign").mkdir()
    lines = [json.dumps({"step": i, "loss": 1.0 / (i + 1) if i < 40 else math.nan}) for i in range(60)]
    (folder / "foreign" / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def told(*words: str) -> tuple[int, list[dict[str, Any]]]:
    result = CliRunner().invoke(app, ["check", *words, "--json"])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, json.loads(result.stdout)


def test_a_run_with_a_fault_makes_the_check_fail_and_a_healthy_one_does_not(folder: Path) -> None:
    code, rows = told("ill", "--dir", str(folder / "own"))
    assert code == 1
    assert {(row["rule"], row["level"], row["clocks"]["env_step"]) for row in rows} == {("learning_rate", "warn", 49)}
    assert told("ill", "--dir", str(folder / "own"), "--fail-on", "fail")[0] == 0
    assert told("well", "--dir", str(folder / "own")) == (0, [])


def test_a_folder_of_another_tool_is_checked_as_it_is(folder: Path) -> None:
    code, rows = told(str(folder / "foreign"))
    assert code == 1
    assert {row["rule"] for row in rows} == {"non_finite"}


def test_what_is_found_afterwards_is_what_would_have_been_reported(folder: Path) -> None:
    book = next(iter(rollbook.open(folder / "own").filter(lambda row: row["name"] == "ill")))
    rule = health.make("learning_rate")
    rule.open(some_run(folder))
    rows = [Row(i, {"env_step": i}, {"train/learning_rate": 1e-3 if i < 30 else 0.0}) for i in range(90)]
    live = [alert for row in rows for alert in rule.look(columns_of([row]), row.time)]
    assert [(alert.message, alert.clocks) for alert in check(book)] == [(a.message, a.clocks) for a in live]


class CountsRows:
    """A project's own rule that names the columns which it needs of other tables."""

    name, tables, cells = "counts_rows", frozenset({"metrics", "rollouts"}), frozenset({"reward"})

    def open(self, run: Any) -> None: ...

    def look(self, columns: Any, now: float) -> Any:
        last = columns.last()
        yield Alert(self.name, "note", f"{len(columns)} rows of {list(columns.keys())}", {**last})


def test_a_rule_that_needs_few_columns_of_other_tables_gets_all_keys_of_metrics(folder: Path) -> None:
    book = next(iter(rollbook.open(folder / "own").filter(lambda row: row["name"] == "well")))
    (alert,) = check(book, [{"name": f"{__name__}:CountsRows"}])
    assert alert.message == "90 rows of ['train/learning_rate', 'train/loss']"


def test_one_rule_is_left_out_by_a_minus(folder: Path) -> None:
    assert told("ill", "--dir", str(folder / "own"), "--rules=-learning_rate") == (0, [])
    assert [spec["name"] for spec in health.check(["-kl"])] == [name for name in health.DEFAULT if name != "kl"]
    assert [spec["name"] for spec in health.check(["kl", "entropy", "-kl"])] == ["entropy"]
    with pytest.raises(UnknownOption):
        health.check(["-no_such_rule"])
