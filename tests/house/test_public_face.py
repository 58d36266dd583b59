"""What a person meets at a prompt: names, completion, help, and what is said to a wrong keyword."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.protocols import RunInternals
from rollbook.run.internals import _FORMER

HEADINGS = ("Args", "Attributes", "Raises", "Returns", "Yields")
FACE = [
    getattr(rollbook, name) for name in ("Book", "RecordEpisodes", "Run", "RunSet", "Scope", "attach", "init", "open")
]


def public_modules() -> Iterator[Any]:
    """Every module of rollbook that is not private and can be imported with what is installed here."""
    for info in pkgutil.walk_packages(rollbook.__path__, "rollbook."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            try:
                yield importlib.import_module(info.name)
            except ImportError:
                continue


def functions_of(value: Any) -> Iterator[tuple[str, Any]]:
    """A class or function, and the public methods of a class, by name."""
    yield value.__qualname__, value
    for name, member in vars(value).items() if inspect.isclass(value) else ():
        plain = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(plain):
            yield f"{value.__qualname__}.{name}", plain


def documented(text: str) -> list[str]:
    """The names in the section Args."""
    section = re.search(r"^Args:\n((?: +\S.*\n?)+)", text, re.MULTILINE)
    entries = re.findall(r"^  (\*{0,2}\w+(?:, \*{0,2}\w+)*):", section[1], re.MULTILINE) if section else []
    return [name for entry in entries for name in re.findall(r"\w+", entry)]


def faults(text: str) -> Iterator[str]:
    """What is wrong with the form of a docstring."""
    inside = False
    for line in text.splitlines():
        word = line.strip().partition(":")[0]
        if re.search(rf"[.`)]\s+({'|'.join(HEADINGS)}):(\s|$)", line):
            yield f"a heading inside a line: {line}"
        if re.match("(Args|Attributes):\\s+\\S", line):
            yield f"words behind a heading: {line}"
        if not line.startswith(" "):
            inside = line in ("Args:", "Attributes:")
        elif inside and re.match(r"  \S", line) and not re.match(r"  \*{0,2}\w[\w*, ]*(\(\w+\))?:", line):
            yield f"words that belong to no argument: {line}"
        if word in HEADINGS and line.strip() == f"{word}:" and line.startswith(" "):
            yield f"a heading that stands too far in: {line}"


def test_the_docstrings_of_public_things_have_their_headings_and_arguments_on_lines_of_their_own() -> None:
    wrong, seen = [], set()
    for module in public_modules():
        for name in getattr(module, "__all__", ()):
            try:
                value = getattr(module, name)
            except ImportError:  # a lazy name whose framework is not installed here
                continue
            if not (inspect.isclass(value) or inspect.isfunction(value)) or value in seen:
                continue
            seen.add(value)
            if not value.__module__.startswith("rollbook"):
                continue
            for qualified, function in functions_of(value):
                wrong += [
                    f"{value.__module__}: {qualified}: {fault}" for fault in faults(inspect.getdoc(function) or "")
                ]
    assert len(seen) > 300
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("value", FACE, ids=lambda value: value.__name__)
def test_who_documents_arguments_documents_all_of_them_and_no_others(value: Any) -> None:
    for name, function in functions_of(value):
        names = documented(inspect.getdoc(function) or "")
        parameters = inspect.signature(function).parameters
        kinds = {parameter.kind for parameter in parameters.values()}
        single = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        taken = [each.name for each in parameters.values() if each.kind in single and each.name not in ("self", "cls")]
        if names:
            assert set(taken) <= set(names), name
            assert set(names) <= set(parameters) or inspect.Parameter.VAR_KEYWORD in kinds, name


def test_completion_shows_what_people_use_and_nothing_internal(tmp_path: Path) -> None:
    with rollbook.init("house", "face", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.log({"a": 1.0})
    runs = rollbook.open(tmp_path)
    internal = {"context", "files", "pieces", "index", "writer", "about", "era", "store_of", "write_about"}
    for value, wanted in ((run, {"log", "seed"}), (run.book, {"metrics", "path"}), (runs, {"one", "table"})):
        offered = {name for name in dir(value) if not name.startswith("_")}
        assert wanted <= offered
        assert not internal & offered


MOST_NAMES = 36


def test_a_run_shows_the_verbs_of_users_and_one_door_for_adapters(tmp_path: Path) -> None:
    names = {name for name in dir(rollbook.Run) if not name.startswith("_")}
    assert len(names) <= MOST_NAMES, sorted(names)
    with rollbook.init("house", "names", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.scope("train").log({"a": 1.0})
    own = {"config", "id", "name", "project", "run", "status", "summary"}
    assert {name for name in dir(run) if not name.startswith("_")} == names | own
    assert {name for name in dir(run.scope("train")) if not name.startswith("_")} < names | own
    promised = {name for name in vars(RunInternals) if not name.startswith("_")}
    assert promised == {name for name in dir(run.internals) if not name.startswith("_")}


def test_a_name_that_left_the_run_answers_for_one_release_and_says_what_to_use(tmp_path: Path) -> None:
    with rollbook.init("house", "former", dir=tmp_path, sinks=[], keeper="inline") as run:
        for name in _FORMER:
            assert not hasattr(type(run), name)
            with pytest.warns(DeprecationWarning, match=rf"run\.{name} .* use ") as heard:
                getattr(run, name)
            assert heard[0].filename == __file__
    with pytest.raises(AttributeError, match="'Run' object has no attribute 'nonsense'"):
        _ = run.nonsense


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
