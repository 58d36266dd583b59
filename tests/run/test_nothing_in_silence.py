"""What is refused, renamed or left out is counted, said once per cause and key, and raised under strict=True."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import rollbook
from rollbook.cli.app import app
from rollbook.errors import LoggingFailed, RollbookWarning


def repeat(times: int, act: Callable[[], object]) -> None:
    for _ in range(times):
        act()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Any]:
    opened = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline")
    yield opened
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened.finish()


ODD = {
    "two keys that come to one name": ({"a": {"b": 1.0}, "a/b": 2.0}, "key_twice", "a/b", {"a/b": 2.0}),
    "a number and its text as keys": ({1: 1.0, "1": 2.0}, "key_twice", "1", {"1": 2.0}),
    "a clock logged as a value": ({"epoch": 3, "x": 1.0}, "clock_as_value", "epoch", {"value/epoch": 3, "x": 1.0}),
    "a column of rollbook's own": ({"time": 3.0}, "reserved_key", "time", {"value/time": 3.0}),
    "a lone surrogate in a key": ({"k\ud800": 1.0}, "changed_to_fit", "k\\ud800", {"k\\ud800": 1.0}),
    "a value that is refused": ({"odd": object(), "x": 1.0}, "unloggable", "odd", {"x": 1.0}),
}


@pytest.mark.parametrize("what", ODD)
def test_what_cannot_be_kept_as_it_was_given_is_counted_and_named(run: Any, what: str) -> None:
    values, cause, name, stored = ODD[what]
    with pytest.warns(RollbookWarning) as said:
        repeat(30, lambda: run.log(values))
    assert len(said) == 1
    expected = 1 if cause in ("clock_as_value", "reserved_key") else 30  # a renamed key counts once, a loss each time
    assert run.bill()["drops"][cause] == expected
    assert run.bill()["names"][cause] == {name: expected}
    assert run.book.metrics(list(stored)).select(list(stored)).to_pylist() == [stored] * 30
    run.finish()
    words = str(said[0].message).partition(f" [{cause};")[0]
    often = "once" if expected == 1 else "30 times"
    assert run.book.overview().sentences() == [f"{words} ({cause}, {often})"]  # what the run itself says later


@pytest.mark.parametrize("what", ODD)
def test_strict_raises_for_it(tmp_path: Path, what: str) -> None:
    with (
        rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline", strict=True) as run,
        pytest.raises(LoggingFailed),
    ):
        run.log(ODD[what][0])


def test_what_cost_nothing_is_reported_and_counted_apart_from_what_was_dropped(tmp_path: Path) -> None:
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline", strict=True) as run:
        run.log({"x": 1.0})
        with pytest.warns(RollbookWarning, match="nothing is lost") as said:
            repeat(2, lambda: run.internals.writer.no_descriptor(OSError(24, "Too many open files")))
    assert len(said) == 1
    bill = run.bill()
    assert (bill["drops"], bill["remarks"]) == ({}, {"no_descriptor": 2})
    shown = CliRunner().invoke(app, ["show", "last", "--dir", str(tmp_path)])
    assert "no file descriptor is left for another file of the journal" in shown.stderr
    assert "(no_descriptor, 2 times; nothing was lost)" in shown.stderr


def test_each_key_is_named_once_and_ten_at_most(run: Any) -> None:
    with pytest.warns(RollbookWarning) as said:
        repeat(2, lambda: [run.log({f"odd{n}": object()}) for n in range(30)])
    assert len(said) == 10
    assert "further names" in str(said[-1].message)
    assert len(run.bill()["names"]["unloggable"]) == 30


def test_a_column_of_another_length_is_left_out_by_name_and_the_others_are_kept(run: Any) -> None:
    with pytest.warns(RollbookWarning, match="'length' has 1 values"):
        assert run.record("episodes", {"return": [1.0, 2.0], "length": [1], "seed": np.arange(2), "source": "x"}, n=2)
    run.finish()
    rows = run.book.table("episodes").to_pylist()
    assert [(row["return"], row["seed"], row["source"]) for row in rows] == [(1.0, 0, "x"), (2.0, 1, "x")]
    assert run.bill()["names"]["uneven_columns"] == {"episodes/length": 1}


def _frame(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows)


@pytest.mark.parametrize("form", [list, tuple, iter, _frame], ids=["list", "tuple", "iterator", "frame"])
def test_rows_of_a_table_may_be_given_as_dicts_or_as_a_data_frame(run: Any, form: Any) -> None:
    rows = [{"prompt": f"p{n}", "reward": n / 2, "tokens": [n, n + 1]} for n in range(3)]
    assert run.record("answers", form(rows), gradient_step=4)
    assert run.record("answers", form(rows[:1]), gradient_step=5)
    assert not run.record("answers", form([]), gradient_step=6)
    kept = run.book.table("answers").to_pylist()
    assert [{name: row[name] for name in rows[0]} for row in kept] == [*rows, rows[0]]
    assert [row["gradient_step"] for row in kept] == [4, 4, 4, 5]
    assert not run.bill()["drops"]


def test_what_a_row_lacks_is_empty_and_costs_no_other_cell(run: Any) -> None:
    run.record("answers", [{"prompt": "a"}, {"prompt": "b", "reward": 1.0}])
    kept = run.book.table("answers").to_pylist()
    assert [(row["prompt"], row["reward"]) for row in kept] == [("a", None), ("b", 1.0)]


@pytest.mark.parametrize("wrong", ["text", 3, [1, 2], None], ids=repr)
def test_the_error_of_a_wrong_record_says_what_to_write(run: Any, wrong: Any) -> None:
    with pytest.warns(RollbookWarning, match=r"a list of rows, such as \[\{'return': 1.0\}"):
        assert run.record("answers", wrong) == 0


def test_a_lone_surrogate_in_a_text_is_escaped_and_counted(run: Any) -> None:
    with pytest.warns(RollbookWarning, match="surrogates"):
        run.log_text("words", "a\ud800b")
    assert run.book.table("text")["text"].to_pylist() == ["a\\ud800b"]
    assert run.bill()["drops"]["changed_to_fit"] == 1


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda run: run.log("loss", 3), "log({'loss': 3}, env_step=5)"),
        (lambda run: run.log({"loss": 3}, 5), "env_step=5"),
        (lambda run: run.log(loss=3), "log({'loss': 3}, env_step=5)"),
    ],
    ids=["name and value", "a bare step", "keywords"],
)
def test_the_error_of_a_wrong_call_of_log_says_what_to_write(run: Any, call: Any, instead: str) -> None:
    for _ in range(12):
        run.log({"loss": 3})
    with pytest.raises(TypeError) as raised:
        call(run)
    assert instead in str(raised.value)
    run.log({"loss": 4})
    assert run.book.metrics(["loss"]).num_rows == 13


def test_log_is_documented_on_the_class_and_completion_shows_verbs_alone(run: Any) -> None:
    parameters = inspect.signature(rollbook.Run.log).parameters
    assert {"values", "env_step", "gradient_step", "epoch", "declared"} <= set(parameters)
    assert "Raises:" in (rollbook.Run.log.__doc__ or "")
    assert run.log is not rollbook.Run.log
    rollbook.Run.log(run, {"a": 1.0}, env_step=3)
    assert run.book.metrics(["a"])["env_step"].to_pylist() == [3]
    names = dir(run)
    assert {"log", "record", "save_checkpoint", "finish"} <= set(names)
    assert not {"writer", "about", "store_of", "tokens", "open_scope"} & set(names)


@pytest.mark.parametrize("name", sorted({*rollbook.__all__} & {*dir(rollbook.Run)}))
def test_help_at_a_prompt_says_what_a_verb_does_before_a_run_is_open(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    monkeypatch.setattr("rollbook.run.current.opened", [])
    verb = getattr(rollbook, name)
    assert verb.__doc__ == getattr(rollbook.Run, name).__doc__
    assert "self" not in inspect.signature(verb).parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RollbookWarning)
        assert verb("whatever") is None


def test_what_a_row_costs_is_the_median_of_calls_and_not_the_first_one(run: Any) -> None:
    for i in range(20):
        run.log({"a": 1.0, "b": i})
    assert 0 < run.internals.writer.row_cost_ns() < run.internals.writer.slow_path_ns
