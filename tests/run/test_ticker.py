"""The run's own thread follows the keeper's syncs."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import rollbook
from waiting import PATIENCE, until


def test_a_round_comes_after_a_sync_that_is_late_and_not_after_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tuned: Callable[..., None]
) -> None:
    """A sync makes every page clean: a round before it would leave all pages of the next second to `log`. Rounds that
    were content with any new sync came 0.9 s after one, just before the next, for as long as a run lasted."""
    tuned(sync_looks=10**9)
    looked = threading.Event()
    with rollbook.init("p", dir=tmp_path, sinks=[], keeper="inline") as run:
        ticker = run._parts.ticker
        assert ticker is not None
        ticker.stop()
        ticker._stop_event.clear()
        ticker._await_sync()  # no sync was announced: it comes at once
        durable = Path(run.folder, "data", "keeper", "durable.json")
        durable.write_text("{}")
        pause = ticker._until_synced()
        assert 0.4 < pause <= 1.6

        before = time.time() - 0.9
        os.utime(durable, (before, before))  # a new one, but it is the next that comes soon
        look = ticker._synced_at
        monkeypatch.setattr(ticker, "_synced_at", lambda: (looked.set(), look())[1])
        waiting = threading.Thread(target=ticker._await_sync)
        waiting.start()
        assert looked.wait(PATIENCE)
        assert waiting.is_alive()
        until(lambda: (os.utime(durable), not waiting.is_alive())[1])


class SlowToTell:
    """A value of the summary that one thread takes long to put in words: until `known` is set, or for half a second."""

    def __init__(self, slow: threading.Thread) -> None:
        self.slow, self.begun, self.known = slow, threading.Event(), threading.Event()

    def __repr__(self) -> str:
        if threading.current_thread() is self.slow:
            self.begun.set()
            self.known.wait(0.5)
        return "told"


def test_what_another_thread_read_earlier_is_never_written_over_what_stands_in_run_json(tmp_path: Path) -> None:
    with rollbook.init("p", dir=tmp_path, sinks=[], keeper="inline") as run:
        ticker = run._parts.ticker
        assert ticker is not None
        ticker.stop()
        other = threading.Thread(target=run.internals.write_about)
        value = SlowToTell(other)
        run.summary.update({"n": 0, "value": value})
        other.start()
        assert value.begun.wait(PATIENCE)
        run.summary["n"] = 1
        run.internals.write_about()
        value.known.set()
        other.join(PATIENCE)
        assert json.loads((run.folder / "run.json").read_text())["summary"] == {"n": 1, "value": "told"}
