"""A damaged page costs the episodes that lie in it, which is reported, and no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rollbook.book.book import Book
from rollbook.errors import RollbookWarning
from rollbook.formats.datasets import to_jsonl, to_lerobot, to_rllib
from rollbook.formats.datasets._source import StepSource
from rollbook.storage.sealing.folder import seal

EPISODES, STEPS = 12, 40


@pytest.fixture
def run(new_run: Callable[..., Any], tuned: Callable[..., None]) -> Path:
    """A run of twelve episodes, whose steps lie in several groups of rows of one file."""
    tuned(episode_group_rows=100)
    run = new_run()
    for number in range(EPISODES):
        columns = {
            "episode_id": [f"e{number}"] * STEPS,
            "t": list(range(STEPS)),
            "obs": [[number + step / 7, step * 0.37] for step in range(STEPS)],
            "action": [step % 3 for step in range(STEPS)],
            "reward": [step / 3 for step in range(STEPS)],
        }
        run.record("steps", columns, n=STEPS, env_step=number * STEPS)
    run.internals.writer.close()
    seal(run.folder, final=True)
    return Path(run.folder)


def damage(run: Path, column: str, group: int) -> None:
    """Overwrite the middle of what one column has in one group of rows."""
    (part,) = (run / "data" / "steps").glob("*.parquet")
    about = pq.ParquetFile(part).metadata.row_group(group)
    (chunk,) = [about.column(n) for n in range(about.num_columns) if about.column(n).path_in_schema == column]
    content = bytearray(part.read_bytes())
    middle = chunk.data_page_offset + chunk.total_compressed_size * 2 // 3
    content[middle : middle + 8] = bytes(byte ^ 0xFF for byte in content[middle : middle + 8])
    part.write_bytes(content)


@pytest.mark.parametrize("column", ["reward", "episode_id", "obs.list.element"])
@pytest.mark.parametrize("group", [0, 2])
def test_an_export_leaves_out_the_episodes_of_a_damaged_page_and_reports_them(
    run: Path, tmp_path: Path, column: str, group: int
) -> None:
    sound = [key[0] for key in StepSource(Book(run)).keys]
    assert sound == [f"e{number}" for number in range(EPISODES)]
    assert Book(run).problems() == []
    damage(run, column, group)
    book = Book(run)
    with pytest.warns(RollbookWarning, match="is damaged"):
        kept = [trajectory.episode_id for trajectory in StepSource(book)]
    lost = set(range(group * 100 // STEPS, -(-(group + 1) * 100 // STEPS)))
    whole = [f"e{number}" for number in range(EPISODES) if number not in lost]
    assert [name for name in kept if name in whole] == whole
    assert len(kept) < EPISODES
    assert any(".parquet" in problem for problem in book.problems(deep=False)), "what was met is a problem"
    (problem,) = Book(run).problems()
    assert "steps" in problem
    for export in (to_jsonl, to_lerobot, to_rllib):
        with pytest.warns(RollbookWarning, match="is damaged"):
            told = export(Book(run), tmp_path / export.__name__)
        assert len(whole) <= told.episodes <= len(kept), export
    text = (tmp_path / "to_jsonl").read_text()
    assert all(f'"{name}"' in text for name in whole)
