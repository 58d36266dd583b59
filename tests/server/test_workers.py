"""Answers that nobody waits for any more are bounded."""

from __future__ import annotations

import threading

import anyio
import pytest
from starlette.requests import ClientDisconnect

from rollbook.server.answering import MOST_GIVEN_UP, Workers
from rollbook.server.shared.shapes import Refused
from waiting import until


def test_answers_that_were_given_up_take_no_more_threads_than_their_limit_and_delay_no_others() -> None:
    go_on = threading.Event()
    running: set[int] = set()

    def stuck() -> None:
        running.add(threading.get_ident())
        go_on.wait()
        running.remove(threading.get_ident())

    async def ask() -> None:
        workers = Workers(2, 200, 0.05)
        while len(running) < 3:
            with pytest.raises(Refused, match="longer than"):
                await workers.run(stuck)
        workers._seconds = 60.0
        assert await workers.run(lambda: 7) == 7  # the stuck ones keep nobody from answering
        workers._seconds = 0.05
        more = 4
        while len(running) < 2 + MOST_GIVEN_UP or (more := more - 1):
            with pytest.raises(Refused, match="longer than"):
                await workers.run(stuck)
        assert len(running) == 2 + MOST_GIVEN_UP

    try:
        anyio.run(ask)
    finally:
        go_on.set()
    until(lambda: not running, "all threads have ended")


def test_an_answer_that_nobody_waits_for_is_not_begun_and_holds_up_no_other() -> None:
    begun: list[str] = []
    go_on = threading.Event()

    def slow() -> None:
        begun.append("first")
        go_on.wait()

    async def gone() -> bool:
        return True

    async def stays() -> bool:
        return False

    async def abandoned(workers: Workers) -> None:
        with pytest.raises(ClientDisconnect):
            await workers.run(lambda: begun.append("abandoned"), gone)

    async def ask() -> None:
        workers = Workers(1, 200, 60.0)
        async with anyio.create_task_group() as group:
            group.start_soon(workers.run, slow, stays)
            for _ in range(20):
                group.start_soon(abandoned, workers)
            go_on.set()
        await workers.run(lambda: begun.append("last"), stays)

    anyio.run(ask)
    assert begun == ["first", "last"]
