"""What a killed process leaves in the folder for temporary files goes when the next one makes a folder there."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest

from forked_programs import Interpreter
from rollbook.server.shared.sql import TemporaryFolder

HOLDS = """
import sys
from rollbook.server.shared.sql import TemporaryFolder
folder = TemporaryFolder("answers")
open(folder.path + "/answer.parquet", "w").close()
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_folder_of_a_killed_process_goes_with_the_next_one_and_that_of_a_living_process_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interpreter: Interpreter
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("rollbook-answers-being-made", "rollbook-answers-of-somebody", "rollbook-other-kind"):
        (tmp_path / name).mkdir()
    (tmp_path / "rollbook-answers-link").symlink_to(tmp_path / "rollbook-answers-of-somebody")
    holders = [interpreter.start(HOLDS, env={**os.environ, "TMPDIR": str(tmp_path)}) for _ in range(2)]
    try:
        killed, alive = (Path(holder.stdout.readline().strip()) for holder in holders)
        holders[0].kill()
        holders[0].wait()
        assert killed.exists()
        before = set(tmp_path.iterdir())
        with TemporaryFolder("answers") as own:
            assert set(tmp_path.iterdir()) == before - {killed} | {Path(own)}
            assert (alive / "answer.parquet").exists()
        assert not Path(own).exists()
    finally:
        for holder in holders:
            with holder.stdin, holder.stdout:  # it ends as its stdin does
                pass
            holder.wait()
