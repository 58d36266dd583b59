"""LightZero's entry functions with one changed import line.

from rollbook.adapters.lightzero import train_muzero        # instead of: from lzero.entry import train_muzero

train_muzero([main_config, create_config], seed=0, max_env_step=int(1e5))
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from rollbook.adapters._run import clean_name, end_training, find_run
from rollbook.adapters.lightzero.bridge import recording
from rollbook.errors import BadInput
from rollbook.run.failure import status_of
from rollbook.system.optional import need

ENTRIES = (
    "train_alphazero",
    "train_muzero",
    "train_muzero_segment",
    "train_muzero_with_gym_env",
    "train_muzero_with_reward_model",
    "train_rezero",
    "train_unizero",
    "train_unizero_segment",
    "eval_alphazero",
    "eval_muzero",
    "eval_muzero_with_gym_env",
)
"""LightZero's entry functions."""

_OF_RECORDING = ("save_evaluated", "keep_evaluated", "compat", "terminal")


def entry(name: str) -> Callable[..., object]:
    """The entry function `lzero.entry.<name>`, recorded.

    It takes the arguments of LightZero's own, and `run=`: a Run or an Experiment. Without it, the current run is used,
    or one is opened: its project is the folder, its name the last part of the configuration's `exp_name`. `options=`
    goes to `recording` (`save_evaluated`, `keep_evaluated`, `compat`, `terminal`), also together with `run=`. Its other
    entries go to `rollbook.init` if a run is opened.
    """

    def call(
        input_cfg: object,
        seed: int = 0,
        *args: object,
        run: object = None,
        options: dict[str, Any] | None = None,
        **kwargs: object,
    ) -> Any:
        why = f"rollbook.adapters.lightzero.{name}"
        theirs = getattr(need("lzero.entry", extra="lightzero", why=why, also="LightZero"), name)
        given = dict(options or {})
        chosen = {option: given.pop(option) for option in _OF_RECORDING if option in given}
        training = _Training()
        if run is None:
            known: Any = {**_named(input_cfg), "seed": seed, "kind": "lightzero.entry", "host": "lzero"}
            run, _ = find_run(None, options=given, defaults={"sinks": ()}, user=training, algorithm=name, **known)
        elif given:
            raise BadInput(
                f"{name}(run=…, options=…): the run is open already, so {', '.join(map(repr, given))} cannot be used. "
                f"With run=, options are {', '.join(_OF_RECORDING)}"
            )
        try:
            with recording(run, **chosen):
                return theirs(input_cfg, seed, *args, **kwargs)
        finally:
            end_training(run, training, status_of(sys.exc_info()[0]))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"LightZero's `{name}`, recorded. See `rollbook.adapters.lightzero.entry`."
    return call


class _Training:
    """One call of an entry function."""


def _named(input_cfg: Any) -> dict[str, object]:
    try:
        given = str(input_cfg[0]["exp_name"])
    except (KeyError, TypeError, IndexError):
        given = "experiment"
    folder, name = os.path.split(os.path.normpath(given))
    return {"project": clean_name(folder, "lightzero"), "name": clean_name(name, "experiment")}
