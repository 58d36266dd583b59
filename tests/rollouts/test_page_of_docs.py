"""docs/rollouts.md does what it says: its blocks run one after the other, and its questions are answered."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "rollouts.md").read_text("utf-8")


def test_the_blocks_run_and_every_line_of_python_in_the_table_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    assert len(blocks) >= 2
    for block in blocks:
        exec(compile(block, "docs/rollouts.md", "exec"), names)
    said = capsys.readouterr().out
    assert "rollout/reward" in said
    lines = re.findall(r"`(book\.rollout[^`]*\))` \|", TEXT)
    assert len(lines) >= 11
    for line in lines:
        eval(line, {"book": names["book"], "id": names["ids"][0]})
