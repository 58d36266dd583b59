"""What a person meets at a prompt: names, completion, help, and what is said to a wrong keyword."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.protocols import Rule, RunInternals, Sink, Stateful, Truncatable
from syntax import tree as tree_of

HEADINGS = ("Args", "Attributes", "Raises", "Returns", "Yields")
STABLE = re.findall(
    r"^\| `(rollbook[\w.]*)` \| (.*) \|$",
    (Path(__file__).resolve().parents[2] / "docs" / "stability.md").read_text("utf-8"),
    re.MULTILINE,
)
"""Modules, and which of their names are stable."""

CALLED_BY_US = (Sink, Truncatable, Stateful, Rule)
"""Protocols: who has all methods of one need not describe their arguments again."""

HOST_S = re.compile(r"\bArguments as in\b")
"""In the docstring of a function, a method or its class: the arguments are those that another tool documents."""

HANDED_OUT = re.compile(r"\b(Made by|create it)\b")
"""In the docstring of a class: users get its objects, and never call its constructor."""


def public_modules() -> Iterator[Any]:
    """Every module of rollbook that is not private and can be imported with what is installed here."""
    for info in pkgutil.walk_packages(rollbook.__path__, "rollbook."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            try:
                yield importlib.import_module(info.name)
            except ImportError:
                continue


def functions_of(value: Any) -> Iterator[tuple[str, Any]]:
    """A class or function, and the public methods of a class (also those of our base classes), by name."""
    yield value.__qualname__, value
    bases = ours(value)
    for name in dict.fromkeys(name for base in bases for name in vars(base)):
        member = next(vars(base)[name] for base in bases if name in vars(base))
        plain = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if (not name.startswith("_") or name == "__call__") and inspect.isfunction(plain):
            yield f"{value.__qualname__}.{name}", plain


def ours(value: Any) -> list[Any]:
    """A class and its base classes, less those of other packages."""
    return [base for base in getattr(value, "__mro__", ()) if base.__module__.startswith("rollbook")]


def documented(text: str, *sections: str) -> set[str]:
    """The names in these sections of a docstring."""
    found = re.findall(rf"^(?:{'|'.join(sections)}):\n((?: +\S.*\n?)+)", text, re.MULTILINE)
    entries = re.findall(r"^  (\*{0,2}\w+(?:, \*{0,2}\w+)*):", "".join(found), re.MULTILINE)
    return {name for entry in entries for name in re.findall(r"\w+", entry)}


def promised(module: str, names: str) -> Iterator[Any]:
    """The classes and functions of a row of docs/stability.md, as far as their frameworks are installed here."""
    try:
        loaded = importlib.import_module(module)
    except ImportError:
        return
    chosen = re.findall(r"`(\w+)`", names) if names.startswith("`") else loaded.__all__
    for name in [*chosen, *(["open"] if loaded is rollbook else [])]:
        try:
            value = getattr(loaded, name)
        except ImportError:
            continue
        if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("rollbook"):
            yield value


def words_on(value: Any, name: str, function: Any) -> list[str]:
    """The docstrings that describe a function, or a method or the constructor of the class `value`."""
    if function is value:
        classes = [inspect.getdoc(base) or "" for base in ours(value)]
        return [*classes, inspect.getdoc(value.__init__ if classes else value) or ""]
    verb = name.rpartition(".")[2]
    roles = [role for role in CALLED_BY_US if all(hasattr(value, each) for each in vars(role) if each[0] != "_")]
    return [inspect.getdoc(vars(base)[verb]) or "" for base in [*ours(value), *roles] if verb in vars(base)]


def is_called(value: Any, name: str, function: Any) -> bool:
    """Whether users call this: no internal method, no constructor of an object that is handed out."""
    if function is not value:
        internal = {each for base in ours(value) for each in getattr(sys.modules[base.__module__], "_INTERNAL", ())}
        return name.rpartition(".")[2] not in internal
    if inspect.isfunction(value):
        return True
    if issubclass(value, Enum) or getattr(value, "_is_protocol", False):
        return False
    makes = next((base for base in value.__mro__ if {"__init__", "__new__"} & vars(base).keys()), object)
    return makes.__module__.startswith("rollbook") and not any(map(HANDED_OUT.search, words_on(value, name, function)))


def undocumented(value: Any, name: str, function: Any) -> set[str]:
    """The arguments that no docstring describes."""
    words = words_on(value, name, function)
    classes = [inspect.getdoc(base) or "" for base in ours(value)]
    is_described = function is value and documented("\n\n".join(words), "Args")
    if not is_described and any(map(HOST_S.search, [*words, *classes])):
        return set()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    taken = {each.name for each in inspect.signature(function).parameters.values() if each.kind in kinds}
    known = documented("\n\n".join([*words, *classes]), "Args", "Attributes")
    known |= {quoted for text in classes for quoted in re.findall(r"`(\w+)`", text)}
    return {each for each in taken if each not in ("self", "cls") and not each.startswith("_")} - known


@functools.cache
def raised_in(path: str) -> dict[int, set[str]]:
    """The first line of each function of a file -> the errors that the function itself raises."""
    found: dict[int, set[str]] = {}
    for function in ast.walk(tree_of(Path(path).read_text("utf-8"))):
        if isinstance(function, ast.FunctionDef):
            nodes: list[ast.AST] = list(function.body)
            own: set[str] = set()
            found[min([function.lineno, *(each.lineno for each in function.decorator_list)])] = own
            while nodes:
                node = nodes.pop()
                if (
                    isinstance(node, ast.Raise)
                    and isinstance(node.exc, ast.Call)
                    and isinstance(node.exc.func, ast.Name)
                ):
                    own.add(node.exc.func.id)
                if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
                    nodes += ast.iter_child_nodes(node)
    return found


def unsaid(value: Any, name: str, function: Any) -> set[str]:
    """The errors that a function raises and no docstring names."""
    code = getattr(inspect.unwrap(function.__init__ if inspect.isclass(function) else function), "__code__", None)
    if code is None or not code.co_filename.endswith(".py"):
        return set()
    errors = raised_in(code.co_filename).get(code.co_firstlineno, set())
    text = "\n".join(words_on(value, name, function))
    return {error for error in errors if error[0].isupper() and error not in text}


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


@pytest.mark.parametrize(("module", "names"), STABLE, ids=[module for module, _ in STABLE])
def test_what_is_stable_describes_its_arguments_and_no_others_and_the_errors_that_it_raises(
    module: str, names: str
) -> None:
    wrong = []
    for value in promised(module, names):
        for name, function in functions_of(value):
            if not is_called(value, name, function):
                continue
            wrong += [f"{name}: {argument} has no line" for argument in sorted(undocumented(value, name, function))]
            wrong += [f"{name} raises {error}, unsaid" for error in sorted(unsaid(value, name, function))]
            parameters = inspect.signature(function).parameters
            own = documented(inspect.getdoc(function) or "", "Args")
            if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters.values()):
                wrong += [f"{name} has no argument {argument}" for argument in sorted(own - set(parameters))]
    assert not wrong, "\n".join(wrong)


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


def test_a_run_shows_the_verbs_of_users_and_one_entrance_for_adapters(tmp_path: Path) -> None:
    names = {name for name in dir(rollbook.Run) if not name.startswith("_")}
    assert len(names) <= MOST_NAMES, sorted(names)
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
