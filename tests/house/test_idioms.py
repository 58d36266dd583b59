"""One way to say a thing: what stood in several spellings all over the house and has one now."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import rollbook
from syntax import tree as tree_of

SRC = Path(rollbook.__file__).parent
FILES = sorted(SRC.rglob("*.py"))
DOCS = Path(__file__).parents[2] / "docs"


def places(pattern: str, *but: str) -> list[str]:
    """Files and lines of the package that hold the pattern."""
    compiled = re.compile(pattern)
    return [
        f"{file.relative_to(SRC)}:{number}"
        for file in FILES
        if str(file.relative_to(SRC)) not in but
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if compiled.search(line)
    ]


def test_what_items_are_compared_with_is_made_once_and_not_for_each_of_them() -> None:
    """`[key for key in keys if key in set(asked)]` is quadratic: one read of 10,000 keys took minutes."""
    loops = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    assert [
        f"{file.relative_to(SRC)}:{test.lineno}"
        for file in FILES
        if re.search(r"\bin (set|list|sorted|dict)\(", source := file.read_text(encoding="utf-8"))
        for loop in ast.walk(tree_of(source))
        if isinstance(loop, loops)
        for condition in (condition for part in loop.generators for condition in part.ifs)
        for test in ast.walk(condition)
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.In, ast.NotIn))
        if ast.unparse(test.comparators[0]).startswith(("set(", "list(", "sorted(", "dict("))
    ] == []


@pytest.mark.parametrize(
    "package", ["", ".sinks", ".sinks.filters", ".capture", ".adapters.mrl", ".adapters.lightzero"]
)
def test_a_face_lists_its_names_and_answers_for_no_other(package: str) -> None:
    face = import_module(f"rollbook{package}")
    listed = set(getattr(face, "__all__", dir(face)))
    assert set(dir(face)) == listed | ({"open"} if not package else set())
    assert not listed & set(dir(builtins)), "import * would replace what Python calls so"
    assert all(hasattr(face, name) for name in dir(face))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = face.nonsense


def test_a_misspelled_name_is_answered_with_the_right_one() -> None:
    import subprocess

    done = subprocess.run([sys.executable, "-c", "import rollbook; rollbook.atach"], capture_output=True, text=True)
    assert "Did you mean: 'attach'?" in done.stderr


def test_what_is_rollbooks_own_code_is_the_whole_package_wherever_the_module_that_asks_stands() -> None:
    from rollbook.system.guard import PACKAGE

    assert Path(PACKAGE) == SRC


def test_no_room_hides_a_verb_of_the_face() -> None:
    """`import rollbook.store` would make the module of the verb `rollbook.store`."""
    verbs = set(rollbook.__all__)
    assert {path.stem for path in SRC.iterdir()} & verbs == set()


def test_what_runs_in_the_training_process_lets_out_what_somebody_else_raised_meanwhile() -> None:
    swallowed = []
    for file in FILES:
        if file.relative_to(SRC).parts[0] not in ("adapters", "capture", "journal", "run"):
            continue
        source = file.read_text(encoding="utf-8")
        for node in ast.walk(tree_of(source)):
            if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Name) and node.type.id == "Exception":
                words = ast.get_source_segment(source, node) or ""
                if not re.search(r"\bis_foreign\(|\braise\b|failed\(", words):  # `failed` asks, see the tests of each
                    swallowed.append(f"{file.relative_to(SRC)}:{node.lineno}")
    assert swallowed == []


def test_what_runs_in_the_training_process_asks_for_files_by_what_lets_out_the_exceptions_of_others() -> None:
    """`os.path.exists` and its like take what a signal handler raises in their midst for an answer of the system; a
    pattern for names is compiled at its first use, by code that catches a ValueError."""
    swallowing = (
        r"os\.path\.(l?exists|isdir|isfile|islink|ismount|realpath|samefile)\(|\.(exists|is_dir|is_file|is_symlink)\(\)"
    )
    making = r"os\.makedirs\(|exist_ok=|missing_ok=|\.r?glob\("
    rooms = ("capture/checkpoints", "capture/episodes", "capture/media", "capture/samples", "journal", "keeper", "run")
    found = [
        place
        for place in places(f"{swallowing}|{making}", "system/files.py")
        if place.startswith((*(f"{room}/" for room in rooms), "schema/", "values/", "system/"))
    ]
    assert [place for place in found if not _asks_an_entry(place)] == []


def _asks_an_entry(place: str) -> bool:
    """Whether the line asks what `os.scandir` knows already, or a method of ours."""
    return bool(re.search(r"\b(entry|e|project|forwarder)\.(is_dir|is_file)\(\)", _line_at(place)))


FOLDERS_OF_THEIR_OWN = {
    "capture/checkpoints/folder.py": "a model that was trained for days is kept, even if its run was removed",
    "keeper/shared_keeper_files.py": "the keepers' own folder, outside of all runs",
    "remote/local.py": "the place that runs are shipped to",
    "remote/merging.py": "a temporary folder",
    "remote/pull.py": "a new folder, into which a run is fetched",
    "remote/views.py": "the cache of what was read from a place",
    "run/local_part.py": "a part of a run on another host is a new folder",
    "run/opening.py": "a new run",
}


def test_what_writes_into_a_run_never_makes_the_folder_of_a_run_that_was_removed() -> None:
    rooms = ("capture", "journal", "keeper", "remote", "run", "sinks", "storage")
    makes = r"\bmakedirs\(|mkdir\(.*parents=|\bmake_folders\((?!.*inside=)"
    found = {
        place.partition(":")[0] for place in places(makes) if place.startswith(tuple(f"{room}/" for room in rooms))
    }
    assert sorted(found) == sorted(FOLDERS_OF_THEIR_OWN)


def test_numbers_of_errors_have_names() -> None:
    """EDQUOT is 122 on Linux and 69 on macOS."""
    raised = r"(OSError|BlockingIOError|PermissionError|FileNotFoundError)\(\d"
    assert places(rf"errno (==|!=|in|not in) \(?\d|{raised}") == []
    numbers = re.compile(r"\(\d[\d, ]*\)$")
    assert [place for place in places(r"^_?NO_[A-Z_]+ = ") if numbers.search(_line_at(place))] == []


def _line_at(place: str) -> str:
    name, _, number = place.rpartition(":")
    return (SRC / name).read_text(encoding="utf-8").splitlines()[int(number) - 1]


def test_no_weak_reference_has_a_callback_as_python_swallows_what_is_raised_in_it() -> None:
    assert [
        f"{file.relative_to(SRC)}:{call.lineno}"
        for file in FILES
        if re.search(r"\b(ref|proxy|WeakMethod)\(", source := file.read_text(encoding="utf-8"))
        for call in ast.walk(tree_of(source))
        if isinstance(call, ast.Call)
        and ast.unparse(call.func)
        in ("ref", "weakref.ref", "proxy", "weakref.proxy", "WeakMethod", "weakref.WeakMethod")
        and len(call.args) + len(call.keywords) > 1
    ] == []
