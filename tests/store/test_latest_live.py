"""The newest value of each key of a live run: from the last rows, however many rows and keys lie before them."""

from __future__ import annotations

from pathlib import Path

import pytest

import rollbook
from rollbook.storage import tabulate
from rollbook.storage.live import LiveSegment
from rollbook.values.arrow import from_numpy

KEYS = [f"grad_norm/layer_{n}" for n in range(300)]


def test_the_newest_values_of_many_keys_are_read_from_the_last_rows_of_a_live_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each segment was made a table of all its keys: two live runs of 3,000 keys kept a page waiting for minutes."""
    read: list[str] = []
    made = LiveSegment.read
    with rollbook.init("p", "many", dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        for step in range(200):
            run.log(dict.fromkeys(KEYS, float(step)), env_step=step)
        segments = list((run.folder / "data" / "journal").rglob("*.seg"))
        assert len(segments) > 2
        monkeypatch.setattr(LiveSegment, "read", lambda self, *more: read.append(self.path) or made(self, *more))
        book = rollbook.open(tmp_path).one()
        latest = book.latest()
        assert read == []
        wide = []
        monkeypatch.setattr(tabulate, "from_numpy", lambda *cells: wide.append(1) or from_numpy(*cells))
        assert len(book.series(KEYS[7])) == 200
        assert len(wide) < 10 * len(segments), "a curve of one key makes no columns of the others"
    assert {key: latest[key][:2] for key in KEYS} == dict.fromkeys(KEYS, (199.0, {"env_step": 199}))


def test_a_key_that_only_old_rows_have_keeps_its_newest_value(tmp_path: Path) -> None:
    wide = dict.fromkeys(KEYS, 0.0)
    with rollbook.init("p", "mixed", dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        for step in range(60):
            run.log({**wide, "old": 1.0 * step, "shared": 1.0 * step}, env_step=step)
        for step in range(60, 160):
            run.log({**wide, "shared": 1.0 * step, "whole": step, "flag": step % 2 == 0}, env_step=step)
        run.log({"once": 7.0}, env_step=160)
        live = rollbook.open(tmp_path).one().latest()
    sealed = rollbook.open(tmp_path).one().latest()
    newest = {"old": (59.0, 59), "shared": (159.0, 159), "whole": (159, 159), "flag": (False, 159), "once": (7.0, 160)}
    for latest in (live, sealed):
        assert {key: (latest[key][0], latest[key][1]["env_step"]) for key in newest} == newest
        assert latest[KEYS[0]][1] == {"env_step": 159}
        assert type(latest["flag"][0]) is bool
        assert type(latest["whole"][0]) is int
