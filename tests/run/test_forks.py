"""Children that a program forks while rollbook's own threads are in the midst of something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import copied_locks
import forking
from forked_programs import Interpreter
from waiting import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@pytest.mark.parametrize("keeper", ["process", "thread", "inline"])
def test_a_forked_child_logs_and_ends_whatever_threads_of_rollbook_are_importing(keeper: str, tmp_path: Path) -> None:
    command = [sys.executable, forking.__file__, "imports", keeper, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    assert [status for _moment, status in told["children"]] == [0]
    assert told["imported"] == {}, "after `init` there is nothing left to import"


@pytest.mark.parametrize("keeper", ["process", "thread", "inline"])
def test_a_forked_child_logs_and_ends_whatever_lock_another_thread_holds(
    keeper: str, tmp_path: Path, interpreter: Interpreter
) -> None:
    done = interpreter.run(
        "import sys, forking; forking.main(*sys.argv[1:])", "locks", keeper, tmp_path, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    children = json.loads(done.stdout.splitlines()[-1])["children"]
    found = {way for way, _status in children}
    assert "Ticker > Event > Condition > lock" in found
    assert any(way.endswith("Checkpoints > RLock") for way in found)
    assert [(way, status) for way, status in children if status != 0] == []


def test_a_lock_ends_with_the_work_it_guards_even_while_another_thread_starts_a_program(tmp_path: Path) -> None:
    """A program that is just being started has copies of all descriptors, and a lock lasts as long as any of them."""
    variables = {"ROLLBOOK_RUNTIME_DIR": str(tmp_path / "runtime"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, copied_locks.__file__, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **variables})
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert set(told["taken"]) >= {"page.lock", "ship.lock", ".rollbook-place.lock", "seal-lock", "lock"}
    assert told["locked"] == []
