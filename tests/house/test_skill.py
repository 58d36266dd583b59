"""What the skill for agents says can be typed can be typed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click import Context

from rollbook import cli
from rollbook.cli.app import app

SKILL = (Path(cli.__file__).parent / "skill" / "SKILL.md").read_text("utf-8")
LINES = re.findall(r"`(rollbook [^`]+)`", SKILL)


def test_its_head_names_it_and_says_when_to_use_it() -> None:
    head = re.match(r"---\nname: rollbook\ndescription: (.{80,1024})\n---\n", SKILL)
    assert head is not None
    assert "Use when" in head.group(1)


@pytest.mark.parametrize("line", LINES)
def test_its_commands_and_options_are_there(line: str) -> None:
    _rollbook, name, *words = shlex.split(line)
    command = app.get_command(Context(app), name)
    assert command is not None, name
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known
