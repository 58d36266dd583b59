"""The trainer that calls a logger: what it trains, with which settings, and whether this was its last epoch.

Tianshou passes neither to its logger, and a trainer does not report its end. So we look it up among the callers.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEEPEST = 12
_OF_VERSION_1 = (
    "max_epoch",
    "step_per_epoch",
    "step_per_collect",
    "episode_per_collect",
    "repeat_per_collect",
    "update_per_step",
    "batch_size",
    "episode_per_test",
    "test_in_train",
    "resume_from_log",
)


def trainer_that_calls() -> Any:
    """The trainer of Tianshou 1 or 2 in whose method this is called; None if there is none."""
    frame: Any = sys._getframe(1)
    for _ in range(_DEEPEST):
        if frame is None:
            return None
        if (
            str(frame.f_globals.get("__name__", "")).startswith("tianshou.trainer")
            and "self" in frame.f_code.co_varnames
        ):
            return frame.f_locals.get("self")
        frame = frame.f_back
    return None


def settings_of(trainer: Any) -> dict[str, object]:
    """The algorithm's name, and the trainer's settings that are numbers or texts."""
    from rollbook.run.origin.config import entries_of

    about = vars(trainer)
    given = entries_of(about["params"]) if "params" in about else {name: about.get(name) for name in _OF_VERSION_1}
    trained = about.get("algorithm", about.get("policy"))
    known = {str(name): value for name, value in given.items() if isinstance(value, (bool, int, float, str))}
    return {"algorithm": type(trained).__name__, **known}


def epochs_of(trainer: Any) -> int:
    """How many epochs it trains in all."""
    about = vars(trainer)
    return int(about["params"].max_epochs if "params" in about else about["max_epoch"])


def is_through(trainer: Any, epoch: int) -> bool:
    """Whether this was its last epoch: there are no more, or it stops early."""
    about = vars(trainer)
    return epoch >= epochs_of(trainer) or bool(about.get("_stop_fn_flag", about.get("stop_fn_flag", False)))
