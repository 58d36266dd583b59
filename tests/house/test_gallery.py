"""The scripts of the gallery run, and record what they say."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import rollbook
from sealing_forks import python_path
from syntax import tree as tree_of

ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted((ROOT / "examples" / "gallery").glob("*.py"))
GALLERY = runpy.run_path(str(ROOT / "scripts" / "gallery.py"))
EXPECTED = {
    "seeds": 10,
    "sweep": 18,
    "killed": 1,
    "environment_data": 4,
    "grpo": 1,
    "video": 2,
    "fault": 5,
    "lightzero": 2,
    "other_tools": 20,
}


def test_each_study_has_a_view_and_a_number_of_runs() -> None:
    assert {path.stem for path in STUDIES} == set(EXPECTED) == set(GALLERY["VIEWS"])


def test_make_gallery_installs_what_its_studies_import() -> None:
    """Beside the standard library, rollbook with the extras `full` and `gym`, and what those need.

    A study in GROUPS has an environment of its own.
    """
    found = re.search(r"^gallery:.*\n(\t.*install.*)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    installed = {word.split("-")[0] for word in found[1].split()}
    imported = {
        (node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0]
        for study in STUDIES
        if study.stem not in GALLERY["GROUPS"]
        for node in ast.walk(tree_of(study.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported - sys.stdlib_module_names - {"rollbook", "numpy", "gymnasium"} <= installed


@pytest.mark.long
@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.stem)
def test_a_study_records_its_runs(study: Path, tmp_path: Path) -> None:
    if study.stem == "other_tools":
        pytest.importorskip("wandb")
        pytest.importorskip("tensorboard")
        pytest.importorskip("mlflow")
    if study.stem == "lightzero":
        pytest.importorskip("lzero")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROLLBOOK")}
    environment |= {"PYTHONPATH": python_path(ROOT / "src"), "GALLERY_STEPS": "4000"}
    done = subprocess.run([sys.executable, study], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    runs = rollbook.open(tmp_path / ("study" if study.stem == "other_tools" else "runs"))
    assert len(runs) == EXPECTED[study.stem]
    assert {book.status for book in runs} <= {"finished", "crashed"}
