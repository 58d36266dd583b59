"""A segment under another name than its own is a copy: its rows count once, and its name is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import rollbook


@pytest.fixture
def run(tmp_path: Path) -> rollbook.Run:
    run = rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline", clocks=["tokens"])
    for step in range(300):
        run.log({"loss": float(step)}, env_step=step)
    return run


def test_a_copied_segment_is_not_read_twice(run: rollbook.Run) -> None:
    (segment,) = run.folder.glob("data/journal/*/L00.S*.seg")
    lane, stream, slot, _ = segment.name.split(".")
    names = [f"{lane}.{stream}.{int(slot) + 7:0{len(slot)}}.seg", f"L09.{stream}.{slot}.seg"]
    for name in names:
        shutil.copy(segment, segment.with_name(name))
    assert run.book.metrics(["loss"])["loss"].to_pylist() == list(map(float, range(300)))
    said = str(run.book.problems())
    assert all(name in said for name in names)
    run.finish()
    assert run.book.metrics(["loss"])["loss"].to_pylist() == list(map(float, range(300)))


def test_names_that_no_clock_can_have_hurt_neither_this_run_nor_its_neighbours(
    run: rollbook.Run, tmp_path: Path
) -> None:
    run.finish()
    page = run.folder / "run.json"
    about = json.loads(page.read_text())
    about["clocks"] += ["time", "writer", "", "no name"]
    page.write_text(json.dumps(about))
    with rollbook.init("p", "neighbour", dir=tmp_path, sinks=[], keeper="inline") as sound:
        sound.log({"loss": 1.0}, env_step=1)
    assert run.book.metrics(["loss"], x="env_step").num_rows == 300
    runs = rollbook.open(tmp_path)
    assert runs.sql("select count(*) from metrics where loss is not null").fetchall() == [(301,)]
    assert runs.table().num_rows == 2
    again = rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline", resume="must")
    again.rewind(env_step=100)
    assert again.clocks_now() == {"env_step": 100}
    again.finish()
