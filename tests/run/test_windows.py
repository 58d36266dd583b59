"""What was stored and not dumped yet is waiting for the next dump again after a restore or a rewind."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rollbook

Start = Callable[..., rollbook.Run]


def feed(run: rollbook.Run, first: int, last: int, *, dump_at: tuple[int, ...] = ()) -> dict[int, dict[str, float]]:
    """Store and dump as a loop does; what the dumps gave."""
    update = run.scope("update")
    rows = {}
    for i in range(first, last):
        run.store(ret=float(i * i % 17), done=i % 3 == 0, env_step=i)
        update.store({"loss": {"pi": 1.0 / (i + 1)}, "grad": np.arange(i % 4 + 1)})
        if i in dump_at:
            rows[i] = {
                **run.dump(with_min_and_max=True),
                **{f"update/{key}": value for key, value in update.dump(with_min_and_max=True).items()},
            }
    return rows


@pytest.mark.parametrize("died", ["killed", "crashed", "same process"])
def test_after_a_restore_the_next_dump_reports_what_it_would_have_reported(start: Start, died: str) -> None:
    whole = start("project", "whole")
    expected = feed(whole, 0, 60, dump_at=(9, 29, 49))
    whole.finish()

    run = start()
    feed(run, 0, 36, dump_at=(9, 29))
    run.save_checkpoint({"w": 1}, env_step=35)
    feed(run, 36, 41)  # abandoned: behind the checkpoint
    run.dump(env_step=41)
    run.store(only_later=1.0)
    if died != "same process":
        run.finish(died)
        run = start(resume="must")
    assert run.restore().clocks["env_step"] == 35
    again = feed(run, 36, 60, dump_at=(49,))
    assert again[49] == expected[49]
    assert "only_later/n" not in run.dump(), "a key that was stored after the cut was never stored"


def test_a_second_restore_finds_the_windows_of_the_first(start: Start) -> None:
    run = start()
    run.store(x=1.0, env_step=1)
    run.save_checkpoint({"w": 1})
    run.finish("crashed")
    second = start(resume="must")
    second.restore()
    second.store(x=2.0, env_step=2)
    second.save_checkpoint({"w": 2})
    second.store(x=99.0, env_step=3)
    second.finish("crashed")
    third = start(resume="must")
    third.restore()
    assert third.dump(average_only=True) == {"x/mean": 1.5, "x/n": 2}


def test_a_key_that_was_dumped_before_the_cut_is_known_and_empty(start: Start) -> None:
    run = start()
    run.store(x=1.0, y=5.0, env_step=1)
    run.dump(["x"])
    run.save_checkpoint({"w": 1})
    run.finish()
    again = start(resume="must")
    again.restore()
    assert again.dump(average_only=True) == {"x/n": 0, "y/mean": 5.0, "y/n": 1}


def test_rewind_brings_the_windows_back_too(start: Start) -> None:
    run = start()
    for i in range(10):
        run.store(x=float(i), env_step=i)
        if i == 3:
            run.dump()
    run.finish("crashed")
    again = start(resume="must")
    again.rewind(env_step=6)
    assert again.dump(average_only=True) == {"x/mean": 5.0, "x/n": 3}  # 4, 5, 6


def test_what_was_only_logged_is_no_part_of_a_window(start: Start) -> None:
    run = start()
    run.log({"x": 100.0}, env_step=0)
    run.scope("test").log({"y": 100.0})
    run.scope("test").store(z=1.0)
    run.store({"test/y": 3.0})
    run.save_checkpoint({"w": 1})
    run.finish()
    again = start(resume="must")
    again.restore()
    assert again.dump(average_only=True) == {"test/y/mean": 3.0, "test/y/n": 1}
    assert again.scope("test").dump(average_only=True) == {"z/mean": 1.0, "z/n": 1}


def test_an_array_too_large_to_be_kept_raw_comes_back_with_its_exact_moments(start: Start) -> None:
    numbers = np.random.default_rng(3).normal(5.0, 2.0, 10_000)
    run = start()
    run.store(x=numbers, env_step=1)
    run.store(x=1.0)
    run.save_checkpoint({"w": 1})
    expected = run.dump(with_min_and_max=True)
    run.finish()
    again = start(resume="must")
    again.restore()
    row = again.dump(with_min_and_max=True)
    for name in ("x/mean", "x/std", "x/min", "x/max"):
        assert row[name] == pytest.approx(expected[name], rel=1e-9), name
    assert row["x/n"] == expected["x/n"] == 10_001
    width = (numbers.max() - numbers.min()) / 64
    assert abs(row["x/median"] - expected["x/median"]) <= width


def test_without_a_checkpoint_a_resumed_run_begins_with_empty_windows(start: Start) -> None:
    run = start()
    run.store(x=1.0, env_step=1)
    run.finish("crashed")
    again = start(resume="allow")
    with pytest.warns(rollbook.errors.RollbookWarning, match="Training starts from the beginning"):
        assert again.restore() is None
    again.store(x=3.0)
    assert again.dump(average_only=True) == {"x/mean": 3.0, "x/n": 1}


def test_two_scopes_of_one_name_share_a_window(start: Start) -> None:
    run = start()
    run.scope("update").store(loss=1.0)
    run.scope("update").store(loss=3.0)
    assert run.scope("update").dump(average_only=True) == {"loss/mean": 2.0, "loss/n": 2}
    assert run.dump() == {}


def test_a_window_in_which_nan_was_stored_stays_nan(start: Start) -> None:
    run = start()
    run.store(x=float("nan"), env_step=1)
    run.save_checkpoint({"w": 1})
    run.finish()
    again = start(resume="must")
    again.restore()
    again.store(x=1.0)
    row = again.dump()
    assert math.isnan(row["x/mean"])
    assert row["x/n"] == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_what_a_forked_child_stored_is_its_own_affair(start: Start) -> None:
    run = start()
    run.store(x=1.0, env_step=1)
    child = os.fork()
    if child == 0:
        run.store(x=50.0)
        os._exit(0)
    os.waitpid(child, 0)
    run.save_checkpoint({"w": 1})
    run.finish()
    again = start(resume="must")
    again.restore()
    assert again.dump(average_only=True) == {"x/mean": 1.0, "x/n": 1}


def test_device_values_that_were_stored_come_back(start: Start) -> None:
    class OnDevice:
        """What a tensor on an accelerator offers."""

        shape: tuple[int, ...] = ()
        dtype = "float32"
        device = "cuda:0"
        is_cuda = True

        def __init__(self, value: float) -> None:
            self.value = value

        def detach(self) -> OnDevice:
            return self

        def clone(self) -> OnDevice:
            return OnDevice(self.value)

        def numel(self) -> int:
            return 1

        def cpu(self) -> OnDevice:
            return self

        def item(self) -> float:
            return self.value

        def tolist(self) -> Any:
            return self.value

        def numpy(self) -> Any:
            return np.float32(self.value)

    run = start()
    run.store(x=OnDevice(2.0), env_step=1)
    run.store(x=4.0)
    run.save_checkpoint({"w": 1})
    run.restore()
    assert run.dump(average_only=True) == {"x/mean": 3.0, "x/n": 2}
