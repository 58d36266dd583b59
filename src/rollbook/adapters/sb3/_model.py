"""The configuration of a Stable-Baselines3 algorithm, and the state of its counters."""

from __future__ import annotations

import inspect

from rollbook.adapters._plain import Described
from rollbook.adapters.sb3._environments import environment_of
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


_NOT_SETTINGS = frozenset({"self", "env", "_init_setup_model", "verbose", "tensorboard_log", "kwargs", "args"})


def is_on_policy(model: object) -> bool:
    """Whether a rollout is discarded after its update, as in PPO and A2C."""
    return hasattr(model, "rollout_buffer") and not hasattr(model, "replay_buffer")


def describe(model: object) -> dict[str, object]:
    """The configuration of an algorithm: its class, environment, seed and every argument of its constructor.

    Schedules appear with their value at the start of training; arguments without a plain form as text.
    """
    settings: dict[str, object] = {
        "algo": type(model).__name__,
        "env": environment_of(model),
        "n_envs": getattr(model, "n_envs", None),
        "policy_class": type(getattr(model, "policy", None)).__name__,
        "seed": getattr(model, "seed", None),
        "device": str(getattr(model, "device", "")),
    }
    names: list[str] = []
    for kind in type(model).__mro__:
        if "__init__" in vars(kind):
            names += [name for name in inspect.signature(kind.__init__).parameters if name not in names]  # type: ignore[misc]
    for name in names:
        if name not in _NOT_SETTINGS and name not in settings and hasattr(model, name):
            settings[name] = _plain(getattr(model, name))
    return settings


class _PlainSettings(Described):
    """Networks and other objects by the name of their class, schedules by their value at the start of training."""

    deepest = 4

    def rest(self, value: object, path: tuple[Any, ...], above: tuple[int, ...]) -> object:
        if isinstance(value, type) or inspect.isfunction(value):
            return value.__name__
        if hasattr(value, "forward"):  # a network
            return type(value).__name__
        if callable(value):  # a schedule: a function of the remaining progress
            with tolerating(Exception):
                return self.value(value(1.0), path, above)
            return type(value).__name__
        text = str(value)
        return text if " at 0x" not in text else type(value).__name__


_plain = _PlainSettings()


class GradientSteps:
    """Counts the optimizer steps of an algorithm as they happen; for off-policy algorithms, reads their own counter.

    Args:
      model: the algorithm.
      start: the count to continue from.
    """

    def __init__(self, model: object, start: int = 0) -> None:
        self._model, self._start, self._handle = model, start, None
        self._count = 0
        self._first_updates = int(getattr(model, "_n_updates", 0))
        optimizer = getattr(getattr(model, "policy", None), "optimizer", None)
        hook: Callable[..., Any] | None = getattr(optimizer, "register_step_post_hook", None)
        if is_on_policy(model) and hook is not None:  # there `_n_updates` counts epochs of minibatches
            self._handle = hook(self._stepped)

    def _stepped(self, *_args: object, **_kwargs: object) -> None:
        self._count += 1

    @property
    def value(self) -> int:
        """Gradient steps so far."""
        if self._handle is not None:
            return self._start + self._count
        return self._start + int(getattr(self._model, "_n_updates", 0)) - self._first_updates

    def close(self) -> int:
        """Stop counting; returns the count."""
        value = self.value
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
            self._start = value
            self._first_updates = int(getattr(self._model, "_n_updates", 0))
        return value
