"""One run per trial: how the driver, the trial and whoever comes later find the same run.

The run's id follows from the names of experiment and trial, so that two processes that know both names open one run:
the first makes it, the others join it.
"""

from __future__ import annotations

import hashlib
import os
import time

from rollbook.adapters._plain import described
from rollbook.adapters._run import clean_name
from rollbook.errors import BadInput, NotARun, RunExists, RunIsLive, RunNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.run.run import Run

__all__ = ["Settings", "function_storage", "names_of", "open_run", "plain_config", "run_id"]

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_JOIN_SECONDS = 10.0
_POLL_SECONDS = 0.02


def run_id(experiment: str, trial: str) -> str:
    """The id of the run of a trial: ten letters and digits (50 bits) that follow from the names of their folders."""
    digest = hashlib.blake2b(f"{experiment}\0{trial}".encode(), digest_size=10).digest()
    return "".join(_LETTERS[byte & 31] for byte in digest)


def names_of(storage: object) -> tuple[str | None, str]:
    """The names of the experiment's and the trial's folder, which driver and trial both know; (None, "") without Tune.

    Args:
      storage: what Tune saves a trial by: `trial.storage` in the driver, `_storage` of a trainable.
    """
    experiment = getattr(storage, "experiment_dir_name", None)
    trial = getattr(storage, "trial_dir_name", None)
    return (str(experiment), str(trial)) if experiment and trial else (None, "")


def function_storage() -> object:
    """What Tune saves the trial of this process by, if the trial is a function; None outside of one."""
    import warnings

    from ray import tune

    with warnings.catch_warnings():  # outside of a trial Ray answers None and warns
        warnings.simplefilter("ignore")
        return tune.get_context().get_storage()


class Settings:
    """Where runs go and what they are called. Plain data, so that it can be sent to other processes.

    Args:
      dir: root of all runs. Made absolute at once: trials work in folders of their own.
      project: default: the experiment's name; without Tune, the environment's.
      name: default: the trial's name; without Tune, the algorithm's.
      options: further arguments of `rollbook.init`.
    Raises:
      BadInput: an argument that `rollbook.init` would refuse.
    """

    def __init__(
        self,
        dir: str | os.PathLike[str] | None = None,
        project: str | None = None,
        name: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self.dir = os.path.abspath(os.fspath(dir) if dir is not None else os.environ.get("ROLLBOOK_DIR", "runs"))
        for what, value in (("project", project), ("name", name)):
            if value is not None and (not isinstance(value, str) or clean_name(value, "") != value):
                raise BadInput(
                    f"{what}={value!r:.200} cannot be a folder's name. Use letters, digits, - _ . and spaces; or "
                    "leave it out"
                )
        self.project, self.name = project, name
        from inspect import signature

        from rollbook.run.session import init
        from rollbook.sinks import QUIET

        self.options: dict[str, Any] = {"sinks": QUIET, **(options or {})}

        known = [*signature(init).parameters]
        unknown = [key for key in self.options if key not in known]
        if unknown:
            raise BadInput(f"{unknown[0]!r} is neither an option of this adapter nor of rollbook.init()")


def open_run(
    settings: Settings,
    *,
    experiment: str | None = None,
    trial: str = "",
    trial_name: str = "",
    fallback: tuple[str, str] = ("rllib", "run"),
    config: object = None,
) -> Run:
    """Make the run of a trial, continue it if it is an ended one, or join it if another process writes it now.

    Args:
      experiment, trial: names of their folders (see `names_of`); None without Tune: then each call makes a run of its
        own.
      trial_name: what the run is called, unless the settings say it.
      fallback: project and name where neither the settings nor Tune say anything.
      config: the algorithm's configuration.
    Returns:
      The run; `run.internals.writer.main` tells whether this process is its main writer.
    Raises:
      RollbookError: what `rollbook.init` raises; RunIsLive if the run could not be joined within ten seconds.
    """
    from rollbook.run.session import attach, init

    options = dict(settings.options)
    identity = options.pop("run_id", None) or (run_id(experiment, trial) if experiment is not None else None)
    project = settings.project or clean_name(experiment, fallback[0]) if experiment is not None else settings.project
    project = project or clean_name(fallback[0], "rllib")
    name = settings.name or clean_name(trial_name, fallback[1])
    resume = options.pop("resume", "allow" if experiment is not None else "never")
    if experiment is not None:
        options.setdefault("group", experiment)
    options.setdefault("config", config)
    try:
        return init(project, name, run_id=identity, resume=resume, dir=settings.dir, **options)
    except (RunExists, RunIsLive):
        if identity is None:
            raise
    deadline = time.monotonic() + _JOIN_SECONDS
    while True:  # who makes it has made the folder and is about to write run.json
        try:
            return attach(identity, dir=settings.dir, strict=bool(options.get("strict", False)))
        except (RunNotFound, NotARun):
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_SECONDS)


def plain_config(config: object) -> dict[str, object]:
    """An AlgorithmConfig, or a dict like it, as plain data; what is none becomes its text, without addresses."""
    to_dict = getattr(config, "to_dict", None)
    if callable(to_dict):
        config = to_dict()
    if not hasattr(config, "items"):
        return {}
    return {str(key): described(value) for key, value in config.items() if key != "__trial_info__"}
