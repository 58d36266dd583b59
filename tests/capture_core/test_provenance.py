"""Where a run came from."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from rollbook.run.origin import provenance
from rollbook.run.origin.provenance import command_line
from waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("real_git")
collect = functools.partial(provenance.collect, git_seconds=PATIENCE)
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "trunk")
    (folder / "train.py").write_text("a\nb\nc\n")
    (folder / "with space.py").write_text("x\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@needs_git
def test_a_clean_checkout_is_named_by_commit_and_branch(repository: Path) -> None:
    facts = collect(repository)["git"]
    assert facts["commit"] == git(repository, "rev-parse", "HEAD")
    assert facts["branch"] == "trunk"
    assert facts["dirty"] is False
    assert "remote" not in facts


@needs_git
def test_changes_are_counted_and_untracked_files_are_not(repository: Path) -> None:
    (repository / "train.py").write_text("a\nB\nc\nd\n")
    (repository / "with space.py").write_text("")
    (repository / "notes.txt").write_text("untracked")
    facts = collect(repository)["git"]
    assert facts["dirty"] is True
    assert sorted(facts["changed"]) == ["train.py", "with space.py"]
    assert (facts["files_changed"], facts["insertions"], facts["deletions"]) == (2, 2, 2)


@needs_git
def test_the_repository_is_not_touched_and_its_programs_do_not_run(repository: Path, tmp_path: Path) -> None:
    flag = tmp_path / "ran"
    script = tmp_path / "monitor.sh"
    script.write_text(f"#!/bin/sh\ntouch '{flag}'\n")
    script.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(script))
    git(repository, "config", "diff.external", str(script))
    git(repository, "config", "diff.python.textconv", str(script))
    (repository / ".gitattributes").write_text("*.py diff=python\n")
    flag.unlink(missing_ok=True)
    (repository / "train.py").write_text("changed\n")
    before = {path: path.stat().st_mtime_ns for path in (repository / ".git").rglob("*")}
    assert collect(repository)["git"]["dirty"] is True
    assert {path: path.stat().st_mtime_ns for path in (repository / ".git").rglob("*")} == before
    assert not flag.exists()


@needs_git
def test_a_login_in_the_remotes_address_is_left_out(repository: Path) -> None:
    git(repository, "remote", "add", "origin", "https://me:hush@example.org/team/code.git")
    assert collect(repository)["git"]["remote"] == "https://***@example.org/team/code.git"


@needs_git
def test_a_repository_without_a_commit_and_a_folder_without_a_repository_are_fine(tmp_path: Path) -> None:
    assert collect(tmp_path)["git"] is None
    git(tmp_path, "init", "-q", "-b", "trunk")
    assert collect(tmp_path)["git"]["commit"] is None


def test_without_git_or_folder_the_rest_is_still_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = collect(tmp_path / "gone")
    assert found["git"] is None
    assert found["python"] == sys.version.split()[0]
    assert found["cpu"]["cores"] == os.cpu_count()


def test_a_program_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    slow = tmp_path / "git"
    slow.write_text(f"#!{sys.executable}\nimport time; time.sleep(60)\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert collect(tmp_path, git_seconds=0.05)["git"] is None


def test_the_result_is_plain_json_and_holds_no_other_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "hush-hush")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr(sys, "argv", ["train.py", "--lr", "1", "--wandb-api-key", "hush-hush", "--token=hush-hush"])
    found = collect(seeds={"torch": 3, "numpy": [1, 2]})
    text = json.dumps(found)
    assert "hush" not in text
    assert found["environment"]["OMP_NUM_THREADS"] == "3"
    assert found["seeds"] == {"torch": 3, "numpy": "[1, 2]"}
    assert found["command"][1:] == ["train.py", "--lr", "1", "--wandb-api-key", "***", "--token=***"]
    assert "problems" not in found


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["a.py", "--api-key", "x", "--lr", "1"], ["a.py", "--api-key", "***", "--lr", "1"]),
        (["a.py", "env.password=x"], ["a.py", "env.password=***"]),
        (["a.py", "+db.auth_token=x"], ["a.py", "+db.auth_token=***"]),
        (["a.py", "--password", "--verbose"], ["a.py", "--password", "--verbose"]),
        (["a.py", "hydra.private-key=x", "--HF-TOKEN", "x"], ["a.py", "hydra.private-key=***", "--HF-TOKEN", "***"]),
        (["a.py", "--max-tokens=5", "--keys", "a"], ["a.py", "--max-tokens=5", "--keys", "a"]),
        (["a.py", "--pad-token=0", "--obs_key", "a"], ["a.py", "--pad-token=0", "--obs_key", "a"]),
        (["a.py", "s3://k:v@bucket/x"], ["a.py", "s3://***@bucket/x"]),
        (["a.py", "--mail", "a@b.c"], ["a.py", "--mail", "a@b.c"]),
    ],
)
def test_secrets_on_the_command_line_are_hidden(given: list[str], shown: list[str]) -> None:
    assert command_line(given) == shown


def test_the_packages_are_those_that_are_installed() -> None:
    found = provenance.packages()
    for name in ("numpy", "pytest", "hypothesis"):
        assert found[name] == metadata.version(name)


def test_a_part_that_fails_does_not_take_the_others_along(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("no such thing")

    monkeypatch.setattr(provenance, "packages", fail)
    found = collect()
    assert found["packages"] is None
    assert found["problems"] == {"packages": "OSError: no such thing"}
    assert found["cpu"]
