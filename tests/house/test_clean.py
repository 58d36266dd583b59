"""The tree holds nothing that only makes sense on one machine."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from syntax import tree as tree_of

ROOT = Path(__file__).resolve().parents[2]
# Written in pieces, so that this file does not match itself.
MACHINE = re.compile("|".join([r"(?<![\w.~/-])/" + r"(work|tmp|root|home|Users)/\w", r"file://" + r"/\w"]))
TEXT = {".py", ".md", ".toml", ".txt", ".json", ".cfg", ".yml", ".yaml", ".sh", ".ts", ".js", ".html", ".css", ""}


def tracked() -> list[Path]:
    """Every file that git knows."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name]


def test_no_tracked_file_names_a_path_of_some_machine() -> None:
    found = []
    for path in tracked():
        if path.suffix in TEXT and path.is_file():
            for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
                if MACHINE.search(line):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    assert not found, "\n".join(found)


def test_no_run_or_large_file_is_tracked() -> None:
    large = [
        f"{p.relative_to(ROOT)}: {p.stat().st_size:,} bytes"
        for p in tracked()
        if p.is_file() and p.stat().st_size > 2**20
    ]
    assert not large, "\n".join(large)
    assert not [p for p in tracked() if p.name == "run.json" and "fixtures" not in p.parts]


def test_no_source_unpickles_or_evaluates() -> None:
    """Found by what is called, so that words in docstrings do not count."""
    banned = {"eval", "exec", "pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"}
    found = []
    for path in sorted((ROOT / "src" / "rollbook").rglob("*.py")):
        code = path.read_text("utf-8")
        for node in ast.walk(tree_of(code)) if any(word in code for word in banned) else ():
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name.partition(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [(node.module or "").partition(".")[0]]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names = [node.func.id]
            found += [f"{path.relative_to(ROOT)}:{node.lineno}: {n}" for n in names if n in banned]  # type: ignore[attr-defined]
    assert not found, "\n".join(found)
