"""No test fails by chance: what a clock, the machine's speed, luck or the tests before it would decide is not asked."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from syntax import tree as tree_of

TESTS = Path(__file__).resolve().parents[1]
PROGRAMS = {
    "support/tortured.py",
    "support/sealing_forks.py",
    "support/first_calls.py",
    "support/forking.py",
    "support/run_page.py",
}  # run as processes of their own
FILES = {
    str(path.relative_to(TESTS)): path.read_text("utf-8")
    for path in sorted(TESTS.rglob("*.py"))
    if path.parent.name != "samples"
}  # what made them runs in no test
CLOCKS = {"time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter", "time.process_time"}
WAITS = {"wait", "join", "communicate", "acquire", "wait_done"}
PATIENCE = 300.0


def written(node: ast.AST) -> str:
    """A name as it is written: `os.environ.pop`; what is no name is a question mark."""
    if isinstance(node, ast.Attribute):
        return f"{written(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Every call below a node, with its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield written(node.func), node


def found(word: str, rule: Callable[[ast.AST], Iterable[ast.AST]], *but: str) -> list[str]:
    """Files and lines in which `rule` finds something; only files that have the word are looked at."""
    trees = [(name, tree_of(text)) for name, text in FILES.items() if name not in but and re.search(word, text)]
    return [f"{name}:{getattr(node, 'lineno', 0)}" for name, tree in trees for node in rule(tree)]


def test_waiting_is_for_an_event_and_by_one_function() -> None:
    def sleeps(tree: ast.AST) -> list[ast.AST]:
        return [call for name, call in calls(tree) if name in ("time.sleep", "sleep")]

    assert found("sleep", sleeps, "support/waiting.py", *PROGRAMS) == [], "waiting.until waits for an event"


def test_no_wait_ends_before_a_slow_machine_is_through() -> None:
    """A limit is a guard against hangs, or it is below a second because nothing is to come."""

    def short(tree: ast.AST) -> Iterator[ast.AST]:
        for name, call in calls(tree):
            limits = [word.value for word in call.keywords if word.arg == "timeout"]
            if name.rpartition(".")[2] in WAITS:
                limits += call.args
            numbers = [limit.value for limit in limits if isinstance(limit, ast.Constant)]
            if any(isinstance(number, (int, float)) and 1 <= number < PATIENCE for number in numbers):
                yield call

    assert found(r"\.wait|\.join\(\d|timeout=|wait_done|acquire", short, *PROGRAMS) == [], (
        "waiting.PATIENCE is what a wait may last"
    )


def test_no_test_asserts_how_long_something_takes() -> None:
    """Nor that a clock says about what something else said: later than before, and before what comes later, is fine."""

    def is_duration(node: ast.AST) -> bool:
        is_difference = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
        is_about = isinstance(node, ast.Call) and written(node.func).endswith("approx")
        return (is_difference or is_about) and any(name in CLOCKS for name, _ in calls(node))

    def durations(tree: ast.AST) -> Iterator[ast.AST]:
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            nodes = list(ast.walk(function))
            named = [node for node in nodes if isinstance(node, ast.Assign) and is_duration(node.value)]
            taken = {written(target) for node in named for target in node.targets} - {"?"}
            for node in nodes:
                if isinstance(node, ast.Assert):
                    parts = list(ast.walk(node.test))
                    if any(is_duration(part) or written(part) in taken for part in parts):
                        yield node

    assert found(r"time\.", durations, "support/waiting.py") == []


def test_random_numbers_begin_from_a_seed() -> None:
    def unseeded(tree: ast.AST) -> list[ast.AST]:
        made = ("default_rng", "Random", "RandomState", "Generator")
        return [
            call
            for name, call in calls(tree)
            if name.startswith(("random.", "np.random.")) and name.rpartition(".")[2] in made
            if not call.args and not call.keywords
        ]

    assert found(r"random", unseeded) == []


def test_what_all_tests_share_is_changed_by_monkeypatch_alone() -> None:
    """The environment, the current folder and the path of modules are given back when a test is over."""

    def changes(tree: ast.AST) -> Iterator[ast.AST]:
        for node in ast.walk(tree):
            targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else []
            if any(isinstance(t, ast.Subscript) and written(t.value) == "os.environ" for t in targets):
                yield node
        changing = {"os.chdir", "os.putenv", "os.umask", "os.environ.update", "os.environ.pop", "time.tzset"}
        yield from (call for name, call in calls(tree) if name in changing)

    frameworks = [name for name in FILES if name.startswith("frameworks/")]  # one program each
    assert found(r"os\.(chdir|putenv|umask|environ)|tzset", changes, "conftest.py", *PROGRAMS, *frameworks) == []


def test_properties_are_asked_the_same_in_every_run_of_the_same_code() -> None:
    hypothesis = pytest.importorskip("hypothesis")
    for profile in ("rollbook", "long"):
        assert hypothesis.settings.get_profile(profile).derandomize
        assert hypothesis.settings.get_profile(profile).deadline is None

    def overrides(tree: ast.AST) -> list[ast.AST]:
        return [
            call
            for name, call in calls(tree)
            if name in ("settings", "hypothesis.settings", "seed", "hypothesis.seed")
            if name.endswith("seed") or "derandomize" in {word.arg for word in call.keywords}
        ]

    assert found("hypothesis", overrides) == []


def test_the_same_examples_are_asked_whatever_the_tests_before_have_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hypothesis = pytest.importorskip("hypothesis")

    def drawn() -> list[int]:
        numbers: list[int] = []

        @hypothesis.settings(max_examples=300)
        @hypothesis.given(hypothesis.strategies.integers())
        def draw(number: int) -> None:
            numbers.append(number)

        draw()
        return numbers

    before = drawn()
    (tmp_path / "many_numbers.py").write_text(f"{[7**power for power in range(2, 300)]}\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("many_numbers")
    assert drawn() == before
    del sys.modules["many_numbers"]
