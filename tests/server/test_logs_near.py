"""The lines of a log around a moment are whole, and the line of that moment is among them, wherever it stands."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from cases import some_of
from rollbook.book.questions import lines_near

BEGAN = datetime.datetime(2026, 11, 28, 11, 0, 0)


CASES = [(messages, lines, width) for messages in (1, 3, 50, 2_000) for lines in (1, 7) for width in (4, 300)]


@pytest.mark.parametrize(
    ("messages", "lines", "width"), some_of(CASES, lambda case: case[0] < 2_000 or case[1:] == (7, 4))
)
def test_the_lines_around_a_moment(tmp_path: Path, messages: int, lines: int, width: int) -> None:
    path = tmp_path / "log.txt"
    moments = [BEGAN + datetime.timedelta(seconds=2 * n) for n in range(messages)]
    text = [f"[{at:%Y-%m-%d %H:%M:%S}] " + "\n".join(["x" * width] * lines) for at in moments]
    path.write_text("\n".join(text) + "\n")
    whole = path.read_text().split("\n")
    for at in moments[:: max(1, messages // 40)]:
        found = lines_near(str(path), at.timestamp(), 8).lines
        assert at.timestamp() in [line.time for line in found], at
        assert {line.text for line in found} <= set(whole)
        assert len(found) <= 8
