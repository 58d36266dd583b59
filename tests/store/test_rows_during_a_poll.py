"""Rows that are logged while a reader polls: at whichever line of it they come, each is given once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import rollbook.journal
from cases import some_of
from line_by_line import at_line
from rollbook.journal.reader import JournalReader
from rollbook.journal.writer import Writer
from rollbook.schema.columns import Columns

JOURNAL = str(Path(rollbook.journal.__file__).parent)
POLLING = tuple(f"{JOURNAL}/{name}.py" for name in ("reader", "open_files", "segments", "frame_files"))
"""The files of whoever reads; the writer's are others."""


@pytest.mark.parametrize("reads", ["rows", "columns"])
@pytest.mark.parametrize("seed", some_of([162, 165, *range(8)], 3))
def test_rows_logged_at_any_line_of_a_poll_are_given_once(tmp_path: Path, reads: str, seed: int) -> None:
    writer = Writer(str(tmp_path), main=True)
    writer.first_segment_bytes = writer.largest_segment_bytes = 2048
    writer.open()
    log, chance = writer.make_log(writer.channel()), random.Random(seed)
    logged = 0
    cursor: dict[str, dict[int, int]] = {}
    found: list[int] = []

    def some() -> None:
        nonlocal logged
        for _ in range(chance.choice((1, 1, 2, 9))):
            kind = logged % 16  # mostly one stream, so that its segments end in the middle of things
            key = f"rare{logged}" if kind == 9 else "b" if kind == 3 else "a"
            log({key: float(logged)}, env_step=logged)
            logged += 1

    def poll() -> None:
        if reads == "rows":
            found.extend(row.clocks["env_step"] for row in reader.rows_since(cursor))
            return
        for read in reader.columns(cursor, most_bytes=512, is_late=lambda: False):
            assert read.skipped == 0
            columns = Columns(read.pieces)
            values = [columns.column(key).values for key in sorted(columns.keys())]
            found.extend(sorted(int(value) for some in values for value in some))
            cursor.update(read.cursor)

    lines = 0
    with JournalReader(tmp_path) as reader:
        for _ in range(60):
            some()
            if chance.random() < 0.7:
                poll()  # nothing is new at first, and the last segment may be full
            if chance.random() < 0.5:
                reader.close()  # as a keeper that comes after another: it has read nothing yet
            lines = max(lines, at_line(chance.randint(1, lines + 1), POLLING, some, poll))
        poll()
    writer.close()
    assert sorted(found) == found == list(range(logged))
