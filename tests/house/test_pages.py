"""What README and docs say is true: their code runs, their names exist, nothing public is left out."""

from __future__ import annotations

import ast
import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import run_page as run_page_module
from around_pages import AROUND
from rollbook.cli.app import app
from sealing_forks import python_path

ROOT = Path(__file__).resolve().parents[2]
RUNNER = Path(run_page_module.__file__)
GUIDES = [ROOT / "docs" / "start.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
"""Pages whose commands run, too."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_PYTHON = [page for page in PAGES if run_page_module.blocks(page.read_text("utf-8"))]
IN_FRAMEWORKS = {ROOT / "docs" / name.removeprefix("docs/") for name, around in AROUND.items() if around.group}
"""Run by tests/frameworks/test_pages_run.py; remote.md, which needs a store, by tests/remote/test_page_of_docs.py."""
OURS = [page for page in WITH_PYTHON if page not in IN_FRAMEWORKS]
"""Pages whose code needs nothing but rollbook, or the stand-ins of around_pages."""
NOT_RUN = {
    "README.md": "make demo, make test and make docs: targets that CI runs by themselves",
    "docs/start.md": "installs from the registry, and opens a browser",
    "docs/cli.md": "joins the folders of two hosts; tests/cluster/test_parts.py does",
    "docs/guides/other-tools.md": "reads folders that W&B and MLflow wrote; tests/importers has such folders",
    "docs/guides/paper.md": "downloads the published scores of a paper",
    "docs/adapters/rollout_frameworks.md": "slime's command line, which needs a GPU",
    "docs/adapters/verl.md": "verl's command line, which needs a GPU",
}
"""Pages with commands in a block marked `shell` or `bash`, which no test runs, and why. Every Python block runs."""


@pytest.fixture(scope="module")
def run_page() -> Iterator[Callable[[Path, Path], tuple[int, str]]]:
    """Runs a page in a folder, with this checkout's rollbook and no run to join: its status, and what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROLLBOOK")}
    environment |= {"PYTHONPATH": python_path(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, RUNNER], env=environment, stdin=pipe, stdout=pipe, text=True) as runner:
        assert runner.stdin is not None
        assert runner.stdout is not None
        asked, answers = runner.stdin, runner.stdout

        def run(page: Path, folder: Path) -> tuple[int, str]:
            print(folder, page, sep="\t", file=asked, flush=True)
            return int(answers.readline()), (folder / "printed").read_text("utf-8")

        yield run


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda p: p.name)
def test_the_python_on_a_page_is_python(page: Path) -> None:
    for code in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        ast.parse(code, str(page))


def runs_of(pages: list[Path]) -> list[Any]:
    """(page, how often it runs): the README twice and the first guide once in `make test`, all others in
    `make test-long`: twice, but once where a check after their blocks wants one run."""
    short = {ROOT / "README.md": 2, ROOT / "docs" / "start.md": 1}
    long = {page: 1 if page.parent.name == "adapters" else 2 for page in pages if page not in short}
    marked = [pytest.param(page, times, id=page.name, marks=pytest.mark.long) for page, times in long.items()]
    return [pytest.param(page, times, id=page.name) for page, times in short.items()] + marked


@pytest.mark.parametrize(("page", "times"), runs_of(OURS))
def test_the_python_on_a_page_runs_and_runs_again_in_the_same_folder(
    page: Path, times: int, tmp_path: Path, run_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for time in ("first", "second")[:times]:
        status, printed = run_page(page, tmp_path)
        assert status == 0, f"{page.name}, the {time} time:\n{printed}"
    if page in GUIDES:  # blocks marked `shell` open a page, install something, or need files of the reader's
        blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("ROLLBOOK_DIR", raising=False)
        for line in "".join(blocks).splitlines():
            said = CliRunner().invoke(app, shlex.split(line)[1:])
            assert said.exit_code == 0, f"{line}\n{said.output}"


def test_every_block_of_code_runs_but_the_commands_that_are_named_here() -> None:
    fences = {page: re.findall(r"^ *```(\w+)", page.read_text("utf-8"), re.MULTILINE) for page in PAGES}
    assert {*itertools.chain(*fences.values())} <= {"python", "sh", "shell", "bash", "text", "json", "yaml", "r"}
    for page, languages in fences.items():  # indented or passed-over Python would be seen by no test
        assert languages.count("python") == len(run_page_module.blocks(page.read_text("utf-8"))), page.name
    named = {
        page.relative_to(ROOT).as_posix() for page, languages in fences.items() if {"shell", "bash"} & {*languages}
    }
    assert named == set(NOT_RUN)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
