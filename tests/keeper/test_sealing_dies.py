"""A sealing child that dies is seen everywhere at once, with its reason; so is a package that does not load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import rollbook
from cases import some_of
from rollbook.book.repair.doctor import repair, verify
from rollbook.cli.app import app
from rollbook.errors import RollbookWarning
from rollbook.keeper.warm_children import WarmChildren
from waiting import PATIENCE

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals"),
    pytest.mark.usefixtures("real_sealing_children"),
]

DEATHS = {
    "at its import": ("raise ImportError('pyarrow requires NumPy 2.0')", "pyarrow requires NumPy 2.0"),
    "by the out-of-memory killer": ("import os; os.kill(os.getpid(), 9)", "SIGKILL, perhaps because memory ran out"),
    "with a status": ("import os, sys; print('no room for it', file=sys.stderr, flush=True); os._exit(3)", "no room"),
}


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A folder that stands before the installed packages."""
    folder = tmp_path / "broken"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("how", some_of(DEATHS, 2))
def test_a_sealing_child_that_dies_is_in_the_warning_the_bill_run_json_problems_verify_and_show(
    how: str, broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, reason = DEATHS[how]
    (broken / "pyarrow.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", f"{broken}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    run = rollbook.init("p", "n", dir=tmp_path / "runs", sinks=[], rules=(), keeper="inline")
    run.log({"x": 1.0}, env_step=1)
    with pytest.warns(RollbookWarning, match=reason):
        run.finish()
    monkeypatch.undo()
    assert run.bill()["drops"] == {"seal_failures": 3}
    assert reason in run.bill()["keeper"]["troubles"]["seal"]
    (book,) = rollbook.open(tmp_path / "runs")
    assert book.info.drops == {"seal_failures": 3}
    assert book.metrics(["x"])["x"].to_pylist() == [1.0]
    for problems in (book.problems(), verify(run.folder)):
        (problem,) = problems
        assert reason in problem
        assert "repair" in problem
    shown = CliRunner().invoke(app, ["show", str(run.folder)])
    assert (shown.exit_code, reason in shown.stderr) == (0, True)
    repair(run.folder)
    (book,) = rollbook.open(tmp_path / "runs")
    assert book.problems() == verify(run.folder) == []


@pytest.mark.parametrize("how", DEATHS)
def test_a_sealing_child_of_the_shared_keeper_that_dies_while_it_starts_gives_its_reason(
    how: str, tmp_path: Path
) -> None:
    program, reason = DEATHS[how]
    log = tmp_path / "log"
    child = WarmChildren([sys.executable, "-c", program]).take(["a run"], str(log))
    assert child.wait(PATIENCE) in (-9, 1, 3)
    assert reason in log.read_text() or child.wait(0) == -9


def test_reading_with_a_package_that_does_not_load_says_what_was_asked_what_was_found_and_what_to_do(
    tmp_path: Path,
) -> None:
    run = rollbook.init("p", "n", dir=tmp_path / "runs", sinks=[], rules=(), keeper="thread")
    run.log({"x": 1.0})
    reading = f"import rollbook; rollbook.open({str(tmp_path / 'runs')!r}).one().metrics()"
    asked = []
    commands = {"numpy": ["-c", reading], "pyarrow": ["-m", "rollbook", "verify", str(run.folder)]}
    for package, words in commands.items():
        broken = tmp_path / package
        broken.mkdir()
        (broken / f"{package}.py").write_text("raise ImportError('built for another numpy')")
        environment, pipe = {**os.environ, "PYTHONPATH": str(broken)}, subprocess.PIPE
        command = [sys.executable, *words]
        asked.append((package, subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)))
    for package, process in asked:
        last = process.communicate(timeout=PATIENCE)[1].strip().splitlines()[-1]
        assert process.returncode == 1
        for words in (f"need {package}", "built for another numpy", "pip install --upgrade rollbook"):
            assert words in last
    run.finish()
