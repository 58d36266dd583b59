"""Every kind of value keeps the contract of kinds, and a new one needs its class and one line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from forked_programs import Interpreter
from rollbook import testing
from rollbook.testing.rows import KINDS as VALUES
from rollbook.values.known import KINDS

pytestmark = pytest.mark.usefixtures("sealed")

SAMPLES = {found[0]: value for value in VALUES if (found := KINDS.of(value)) is not None}


@pytest.mark.parametrize("check", testing.KIND_CHECKS.values(), ids=testing.KIND_CHECKS)
@pytest.mark.parametrize("word", KINDS)
def test_a_kind_of_value_keeps_the_contract(word: str, check: Any) -> None:
    check(SAMPLES[word])


PROGRAM = """
import sys
from rollbook.values import known
from rollbook.values.kinds import _Slots

class Sound(_Slots):
    __slots__ = ("path", "seconds")
    def __init__(self, path, seconds):
        self.path, self.seconds = path, seconds

known.KINDS["sound"] = known.Kind(Sound, {"path": "text", "seconds": "number"}, table="sound")  # the one line

import json, rollbook
from rollbook import testing
from rollbook.sinks import Memory, make
from rollbook.keeper.replaying import replay
sound = Sound("media/a.wav", 2.5)
testing.check_kind(sound)
with rollbook.init("p", dir=sys.argv[1], keeper="inline", rules=(), sinks=["jsonl"]) as run:
    run.log({"voice": sound, "loss": 1.0}, env_step=3)
    run.write_rows([{"time": 1e9, "env_step": 1, "voice": Sound("media/b.wav", 0.5)}])
memory = Memory()
replay(run.folder, memory)
voices = {row.values["voice"] for row in memory.rows if "voice" in row.values}
assert voices == {sound, Sound("media/b.wav", 0.5)}
rows = run.book.table("sound").select(["key", "path", "seconds", "env_step"]).to_pylist()
assert {"key": "voice", "path": "media/a.wav", "seconds": 2.5, "env_step": 3} in rows and len(rows) == 2
lines = (run.folder / "log/jsonl/metrics.jsonl").read_text()
assert '"voice":{"kind":"sound","path":"media/a.wav","seconds":2.5}' in lines
print("whole")
"""


def test_a_new_kind_of_value_is_logged_read_and_forwarded_by_one_line(tmp_path: Path, interpreter: Interpreter) -> None:
    done = interpreter.run(PROGRAM, tmp_path, env=os.environ)
    assert done.stdout.strip() == "whole", done.stderr
