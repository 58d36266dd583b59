"""What a person meets at a prompt: names, completion, and what is said to a wrong keyword."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.protocols import RunInternals


def test_completion_shows_what_people_use_and_nothing_internal(tmp_path: Path) -> None:
    with rollbook.init("house", "face", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.log({"a": 1.0})
    runs = rollbook.open(tmp_path)
    internal = {"context", "files", "pieces", "index", "writer", "about", "era", "store_of", "write_about"}
    for value, wanted in ((run, {"log", "seed"}), (run.book, {"metrics", "path"}), (runs, {"one", "table"})):
        offered = {name for name in dir(value) if not name.startswith("_")}
        assert wanted <= offered
        assert not internal & offered


def test_a_run_shows_the_verbs_of_users_and_one_entrance_for_adapters(tmp_path: Path) -> None:
    names = {name for name in dir(rollbook.Run) if not name.startswith("_")}
    with rollbook.init("house", "names", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.scope("train").log({"a": 1.0})
    own = {"config", "id", "name", "project", "run", "status", "summary"}
    assert {name for name in dir(run) if not name.startswith("_")} == names | own
    assert {name for name in dir(run.scope("train")) if not name.startswith("_")} < names | own
    promised = {name for name in vars(RunInternals) if not name.startswith("_")}
    assert promised == {name for name in dir(run.internals) if not name.startswith("_")}


def test_episodes_are_recorded_from_the_top_of_the_package_and_gymnasium_waits_until_then() -> None:
    program = (
        "import sys, rollbook; assert 'RecordEpisodes' in dir(rollbook) and 'record_envs' in dir(rollbook);"
        "assert 'gymnasium' not in sys.modules and 'numpy' not in sys.modules;"
        "from rollbook import RecordEpisodes, record_envs;"
        "assert RecordEpisodes.__module__.startswith('rollbook.capture')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_wrong_keyword_is_answered_with_the_right_one(tmp_path: Path) -> None:
    with rollbook.init("house", "keywords", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.log({"a": 1.0}, env_step=1)
    book, runs = run.book, rollbook.open(tmp_path)
    calls: list[tuple[Callable[..., Any], str, str]] = [
        (lambda **named: rollbook.init("house", **named), "cofig", "config"),
        (lambda **named: rollbook.attach("nobody", **named), "folder_dir", "dir"),
        (book.metrics, "key", "keys"),
        (lambda **named: book.series("a", **named), "point", "points"),
        (book.episodes, "were", "where"),
        (runs.table, "metric", "metrics"),
    ]
    for function, wrong, right in calls:
        with pytest.raises(
            TypeError, match=rf"no argument '{wrong}'\.( Did you mean '{right}'\?)? Available: .*{right}"
        ):
            function(**{wrong: 1})
    assert str(inspect.signature(rollbook.init)).startswith("(project: ")


def test_an_error_lists_each_choice_once() -> None:
    """A key and its canonical name are often the same word."""
    from rollbook.errors import did_you_mean

    assert did_you_mean("lost", ["loss", "kl", "loss"]) == " Did you mean 'loss'? Available: kl, loss."


def test_an_error_fits_on_a_screen_however_many_choices_there_are_and_the_most_alike_are_among_them() -> None:
    from rollbook.errors import did_you_mean

    keys = [f"activations/layer_{i:03}/mean" for i in range(3_000)] + ["train/return", "train/returns_std"]
    said = did_you_mean("trian/return", keys)
    assert said.startswith(" Did you mean 'train/return'? Available: train/return, train/returns_std, activations/")
    assert said.endswith(" and 2,990 more.")
    assert len(said) < 500
    assert len(did_you_mean("x" * 10_000, keys)) < 500
