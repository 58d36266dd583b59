"""Our callbacks and loggers beside RLlib's and Tune's: every method and argument, as `inspect` sees them."""

from __future__ import annotations

import inspect
import os
from typing import Any

import pytest

GROUPS = ("rllib",)
pytestmark = pytest.mark.frameworks

os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
pytest.importorskip("ray.rllib")
pytest.importorskip("ray.tune")

from ray.rllib.callbacks.callbacks import RLlibCallback  # noqa: E402
from ray.tune.logger import LoggerCallback  # noqa: E402

from rollbook.adapters import rllib as ours  # noqa: E402
from surface import differs, lacks  # noqa: E402

# `ours.Logger` has the shape of a class that Ray 2.60 no longer has: tests/adapters/rllib holds it.
PAIRS = {
    "RollbookCallback": (ours.RollbookCallback, RLlibCallback),
    "callbacks()": (ours.callbacks(), RLlibCallback),
    "RollbookTune": (ours.RollbookTune, LoggerCallback),
    "OldLoggers": (ours.OldLoggers, LoggerCallback),
}


def called_by_ray(kind: Any) -> dict[str, Any]:
    """The methods that a class of ours has of its own where Ray calls methods of that name."""
    return {name: value for name, value in inspect.getmembers(kind, callable) if not name.startswith("_")}


@pytest.mark.parametrize("name", PAIRS)
def test_every_method_has_every_argument_of_rays(name: str) -> None:
    here, there = PAIRS[name]
    assert lacks(here, there) == {}


@pytest.mark.parametrize("name", [name for name in PAIRS if name in ("RollbookCallback", "RollbookTune", "OldLoggers")])
def test_every_hook_of_ours_is_one_that_ray_calls_and_of_a_class_that_it_takes(name: str) -> None:
    here, there = PAIRS[name]
    assert issubclass(here, there)
    hooks = {n for n in called_by_ray(here) if n.startswith(("on_", "log_trial", "setup", "get_state", "set_state"))}
    assert hooks <= set(called_by_ray(there))


def test_the_hooks_take_what_later_releases_may_add() -> None:
    """RLlib passes keywords alone: a hook that takes no others would break with the first new one."""
    for name, method in called_by_ray(ours.RollbookCallback).items():
        if name.startswith("on_") and getattr(RLlibCallback, name) is not method:
            assert differs(method, getattr(RLlibCallback, name)) == "", name
            assert any(p.kind is p.VAR_KEYWORD for p in inspect.signature(method).parameters.values()), name
