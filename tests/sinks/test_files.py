"""What all file sinks share: a write that fails leaves nothing behind, and foreign files are left alone."""

from __future__ import annotations

import errno
import os

import pytest

from rollbook import sinks, testing
from rollbook.protocols import Row

FILE_SINKS = ("csv", "jsonl", "text", "tensorboard")


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.stat().st_size}


@pytest.mark.parametrize("name", FILE_SINKS)
def test_a_full_disk_in_the_middle_of_a_write_leaves_whole_rows_and_the_same_rows_can_come_again(
    name, run, monkeypatch, tmp_path
):
    rows = testing.training_rows(60, late_keys=5)
    sink = sinks.make(name, all=True)
    sink.open(run)
    sink.write(rows[:20])
    before = content(run.folder)
    position = sink.position()

    real, left = os.write, [500]

    def full(handle, data):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = real(handle, bytes(data)[: left[0]])
        left[0] -= done
        return done

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            sink.write(rows[20:])
    assert content(run.folder) == before
    assert sink.position() == position
    sink.write(rows[20:])
    sink.close()

    other = testing.some_run(tmp_path / "whole")
    other.folder.mkdir()
    whole = sinks.make(name, all=True)
    whole.open(other)
    whole.write(rows)
    whole.close()
    found = {path.relative_to(run.folder): data for path, data in content(run.folder).items()}
    assert found == {path.relative_to(other.folder): data for path, data in content(other.folder).items()}


@pytest.mark.parametrize("name", FILE_SINKS)
def test_cutting_back_to_nothing_leaves_files_of_others_alone(name, run):
    foreign = {
        run.folder / "log/serial/events.out.tfevents.1.other": b"not ours",
        run.folder / "log/csv/notes of mine.txt": b"mine",
        run.folder / "log/jsonl/other.jsonl": b"{}\n",
        run.folder / "log/learner/notes.txt": b"mine",
        run.folder.parent / "beside.csv": b"mine",
    }
    for path, data in foreign.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    sink = sinks.make(name, all=True)
    sink.open(run)
    sink.truncate({"../beside.csv": 0, "log/csv/notes of mine.txt": 0, "log/serial/events.out.tfevents.1.other": 1})
    sink.write([Row(0.0, {}, {"learner/x": 1.0})])
    assert {path: path.read_bytes() for path in foreign} == foreign


@pytest.mark.parametrize("name", FILE_SINKS)
def test_a_folder_that_was_moved_away_is_made_again(name, run):
    sink = sinks.make(name, all=True)
    sink.open(run)
    sink.write([Row(0.0, {}, {"a/x": 1.0})])
    (run.folder / "log").rename(run.folder / "moved")
    sink.write([Row(1.0, {}, {"a/x": 2.0})])
    assert content(run.folder / "log")


@pytest.mark.parametrize("name", FILE_SINKS)
def test_nothing_is_created_before_there_is_something_to_write(name, run):
    sink = sinks.make(name)
    sink.open(run)
    sink.write([Row(0.0, {}, {}, mark="final")])
    sink.close()
    assert list(run.folder.iterdir()) == []
