"""Each idea has one home: what only one module may do is found nowhere else (docs/internals.md has the table)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rollbook
from rollbook.ground.run_files import RunFile
from syntax import tree as tree_of

SRC = Path(rollbook.__file__).parent
FILES = {str(file.relative_to(SRC)): file for file in sorted(SRC.rglob("*.py"))}


def trees(*words: str) -> Iterator[tuple[str, ast.AST]]:
    """(file, syntax) of the files in which one of these words occurs; parsing all of them takes seconds."""
    for name, file in FILES.items():
        text = file.read_text("utf-8")
        if any(word in text.lower() for word in words):
            yield name, tree_of(text)


WITHOUT_WHOLE_FILES = {
    "adapters/_table.py": "appends to the old content",
    "adapters/lightzero/learning.py": "moves a finished folder",
    "adapters/spinningup/saving.py": "replaces a folder",
    "book/repair/doctor.py": "sets a damaged file aside",
    "book/repair/joining.py": "moves a finished file",
    "capture/checkpoints/folder.py": "links or moves finished files and folders",
    "formats/datasets/rllib.py": "closes a file that grew under another name",
    "ground/addresses.py": "must not replace: links, if nothing is there",
    "ground/files.py": "the home",
    "ground/spool/encode.py": "sets a damaged file aside",
    "ground/spool/picture_files.py": "tries several endings",
    "journal/writer.py": "runs inside signal handlers",
    "keeper/shared_keeper_files.py": "keeps the file when the keeper is not woken",
    "remote/local.py": "compares before it replaces",
    "remote/pull.py": "a download that continues has a name that lasts",
    "remote/views.py": "maps of parts of files, and downloads",
    "run/origin/config.py": "keeps the former file",
    "storage/column_order.py": "keeps the rights of the old file",
    "storage/salvage.py": "marks what is done",
    "storage/sealing/one_pass.py": "moves a finished file",
}
"""Modules that rename a file by themselves, and why `files.replacing` does not fit them."""


def calls(tree: ast.AST, *names: str) -> bool:
    """Whether it calls one of these functions of a module: `os.replace`."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func) in names
        for node in ast.walk(tree)
    )


def texts(tree: ast.AST) -> list[str | bytes]:
    """Its literals."""
    return [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    ]


def numbers(tree: ast.AST) -> set[int]:
    """Its integers."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is int}


def calls_with_text(tree: ast.AST, name: str, text: str) -> bool:
    """Whether it calls a method of that name with this text among the arguments."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
        and any(isinstance(each, ast.Constant) and each.value == text for each in node.args)
        for node in ast.walk(tree)
    )


def test_a_file_is_replaced_by_files_replacing() -> None:
    assert sorted(name for name, tree in trees("os.replace") if calls(tree, "os.replace")) == sorted(
        WITHOUT_WHOLE_FILES
    )


NAMES_OF_FILES = [
    *("run.json", "heartbeat", "abandoned.parquet"),
    *(name for word, name in vars(RunFile).items() if word.isupper() and "." in name),
]


@pytest.mark.parametrize("name", NAMES_OF_FILES)
def test_the_name_of_a_file_of_a_run_folder_stands_in_run_files_alone(name: str) -> None:
    found = [file for file, tree in trees(name) if name in texts(tree) and not file.startswith("adapters/")]
    assert found == ["ground/run_files.py"]


def test_the_folders_of_the_keeper_and_the_journal_are_found_by_run_files_alone() -> None:
    joined = re.compile(r"""["']data["'](, | / )["'](keeper|journal)["']""")
    found = [name for name, file in FILES.items() if joined.search(file.read_text("utf-8"))]
    assert found == ["ground/run_files.py"]


def test_a_png_begins_in_one_module() -> None:
    assert [
        file for file, tree in trees("png") if any(b"PNG\r\n" in t for t in texts(tree) if isinstance(t, bytes))
    ] == ["ground/spool/picture_files.py"]


def test_the_history_of_attempts_is_walked_by_the_manifest_alone() -> None:
    """Others ask `EffectiveRows` or `chain`: none makes a cut by itself."""
    made = {
        file
        for file, tree in trees("cut")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Cut"
    }
    assert made == {"ground/manifest.py"}


def test_a_summary_is_followed_and_kept_by_the_manifest_alone() -> None:
    """Its marks are applied by `follow_summary`; of the further writers' files `run` only asks when they changed."""
    applied = {file for file, tree in trees("gone") if calls_with_text(tree, "get", "gone")}
    kept = {file for file, tree in trees("runfile") if "RunFile.SUMMARY" in ast.unparse(tree)}
    assert applied == {"ground/manifest.py"}
    assert kept == {"ground/manifest.py", "run/summary.py"}


def test_an_event_file_is_written_by_one_module_and_taken_apart_by_another() -> None:
    masks = [file for file, tree in trees("a282ead8") if 0xA282EAD8 in numbers(tree)]
    sums = [
        file
        for file, tree in trees("masked_crc32c")
        if any(isinstance(node, ast.Attribute) and node.attr == "masked_crc32c" for node in ast.walk(tree))
    ]
    assert masks == ["formats/importers/_events.py"]
    assert sums == ["sinks/event_files.py"]


def test_numbers_about_groups_are_made_by_compare_and_stats() -> None:
    of_groups = re.compile(r"^from rollbook\.stats", re.MULTILINE)
    rooms = {name.split("/")[0] for name, file in FILES.items() if of_groups.search(file.read_text("utf-8"))}
    assert rooms <= {"compare", "stats"}


WORDS = {
    *("said", "told", "foretold", "hear", "hears", "gossip"),
    *("hall", "shelf", "household", "knock", "hands", "desk"),
    *("life", "lives", "anew", "lying", "nobody", "whoever"),
}
"""The field has better words (reported, context, cache, attempt, again): no identifier has these."""

PUBLIC = {
    "cli/places.py": {"anew"},
    "formats/datasets/minari.py": {"told"},
    "remote/push.py": {"anew"},
}
"""The options `rollbook push --anew` and `to_minari(told=)` are public."""


def words_of(tree: ast.AST) -> set[str]:
    """The words of all its identifiers, in lower case."""
    names: set[str] = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "asname", *(() if isinstance(node, ast.keyword) else ("arg",))):
            name = getattr(node, field, None)
            names |= {name} if isinstance(name, str) else set()
    return {part.lower() for name in names for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def test_identifiers_use_the_words_of_the_field() -> None:
    found = {name: sorted(words_of(tree) & WORDS) for name, tree in trees(*WORDS) if words_of(tree) & WORDS}
    assert found == {name: sorted(words) for name, words in PUBLIC.items()}


def test_names_of_tests_use_the_words_of_the_field() -> None:
    tests = Path(__file__).parents[1]
    named = {
        name: file.name
        for file in sorted(tests.rglob("test_*.py"))
        for name in re.findall(r"^ *(?:async )?def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    old = WORDS - {"hands"} | {"bell", "door", "doors"}  # a filter hands its rows on
    assert {name: file for name, file in named.items() if set(name.split("_")) & old} == {}


def test_identifiers_of_tests_use_the_words_of_the_field() -> None:
    """`told` and `said` (an alert, a line of output) are left; `test_names_of_tests_…` has them for names of tests."""
    tests, old = Path(__file__).parents[1], WORDS - {"said", "told", "hands"}
    files = {file: file.read_text(encoding="utf-8") for file in sorted(tests.rglob("*.py"))}
    whole = re.compile(rf"(?<![a-z])(?:{'|'.join([*old, *map(str.title, old)])})(?![a-z])")
    likely = {file: text for file, text in files.items() if whole.search(text)}
    found = {file.name: words_of(tree_of(text)) & old for file, text in likely.items() if words_of(tree_of(text)) & old}
    assert found == {}


def test_each_file_on_a_scalars_way_is_there() -> None:
    """docs/internals.md names them, from `log` to the screen, and those that a new endpoint or field touches."""
    root = Path(__file__).parents[2]
    page = (root / "docs" / "internals.md").read_text(encoding="utf-8")
    way = page.partition("### One scalar's way")[2].partition("\n## ")[0]
    named = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|tsx?))`", way))
    homes = (root / "src" / "rollbook", root / "dashboard" / "src", root)
    assert len(named) > 20
    assert {name for name in named if not any((home / name).exists() for home in homes)} == set()
