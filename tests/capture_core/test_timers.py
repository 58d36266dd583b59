"""Stages of a training loop and how long they took."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from rollbook.capture.timers import Timers
from waiting import PATIENCE


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rows() -> list[dict[str, float]]:
    return []


@pytest.fixture
def timers(rows: list[dict[str, float]], clock: Clock) -> Timers:
    return Timers(rows.append, clock)


def test_each_block_writes_its_seconds_as_one_row(timers: Timers, rows: list, clock: Clock) -> None:
    for seconds in (1.5, 0.25):
        with timers.timer("collect"):
            clock.now += seconds
    assert rows == [{"collect": 1.5}, {"collect": 0.25}]


def test_an_inner_stage_carries_the_name_of_the_outer_one(timers: Timers, rows: list, clock: Clock) -> None:
    with timers.timer("update"):
        clock.now += 1
        with timers.timer("backward"):
            clock.now += 2
            with timers.timer("all_reduce"):
                clock.now += 4
    with timers.timer("backward"):
        clock.now += 8
    assert rows == [
        {"update/backward/all_reduce": 4.0},
        {"update/backward": 6.0},
        {"update": 7.0},
        {"backward": 8.0},
    ]


def test_a_block_that_raises_is_timed_and_the_error_goes_on(timers: Timers, rows: list, clock: Clock) -> None:
    @timers.timer("collect")
    def collect() -> None:
        clock.now += 3
        raise KeyError("env")

    with pytest.raises(KeyError):
        collect()
    with timers.timer("next"):
        clock.now += 1
    assert rows == [{"collect": 3.0}, {"next": 1.0}]


def test_one_timer_object_can_be_entered_again_while_it_runs(timers: Timers, rows: list, clock: Clock) -> None:
    stage = timers.timer("solve")
    with stage:
        clock.now += 1
        with stage:
            clock.now += 1
    assert rows == [{"solve/solve": 1.0}, {"solve": 2.0}]
    assert timers.timer("solve") is stage


def test_a_decorated_function_is_timed_at_each_call_and_keeps_its_name_and_result(
    timers: Timers, rows: list, clock: Clock
) -> None:
    @timers.timer("factorial")
    def factorial(n: int) -> int:
        """n!"""
        clock.now += 1
        return 1 if n == 0 else n * factorial(n - 1)

    assert factorial(2) == 2
    assert factorial.__name__ == "factorial"
    assert factorial.__doc__ == "n!"
    assert rows == [
        {"factorial/factorial/factorial": 1.0},
        {"factorial/factorial": 2.0},
        {"factorial": 3.0},
    ]


def test_a_decorated_coroutine_is_timed_to_its_end_and_tasks_do_not_mix(
    timers: Timers, rows: list, clock: Clock
) -> None:
    async def main() -> None:
        a_inside, b_inside = asyncio.Event(), asyncio.Event()

        @timers.timer("a")
        async def a() -> None:
            a_inside.set()
            await b_inside.wait()
            clock.now += 1

        @timers.timer("b")
        async def b() -> None:
            await a_inside.wait()
            b_inside.set()
            clock.now += 10

        await asyncio.gather(a(), b())

    asyncio.run(main())
    assert sorted(name for row in rows for name in row) == ["a", "b"]
    assert {name: s for row in rows for name, s in row.items()} == {"a": 11.0, "b": 10.0}


def test_a_decorated_generator_is_timed_from_first_item_to_end(timers: Timers, rows: list, clock: Clock) -> None:
    @timers.timer("batches")
    def batches() -> object:
        yield 1
        clock.now += 2
        yield 2

    assert list(batches()) == [1, 2]  # type: ignore[call-overload]
    assert rows == [{"batches": 2.0}]


def test_blocks_left_out_of_order_are_each_timed_right(timers: Timers, rows: list, clock: Clock) -> None:
    def stage(name: str) -> object:
        with timers.timer(name):
            yield

    first, second = stage("first"), stage("second")
    next(first)  # type: ignore[call-overload]
    clock.now += 1
    next(second)  # type: ignore[call-overload]
    clock.now += 2
    assert next(first, None) is None  # type: ignore[call-overload]
    clock.now += 4
    assert next(second, None) is None  # type: ignore[call-overload]
    with timers.timer("after"):
        pass
    assert rows == [{"first": 3.0}, {"first/second": 6.0}, {"after": 0.0}]


def test_threads_nest_apart_and_their_totals_add_up(rows: list) -> None:
    timers = Timers(rows.append)
    inside, leave = threading.Event(), threading.Event()

    def outer() -> None:
        with timers.timer("outer"):
            inside.set()
            assert leave.wait(PATIENCE)

    thread = threading.Thread(target=outer)
    thread.start()
    assert inside.wait(PATIENCE)
    with timers.timer("mine"):
        pass
    leave.set()
    thread.join()

    def many() -> None:
        for _ in range(500):
            with timers.timer("shared"):
                pass

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [*rows[0]] == ["mine"]
    assert timers.totals()["shared"][1] == 2000
    assert timers.totals()["shared"][0] == pytest.approx(sum(row.get("shared", 0.0) for row in rows))


def test_a_thread_started_inside_a_block_is_not_inside_it(timers: Timers, rows: list) -> None:
    def work() -> None:
        with timers.timer("worker"):
            pass

    with timers.timer("main"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert [*rows[0]] == ["worker"]


def test_shares_are_of_the_time_since_the_start_and_count_outermost_stages_only(timers: Timers, clock: Clock) -> None:
    with timers.timer("time/collect"):
        clock.now += 6
        with timers.timer("reset"):
            clock.now += 1
    with timers.timer("update"):
        clock.now += 1
    clock.now += 2
    assert timers.shares() == pytest.approx({"time/collect": 0.7, "update": 0.1})
    assert timers.totals() == {
        "time/collect": (7.0, 1),
        "time/collect/reset": (1.0, 1),
        "update": (1.0, 1),
    }


def test_timers_load_nothing_heavy() -> None:
    code = (
        "import sys, json, importlib, warnings, rollbook.values; before = set(sys.modules)\n"  # faces load those
        "import rollbook.capture.timers, rollbook.capture.store_dump\n"
        "print(*(m for m in set(sys.modules) - before if not m.startswith('rollbook')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_env())
    assert set(done.stdout.split()) <= {"_contextvars", "array", "collections.abc"}


def _env() -> dict[str, str]:
    import os

    import rollbook.capture

    (where,) = rollbook.capture.__path__
    return {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(where))}
