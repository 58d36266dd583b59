"""The counter: shared, prefixed, saved, and complete at the end."""

from __future__ import annotations

import gc
import threading

import pytest

from rollbook.adapters.acme import Counter


def test_counts_of_many_threads_add_up() -> None:
    counter = Counter()
    barrier = threading.Barrier(10)

    def work() -> None:
        barrier.wait()
        for _ in range(100):
            counter.increment(foo=1)

    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.get_counts() == {"foo": 1000}


def test_siblings_share_their_counts_through_the_parent() -> None:
    parent = Counter()
    first, second = Counter(parent, "child1"), Counter(parent, "child2")
    first.increment(foo=1)
    assert second.increment(foo=2) == {"child1_foo": 1, "child2_foo": 2}


def test_prefixes_nest_and_can_be_taken_off() -> None:
    parent = Counter()
    middle = Counter(parent, "p", time_delta=0.0)
    child = Counter(middle, "c", time_delta=0.0, return_only_prefixed=True)
    assert child.increment(steps=2) == {"steps": 2}
    assert parent.get_counts() == {"p_c_steps": 2}
    assert child.get_steps_key() == "steps"
    assert middle.get_steps_key() == "p_steps"
    assert parent.get_steps_key() == "steps"


def test_the_last_increments_reach_the_parent() -> None:
    """Acme's counter keeps what was counted within the last time_delta to itself: child 6, parent 1."""
    parent = Counter()
    child = Counter(parent, "child", time_delta=1000.0)
    for _ in range(6):
        child.increment(steps=1)
    assert parent.get_counts() == {"child_steps": 1}
    assert child.get_counts() == {"child_steps": 6}
    child.close()
    assert parent.get_counts() == {"child_steps": 6}


def test_a_counter_that_is_never_closed_hands_over_when_it_is_collected() -> None:
    parent = Counter()
    child = Counter(parent, "child", time_delta=1000.0)
    child.increment(steps=1)
    child.increment(steps=1)
    del child
    gc.collect()
    assert parent.get_counts() == {"child_steps": 2}


def test_saved_counts_are_copies_and_can_be_restored() -> None:
    counter = Counter()
    counter.increment(steps=3)
    saved = counter.save()
    counter.increment(steps=1)
    assert saved == {"counts": {"steps": 3}, "cache": {}}
    other = Counter()
    other.restore(saved)
    assert other.increment(steps=1) == {"steps": 4}


def test_a_count_that_is_no_number_is_named() -> None:
    with pytest.raises(TypeError, match="steps='three'"):
        Counter().increment(steps="three")  # type: ignore[arg-type]
