"""The uncommitted changes of a program's repository are kept with its run: whole, bounded, without secrets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from rollbook.cli.app import app
from rollbook.run.origin.patch import keep_patch, patch_of, without_secrets_in_code
from sealing_forks import python_path

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.usefixtures("real_git"),
]

PROGRAM = """import sys, rollbook
with rollbook.init("p", "n", seed=int(sys.argv[1]), dir=sys.argv[2], sinks=[], rules=(), keeper="inline") as run:
    run.log({"a": 1.0})
"""


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    git(folder, "init", "-q", ".")
    (folder / "train.py").write_text(PROGRAM)
    (folder / "net.py").write_text("width = 64\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def found(folder: Path, seconds: float = 60.0, **how: bool) -> dict[str, Any]:
    told = {"is_changed": True, "is_new": False, **how}
    return patch_of(["git", "-C", str(folder)], dict(os.environ), str(folder), seconds=seconds, **told)


def train(folder: Path, seed: int, program: str = "train.py") -> None:
    environment = {**os.environ, "PYTHONPATH": python_path(Path(rollbook.__file__).parent.parent)}
    command = [sys.executable, program, str(seed), str(folder.parent / "runs")]
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=600)


def test_a_run_has_the_changes_as_a_patch_that_git_applies_and_runs_differ_in_them(
    repository: Path, tmp_path: Path
) -> None:
    (repository / "net.py").write_text("width = 128\n")
    (repository / "idea.txt").write_text("later\n")
    train(repository, 0)
    (repository / "net.py").write_text("width = 256\n")
    train(repository, 1)
    runs = rollbook.open(tmp_path / "runs")
    first, second = (runs.where(f"seed == {seed}").one() for seed in (0, 1))
    assert first.info.git["untracked"] == ["idea.txt"]
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    subprocess.run(["git", "apply", "-"], cwd=clone, input=first.patch(), text=True, check=True)
    assert (clone / "net.py").read_text() == "width = 128\n"
    assert "+width = 256" in second.patch()
    differences = runs.diff()
    assert "git diff" in [each.name for each in differences]
    lines = {line.lstrip("+-") for line in differences.patch().splitlines() if line[:3] in ("-+w", "++w")}
    assert lines == {"width = 256", "width = 128"}
    shown = CliRunner().invoke(app, ["show", second.id, "--dir", str(tmp_path / "runs"), "--patch"])
    assert shown.stdout == second.patch()
    shown = CliRunner().invoke(app, ["show", second.id, "--dir", str(tmp_path / "runs")])
    assert "1 file changed (+1 -1), 1 unknown to git" in shown.stdout
    assert (
        CliRunner().invoke(app, ["diff", str(tmp_path / "runs"), "--patch"]).stdout.rstrip("\n") == differences.patch()
    )


def test_a_program_that_git_does_not_know_is_kept_whole(repository: Path, tmp_path: Path) -> None:
    (repository / "tries").mkdir()
    (repository / "tries" / "new.py").write_text(PROGRAM)
    train(repository, 0, "tries/new.py")
    book = rollbook.open(tmp_path / "runs").one()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    subprocess.run(["git", "apply", "-"], cwd=clone, input=book.patch(), text=True, check=True)
    assert (clone / "tries" / "new.py").read_text() == PROGRAM


def test_without_changes_or_without_a_repository_there_is_no_file(repository: Path, tmp_path: Path) -> None:
    train(repository, 0)
    book = rollbook.open(tmp_path / "runs").one()
    assert book.patch() == ""
    assert not list(book.path.glob("*.patch"))
    assert found(tmp_path) == {}


def test_of_a_large_patch_the_files_that_fit_are_kept_and_the_others_named(repository: Path, tmp_path: Path) -> None:
    (repository / "data.txt").write_text("x\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "data")
    (repository / "data.txt").write_text("".join(f"{n}\n" for n in range(200_000)))
    (repository / "net.py").write_text("width = 128\n")
    train(repository, 0)
    book = rollbook.open(tmp_path / "runs").one()
    assert book.info.git["left_out"] == ["data.txt"]
    assert "+width = 128" in book.patch()
    assert len(book.patch()) < 1_000
    for name in ("a.txt", "b.txt"):
        (repository / name).write_text("y" * 1_500 + "\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "more")
    (repository / "a.txt").write_text("x\n" * 150_000)
    (repository / "b.txt").write_text("z\n")
    told = found(repository)
    assert told["left_out"] == ["a.txt"]
    assert "+z" in told["text"]


def test_a_repository_runs_no_program_of_its_own(repository: Path, tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    git(repository, "config", "diff.external", f"touch {trap}; true")
    git(repository, "config", "diff.py.textconv", f"touch {trap}; cat")
    (repository / ".gitattributes").write_text("*.py diff=py\n")
    (repository / "net.py").write_text("width = 128\n")
    assert "+width = 128" in found(repository)["text"]
    assert not trap.exists()


def test_submodules_binaries_and_a_repository_without_a_commit_are_harmless(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", ".")
    (other / "a.py").write_text("a = 1\n")
    git(other, "add", "-A")
    assert "+a = 1" in found(other, is_new=True)["text"]
    git(other, "commit", "-q", "-m", "one")
    git(repository, "submodule", "--quiet", "add", str(other), "sub")
    (repository / "blob.bin").write_bytes(bytes(range(256)) * 10)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "two")
    (repository / "sub" / "a.py").write_text("a = 2\n")
    (repository / "blob.bin").write_bytes(bytes(range(255, -1, -1)) * 10)
    text = found(repository)["text"]
    assert "Binary files" in text
    assert "a = 2" not in text


def test_a_git_that_hangs_is_given_up(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(slow.parent))
    assert patch_of([str(slow)], dict(os.environ), str(repository), is_changed=True, is_new=False, seconds=0.2) == {}


KEY = "hf_" + "a1" * 12


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ('+api_key = "short"', '+api_key = "***"'),
        ("+    wandb.login(key='x', token='abc')", "+    wandb.login(key='x', token='***')"),
        ('+config["password"] = "abc"', '+config["password"] = "***"'),
        ('+    "hf_token": "abc",', '+    "hf_token": "***",'),
        ("+token: str = 'abc'", "+token: str = '***'"),
        (f"+print('{KEY}')", "+print('***')"),
        ("+url = 'https://me:hunter2@host/x'", "+url = 'https://***@host/x'"),
        ("+token = os.environ['HF_TOKEN']", "+token = os.environ['HF_TOKEN']"),
        ("+pad_token = '<pad>'", "+pad_token = '<pad>'"),
        ("+lr = 3e-4", "+lr = 3e-4"),
    ],
)
def test_secrets_in_code_are_hidden_by_the_rule_of_the_configuration(line: str, kept: str) -> None:
    head = "diff --git a/t.py b/t.py\n+++ b/t.py\n"
    assert without_secrets_in_code(head + line) == head + kept


def test_secrets_in_files_of_settings_need_no_quotes_and_a_private_key_goes_line_by_line() -> None:
    head = "diff --git a/conf.yaml b/conf.yaml\n+++ b/conf.yaml\n"
    text = without_secrets_in_code(f"{head}+password: abc\n+export API_KEY=abc\n+lr: 1\n")
    assert text == f"{head}+password: ***\n+export API_KEY=***\n+lr: 1\n"
    lines = [
        "+-----BEGIN RSA PRIVATE KEY-----",
        *(f"+{'Ab1' * 21}" for _ in range(5)),
        "+-----END RSA PRIVATE KEY-----",
    ]
    assert "Ab1" not in without_secrets_in_code("\n".join([head, *lines, "+after"]))
    assert without_secrets_in_code("\n".join([head, *lines, "+after"])).endswith("+after")


def test_a_later_attempt_keeps_a_patch_of_its_own(tmp_path: Path) -> None:
    assert keep_patch(str(tmp_path), 1, {"text": "one\n"})["patch"] == "code.patch"
    assert keep_patch(str(tmp_path), 2, {"text": "two\n"})["patch"] == "code.attempt_2.patch"
    assert (tmp_path / "code.patch").read_text() == "one\n"
    assert keep_patch(str(tmp_path), 3, {"text": "", "untracked": ["a"]}) == {"untracked": ["a"]}
