"""Facts stay data until they are printed: no code of the reading side looks into our own sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from syntax import tree as tree_of

ROOT = Path(__file__).parents[2] / "src" / "rollbook"
ROOMS = ("schema", "storage", "book", "runs", "compare", "server", "cli")
SENTENCES = re.compile(
    r"problem|sentence|message|remark|reason|\bwhy\b|\bwords\b|\berr\b|\bsentence|\bsaid\b|\btold\b|\bnote",
    re.IGNORECASE,
)
READS = {"startswith", "endswith", "partition", "rpartition", "split", "find", "removeprefix", "removesuffix"}
PATTERNS = {"search", "match", "fullmatch", "findall", "split"}

ELSEWHERE = {
    "schema/endings.py": "the message of an exception of the training",
    "schema/expressions.py": "the words of DuckDB",
    "server/runs/columns.py": "the words of DuckDB",
    "runs/finding.py": "the message of a user's alert, which names no key",
    "storage/damage.py": "the path is taken out of an error before it is kept, since a run may move",
    "runs/conditions.py": "the words of DuckDB",
    "server/static_copy.py": "a page of HTML",
}
"""Where words are read that are not ours; a line a place."""


def places() -> Iterator[tuple[str, str]]:
    """(file, expression) of each look into something that is called a sentence."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(tree_of(path.read_text("utf-8"))):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                    continue
                of, name = node.func.value, node.func.attr
                if isinstance(of, ast.Name) and of.id == "re":
                    read = node.args[1] if name in PATTERNS and len(node.args) > 1 else None
                else:
                    read = of if name in READS else None
                if read is None or isinstance(read, ast.Constant):
                    continue  # a constant: a list of words
                looked_for = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
                if SENTENCES.search(ast.unparse(read)) or any(map(is_of_a_sentence, looked_for)):
                    yield path.relative_to(ROOT).as_posix(), ast.unparse(node)


def is_of_a_sentence(value: object) -> bool:
    """Whether a text that is looked for is several words, or the end of one and the beginning of another."""
    return (
        isinstance(value, str)
        and re.search(r"[A-Za-z]{2,}[:;.,]? [A-Za-z]|[a-z][:;.] $|^ [A-Za-z]{2,}", value) is not None
    )


def test_no_code_reads_a_sentence_of_ours() -> None:
    found = list(places())
    assert [place for place in found if place[0] not in ELSEWHERE] == []
    assert {path for path, _ in found} == {*ELSEWHERE}, "a place is mended: take it out of the list"
